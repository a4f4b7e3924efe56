"""ImageNet-9's measures: the gap between backgrounds of the same and of another class, and survival of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from counterfoil.analyse.answers import Answers, Condition, count, photo_rates, place_of
from counterfoil.analyse.interval import RATE, Estimate, estimate


def background_gap(answers: Answers, model: str, *, same: Condition, other: Condition) -> Estimate:
    """BG-gap in points: accuracy on backgrounds of the same class minus accuracy on other classes', paired by photo."""
    rates = photo_rates(answers)[place_of(answers, model)]
    gaps = rates[answers.conditions.index(same)] - rates[answers.conditions.index(other)]
    return estimate(gaps).scaled(100)


def survive_all(answers: Answers, model: str, conditions: Sequence[Condition]) -> Estimate:
    """Percent of photos that are right under every one of the conditions and replicates; incomplete photos left out."""
    tally = count(answers)
    chosen = [answers.conditions.index(condition) for condition in conditions]
    place = place_of(answers, model)
    right, scored = tally.right[place, chosen], tally.scored[place, chosen]
    survived = np.where((scored > 0).all(axis=0), (right == scored).all(axis=0), np.nan)
    return estimate(survived, RATE).scaled(100)
