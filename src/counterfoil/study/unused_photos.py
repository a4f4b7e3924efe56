"""The photos that an attribute's main edit could not be applied to, and how models do on them unedited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from counterfoil.study.runs import Study
from counterfoil.types import Attribute, EditLevel


class UnusedPhotos(NamedTuple):
    """The photos that an attribute says nothing about."""

    attribute: Attribute
    photos: int
    lowest: float  # accuracy on them unedited in percent, of the model that is right least often
    highest: float


def measure_unused(study: Study) -> list[UnusedPhotos]:
    """Return the unused photos of each attribute that has any; a photo is unused where no model was asked about it."""
    if not study.has_originals:
        return []
    answers, unused = study.answers, []
    for place, condition in enumerate(answers.conditions):
        if study.main_edits.get(condition.attribute) == EditLevel(condition.edit, condition.level):
            asked = np.isfinite(answers.rates[:, place]).any(axis=0)
            before = answers.original_rates[:, ~asked & np.isfinite(answers.original_rates).all(axis=0)]
            if before.shape[1] and condition.attribute != "original":
                right = 100 * before.mean(axis=1)
                unused.append(
                    UnusedPhotos(condition.attribute, before.shape[1], float(right.min()), float(right.max()))
                )
    return unused
