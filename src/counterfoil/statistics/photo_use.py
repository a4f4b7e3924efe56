"""Which photos an attribute could use, since refusing selects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from counterfoil.statistics.answers import Answers
from counterfoil.statistics.intervals import RATE, Estimate, estimate
from counterfoil.types import TOOL_CHECKS, Attribute


class AttributeUse(NamedTuple):
    """How many photos one attribute used, and how a model does on the unedited ones, used and unused."""

    model: str
    attribute: Attribute
    used: int  # photos with an answer to any edit of the attribute
    photos: int  # with an answer to the unedited photo
    accuracy_used: Estimate  # percent, on the unedited photos
    accuracy_unused: Estimate  # NaN where every photo was used


def measure_use(answers: Answers) -> list[AttributeUse]:
    """For each model and attribute, the photos that it could use and the accuracy on the others."""
    attributes = dict.fromkeys(condition.attribute for condition in answers.conditions)
    return [
        _use_of(answers, model, attribute)
        for model in range(len(answers.models))
        for attribute in attributes
        if attribute not in {"original", *TOOL_CHECKS}
    ]


def _use_of(answers: Answers, model: int, attribute: Attribute) -> AttributeUse:
    original = answers.original_rates[model]
    known = np.isfinite(original)
    rates = answers.rates[model][answers.conditions_of({attribute})]
    used = np.isfinite(rates).any(axis=0) & known
    return AttributeUse(
        model=answers.models[model],
        attribute=attribute,
        used=int(used.sum()),
        photos=int(known.sum()),
        accuracy_used=estimate(original[used], RATE).scaled(100),
        accuracy_unused=estimate(original[known & ~used], RATE).scaled(100),
    )
