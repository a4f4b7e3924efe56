"""Worst of k: which donor's background a surrogate handles worst, settled before the picture is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.edit import edit_named
from counterfoil.edit.worst_of import BackgroundWorst
from counterfoil.errors import Unusable
from counterfoil.pipeline.job import Prepared
from counterfoil.types import Picture, Sample, Variant


def settled(prepared: Prepared, sample: Sample, variant: Variant) -> Variant:
    """The variant with its donor chosen by the surrogate; from then on no model is needed to make it again."""
    if variant.edit != "background-worst":
        return variant
    edit = edit_named(variant.edit, json.loads(variant.settings))
    assert isinstance(edit, BackgroundWorst)
    surrogate = prepared.surrogates[edit.surrogate]
    column = surrogate.labels.index(variant.label)

    def true_scores(images: Sequence[NDArray[np.uint8]]) -> list[float]:
        return [float(score) for score in surrogate(images)[:, column]]

    lenders = _candidates(prepared, sample, variant, edit)
    pictures = [(lender, picture) for lender in lenders if (picture := _picture(prepared, lender)) is not None]
    place = edit.worst(prepared.studio.ready(sample.id).picture, [picture for _, picture in pictures], true_scores)
    return replace(variant, donor_id=pictures[place][0].id)


def _candidates(prepared: Prepared, sample: Sample, variant: Variant, edit: BackgroundWorst) -> list[Sample]:
    """Different donors, each drawn by a seed of its own; fewer where the set has fewer."""
    found: dict[str, Sample] = {}
    for attempt in range(4 * edit.candidates):
        digest = hashlib.sha256(f"{variant.seed} {attempt}".encode()).digest()
        lender = prepared.donors.choose(sample, edit.donors, int.from_bytes(digest[:8], "big"))
        if lender is not None and len(found) < edit.candidates:
            found.setdefault(lender.id, lender)
    return list(found.values())


def _picture(prepared: Prepared, lender: Sample) -> Picture | None:
    try:
        return prepared.studio.ready(lender.id).picture
    except Unusable:
        return None
