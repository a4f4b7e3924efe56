"""Whether a model is right without the object, from what is left of the picture, more often than by guessing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Condition, Details
from counterfoil.statistics.chance import guess_rate, upper_bound
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.intervals import Estimate

_ROUNDED = 1e-9  # below it a difference is float error


class BackgroundAnswer(NamedTuple):
    """The accuracy of one model on pictures without the object, in percent, and that of guessing."""

    model: str
    condition: Condition
    accuracy: (
        Estimate  # 95 % interval over photos, exact (Clopper and Pearson): a few right answers of few photos are little
    )
    chance: float  # one of the competing classes; more where always giving the same answer would be right more often

    @property
    def above_chance(self) -> bool:
        """Whether the model is right more often than by guessing: its interval lies above that."""
        return self.accuracy.n >= FEWEST_PHOTOS and self.accuracy.ci_low > self.chance


def measure_background_answers(details: Details, classes: Mapping[str, int]) -> list[BackgroundAnswer]:
    """Return one row per model and condition without the object.

    Args:
        details: The answers with their labels.
        classes: The number of competing classes by model; those that occur where a model is not named.
    """
    answers = details.answers
    rows = []
    for model, name in enumerate(answers.models):
        competing = classes.get(name) or len(details.labels)
        for place in np.flatnonzero(answers.conditions_of({"presence"})):
            own = answers.scored & (answers.model == model) & (answers.condition == place)
            chance = guess_rate(details.label[own], details.answer[own], competing)
            accuracy = _estimate_exactly(answers.rates[model, place]).scaled(100)
            rows.append(BackgroundAnswer(name, answers.conditions[place], accuracy, 100 * chance))
    return rows


def _estimate_exactly(rates: NDArray[np.float64]) -> Estimate:
    """The mean over photos with exact bounds; of replicates the sum over photos is rounded outwards."""
    known = rates[np.isfinite(rates)]
    n, total = len(known), math.fsum(known.tolist())
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    wrong, right = n - math.floor(total + _ROUNDED), math.ceil(total - _ROUNDED)
    low, high = 1.0 - upper_bound(wrong, n, confidence=0.975), upper_bound(right, n, confidence=0.975)
    return Estimate(total / n, low, high, n)
