"""Which background it is, settled before the picture is made: a donor that can lend one, or the worst of several."""

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
from counterfoil.pipeline.attacking import attacked
from counterfoil.pipeline.job import Prepared
from counterfoil.types import DonorEdit, Picture, Sample, Variant

_ATTEMPTS = 16  # donors tried where the planned one cannot be used


def settled(prepared: Prepared, sample: Sample, variant: Variant) -> Variant:
    """The variant with its donor settled; from then on neither chance nor a model is needed to make it again."""
    if variant.edit == "painted-adversarial":
        surrogate = prepared.surrogates[json.loads(variant.settings)["surrogate"]]
        return attacked(prepared.studio.ready(sample.id).picture, surrogate, variant)
    if variant.donor_id is None:
        return variant
    if variant.edit != "background-worst":
        return _with_usable_donor(prepared, sample, variant)
    edit = edit_named(variant.edit, json.loads(variant.settings))
    assert isinstance(edit, BackgroundWorst)
    surrogate = prepared.surrogates[edit.surrogate]
    column = surrogate.labels.index(variant.label)

    def true_scores(images: Sequence[NDArray[np.uint8]]) -> list[float]:
        return [float(score) for score in surrogate(images)[:, column]]

    lenders = candidates(prepared, sample, variant)
    pictures = [(lender, picture) for lender in lenders if (picture := _picture(prepared, lender)) is not None]
    place = edit.worst(prepared.studio.ready(sample.id).picture, [picture for _, picture in pictures], true_scores)
    return _lent_by(variant, pictures[place][0])


def _with_usable_donor(prepared: Prepared, sample: Sample, variant: Variant) -> Variant:
    """A broken photo shall not cost a good one its variant: the next donors in line are tried."""
    if _picture(prepared, prepared.studio.samples[str(variant.donor_id)]) is not None:
        return variant
    edit = edit_named(variant.edit, json.loads(variant.settings))
    assert isinstance(edit, DonorEdit)
    for attempt in range(_ATTEMPTS):
        lender = prepared.donors.choose(sample, edit.donors, _seed(variant, attempt))
        if lender is not None and _picture(prepared, lender) is not None:
            return _lent_by(variant, lender)
    return variant  # which then says why its own donor cannot be used


def _lent_by(variant: Variant, donor: Sample) -> Variant:
    identity = hashlib.sha256(f"{variant.id} {donor.digest}".encode()).hexdigest()[:20]
    return replace(variant, id=identity, donor_id=donor.id)


def _seed(variant: Variant, attempt: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{variant.seed} {attempt}".encode()).digest()[:8], "big")


def candidates(prepared: Prepared, sample: Sample, variant: Variant) -> list[Sample]:
    """Different donors, each drawn by a seed of its own; fewer where the set has fewer, none for other edits."""
    edit = edit_named(variant.edit, json.loads(variant.settings)) if variant.edit == "background-worst" else None
    if not isinstance(edit, BackgroundWorst):
        return []
    found: dict[str, Sample] = {}
    for attempt in range(4 * edit.candidates):
        lender = prepared.donors.choose(sample, edit.donors, _seed(variant, attempt))
        if lender is not None and len(found) < edit.candidates:
            found.setdefault(lender.id, lender)
    return list(found.values())


def _picture(prepared: Prepared, lender: Sample) -> Picture | None:
    try:
        return prepared.studio.ready(lender.id).picture
    except Unusable:
        return None
