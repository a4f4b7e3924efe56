"""Which photos an attribute could use, since refusing selects, and what an edit costs on another photo's ground."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from counterfoil.edits.registry import crossed_by
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.intervals import RATE, Estimate, estimate
from counterfoil.types import TOOL_CHECKS, Attribute, EditLevel

SWAP = "background-swap"


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


class NaturalGround(NamedTuple):
    """What an edit costs on another photo's background, against that background alone."""

    model: str
    edit: EditLevel  # "size 0.05"
    ground: EditLevel  # "background-swap other"
    drop: Estimate  # points


def measure_natural_ground(answers: Answers) -> list[NaturalGround]:
    """The drop of each edit that the table also holds on a swapped background; no hole of its own photo shows there."""
    places = {EditLevel(row.edit, row.level): place for place, row in enumerate(answers.conditions) if _is_plain(row)}
    rows = []
    for place, own in enumerate(answers.conditions):
        parts = crossed_by(own.edit, own.level) if _is_plain(own) else None
        if parts is None or parts[0].edit != SWAP or parts[0] not in places:
            continue
        lost = answers.rates[:, places[parts[0]]] - answers.rates[:, place]
        rows += [
            NaturalGround(model, parts[1], parts[0], estimate(values).scaled(100))
            for model, values in zip(answers.models, lost, strict=True)
        ]
    return rows


def _is_plain(condition: Condition) -> bool:
    return condition.attribute not in TOOL_CHECKS
