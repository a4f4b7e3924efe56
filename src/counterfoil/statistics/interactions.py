"""Interactions: whether two edits at once cost more than the sum of what each costs alone, photo by photo."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.drops import FEWEST_PHOTOS, widen
from counterfoil.statistics.families import INTERACTIONS, Correction, correct_tests
from counterfoil.statistics.intervals import exact_mean
from counterfoil.statistics.photo_tests import mean_interval, p_of_mean
from counterfoil.statistics.references import (
    add_losses,
    find_parts,
    list_conditions,
    part_rates,
    tool_shifts,
    tool_uncertainty,
)
from counterfoil.statistics.significance import SIGNIFICANCE
from counterfoil.types import EditLevel


class Interaction(NamedTuple):
    """The 2 x 2 test of one model, over the photos with all four: original, first edit, second, both; in points."""

    model: str
    condition: Condition  # both at once
    first: EditLevel
    second: EditLevel
    n: int
    drop_first: float  # against the original
    drop_second: float
    drop_both: float
    excess: float  # drop_both - drop_first - drop_second
    p_value: float
    low: float = math.nan  # interval of the excess, 95 % for all interactions of the model together, tool included
    high: float = math.nan
    p_adjusted: float = math.nan

    @property
    def second_after_first(self) -> float:
        """What the second edit costs on the picture that the first made: of size, on another photo's ground."""
        return self.drop_both - self.drop_first

    @property
    def is_significant(self) -> bool:
        """Whether there are enough photos and the interval excludes zero; `p_adjusted` is then below 0.05."""
        return self.n >= FEWEST_PHOTOS and (self.low > 0 or self.high < 0) and self.p_adjusted < SIGNIFICANCE

    @property
    def costs(self) -> bool:
        """Whether both at once cost more than the sum."""
        return self.is_significant and self.excess > 0


def measure_interactions(answers: Answers) -> list[Interaction]:
    """Return one row per model and condition that makes two edits at once, where the table contains both alone.

    Crossed are the edits of a combination, and position and direction with the size of the object. Drops are added
    as points: where one edit alone leaves little to lose, both at once cost less than the sum, which is no fault.
    """
    crossed = [
        (place, parts) for place in list_conditions(answers) if (parts := find_parts(answers, place)) is not None
    ]
    rows = [_measure(answers, model, *own) for model in range(len(answers.models)) for own in crossed]
    tests = [(own.model, own.condition.attribute, own.p_value) for own, _, _ in rows]
    corrections = correct_tests(tests, INTERACTIONS)
    return [_judge(*row, own) for row, own in zip(rows, corrections, strict=True) if row[0].n]


def _measure(
    answers: Answers, model: int, place: int, parts: tuple[EditLevel, EditLevel]
) -> tuple[Interaction, NDArray[np.float64], float]:
    """The row without its interval, each photo's loss beyond the sum, and the tool's spread."""
    condition, original = answers.conditions[place], answers.original_rates[model]
    both = answers.rates[model, place]
    excess = add_losses(answers, parts)[model] - both
    known = np.isfinite(excess)
    drops = [
        100 * exact_mean(original[known] - rates[known])
        for rates in (*(part_rates(answers, part)[model] for part in parts), both)
    ]
    row = Interaction(
        model=answers.models[model],
        condition=condition,
        first=parts[0],
        second=parts[1],
        n=int(known.sum()),
        drop_first=drops[0],
        drop_second=drops[1],
        drop_both=drops[2],
        excess=100 * exact_mean(excess),
        p_value=p_of_mean(excess[known], 4),
    )
    spread = tool_uncertainty([tool_shifts(answers, condition, parts)], model, [condition.edit], photos=row.n)
    return row, excess[known], 100 * spread


def _judge(row: Interaction, excess: NDArray[np.float64], spread: float, correction: Correction) -> Interaction:
    interval = mean_interval(excess, 4, confidence=correction.confidence).scaled(100)
    low, high = widen(row.excess, interval, spread)
    return row._replace(low=low, high=high, p_adjusted=correction.p_adjusted)
