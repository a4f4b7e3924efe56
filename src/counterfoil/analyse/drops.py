"""How much accuracy each edit costs each model, paired by photo."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, Condition, Photos, Tally, count
from counterfoil.analyse.interval import score_interval
from counterfoil.analyse.multiplicity import benjamini_hochberg, holm
from counterfoil.analyse.paired import mcnemar
from counterfoil.types import Attribute, Drop

FEWEST_PHOTOS = 10  # below this, a row is shown but nothing is said about it

_SIGNIFICANCE = 0.05


class _Comparison(NamedTuple):
    original: Photos
    control: Photos
    edited: Photos


def drops(answers: Answers) -> list[Drop]:
    """One row per model and condition other than the original; only photos scored on both sides count.

    Every photo counts once, whatever its number of replicates. Both adjustments are over the whole table: every
    model and every condition, the control and the diagnostics included, since the report speaks about them too.
    """
    tally = count(answers)
    rows = [
        _row(answers, tally, (model, condition))
        for model in range(len(answers.models))
        for condition in range(len(answers.conditions))
        if answers.conditions[condition].attribute != "original"
    ]
    p_values = [row.p_value for row in rows]
    adjusted = zip(rows, holm(p_values), benjamini_hochberg(p_values), strict=True)
    return [replace(row, p_holm=p_holm, p_bh=p_bh) for row, p_holm, p_bh in adjusted]


def significant(drop: Drop) -> bool:
    """Whether the interval leaves out zero and the adjusted p is below 0.05."""
    return (drop.ci_low > 0 or drop.ci_high < 0) and drop.p_holm < _SIGNIFICANCE


def _row(answers: Answers, tally: Tally, place: tuple[int, int]) -> Drop:
    model, condition = place
    comparison = _Comparison(
        original=_photos_of(answers.conditions, tally, model, "original"),
        control=_photos_of(answers.conditions, tally, model, "control"),
        edited=Photos(tally.right[model, condition], tally.scored[model, condition]),
    )
    paired = (comparison.original.scored > 0) & (comparison.edited.scored > 0)
    row = _compare(answers.models[model], answers.conditions[condition], comparison)
    return replace(row, object_share=_mean(tally.object_share[model, condition][paired]))


def _compare(model: str, condition: Condition, comparison: _Comparison) -> Drop:
    original, control, edited = comparison
    paired = (original.scored > 0) & (edited.scored > 0)
    controlled = paired & (control.scored > 0)
    differences = original.rates(paired) - edited.rates(paired)
    interval = score_interval(differences)
    return Drop(
        model,
        *condition,
        n=int(paired.sum()),
        accuracy_original=100 * _mean(original.rates(paired)),
        accuracy_control=100 * _mean(control.rates(controlled)),
        accuracy=100 * _mean(edited.rates(paired)),
        drop=100 * _mean(differences),
        ci_low=100 * interval.low,
        ci_high=100 * interval.high,
        drop_vs_control=100 * _mean(control.rates(controlled) - edited.rates(controlled)),
        p_value=mcnemar(differences),
        p_holm=math.nan,
    )


def _photos_of(conditions: tuple[Condition, ...], tally: Tally, model: int, attribute: Attribute) -> Photos:
    chosen = [position for position, condition in enumerate(conditions) if condition.attribute == attribute]
    return Photos(tally.right[model, chosen].sum(axis=0), tally.scored[model, chosen].sum(axis=0))


def _mean(values: NDArray[np.float64]) -> float:
    """The mean over the numbers among the values, the same to the bit in any order; NaN where there is none."""
    numbers = values[np.isfinite(values)].tolist()
    return math.fsum(numbers) / len(numbers) if numbers else math.nan
