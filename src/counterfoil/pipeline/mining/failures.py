"""How models fail on what was kept: confusions beyond chance, and answers that name what lent the background."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import FEWEST_PHOTOS, Details, confusions, details_from_tables, lender_confusion
from counterfoil.analyse.prediction_tables import DETAIL_COLUMNS
from counterfoil.pipeline.mining.asking import AskedModel
from counterfoil.pipeline.mining.picked import Picked
from counterfoil.report.failure_modes import FailureModes, ModelConfusion

_MOST_CONFUSIONS = 20
_SIGNIFICANCE = 0.05


def failures_of(picked: Picked) -> FailureModes:
    """Over the kept pictures and their originals alone."""
    lenders = _lending_classes(picked)
    found: list[ModelConfusion] = []
    lending = []
    for model in picked.asked.models:
        details = details_from_tables({model.name: _kept_rows(picked, model)}, lenders=lenders)
        found += _confusions(details, model.name)
        lender = lender_confusion(details, model.name, "background")
        lending += [lender] if lender.share.n >= FEWEST_PHOTOS else []
    found.sort(key=lambda row: row.confusion.p_value)
    return FailureModes(confusions=found[:_MOST_CONFUSIONS], lenders=lending)


def _kept_rows(picked: Picked, model: AskedModel) -> dict[str, NDArray[Any]]:
    """A model's answers to the kept pictures and to all originals."""
    table = model.table.columns(DETAIL_COLUMNS)
    kept = {e.variant.id for e, is_kept in zip(picked.asked.candidates, picked.choice.kept, strict=True) if is_kept}
    wanted = np.array([name in kept for name in table["variant_id"]], bool) | (table["attribute"] == "original")
    return {name: column[wanted] for name, column in table.items()}


def _confusions(details: Details, model: str) -> Iterator[ModelConfusion]:
    attributes = dict.fromkeys(condition.attribute for condition in details.answers.conditions)
    for attribute in attributes:
        if attribute != "original":
            clear = [
                row for row in confusions(details, model, attribute) if row.photos > 1 and row.p_bh < _SIGNIFICANCE
            ]
            yield from (ModelConfusion(model, attribute, row) for row in clear)


def _lending_classes(picked: Picked) -> Mapping[str, str]:
    """The class of the photo that lent its background, by picture."""
    label_of = {str(e.variant.sample_id): e.variant.label for e in picked.asked.workspace.exhibits}
    lent = ((e.variant.id, e.variant.donor_id) for e in picked.asked.candidates)
    return {name: label_of[donor] for name, donor in lent if donor in label_of}
