"""What an edit costs on another photo's background, which holds no fill of the photo's own hole."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.photo_tests import estimate_mean
from counterfoil.statistics.references import find_crossed, locate_edits
from counterfoil.types import EditLevel

SWAP = "background-swap"
_UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0)


class NaturalGround(NamedTuple):
    """What an edit costs one model on two grounds, over the photos that have all pictures; in points."""

    model: str
    edit: EditLevel  # "size 0.05"
    ground: EditLevel  # "background-swap other"
    drop: Estimate  # on the other photo's background, against that background alone
    own_drop: Estimate  # on the photo's own background, filled, against the original; NaN where the table lacks it
    difference: Estimate  # drop - own_drop

    @property
    def is_clear(self) -> bool:
        """Whether the edit is shown to cost something on the other photo's background; 95 %, this row alone."""
        return self.drop.ci_low > 0


def measure_natural_ground(answers: Answers) -> list[NaturalGround]:
    """The drop of each edit that the table also holds on a swapped background, model by model."""
    return [
        _measure(answers, model, place, *parts)
        for model in range(len(answers.models))
        for place in range(len(answers.conditions))
        if (parts := find_crossed(answers, place)) is not None
        and parts[0].edit == SWAP
        and parts[0] in locate_edits(answers)
    ]


def _measure(answers: Answers, model: int, both: int, ground: EditLevel, edit: EditLevel) -> NaturalGround:
    places, rates = locate_edits(answers), answers.rates[model]
    drop = rates[places[ground]] - rates[both]  # (samples,)
    if edit not in places:
        return NaturalGround(answers.models[model], edit, ground, _points(drop), _UNKNOWN, _UNKNOWN)
    own = answers.original_rates[model] - rates[places[edit]]
    known = np.isfinite(drop) & np.isfinite(own)
    return NaturalGround(
        model=answers.models[model],
        edit=edit,
        ground=ground,
        drop=_points(drop[known]),
        own_drop=_points(own[known]),
        difference=estimate_mean(drop[known] - own[known], 4).scaled(100),
    )


def _points(losses: NDArray[np.float64]) -> Estimate:
    return estimate_mean(losses).scaled(100)
