"""Two models on the same photos."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition, original_rates, photo_rates, place_of
from counterfoil.statistics.intervals import _fair_coin_tail, estimate, holm, score_test


class Contrast(NamedTuple):
    """How far two models lie apart under one condition, over the photos that both answered; in points."""

    first: str
    second: str
    condition: Condition
    n: int
    value_first: float  # drop in points, or accuracy in percent
    value_second: float
    difference: float  # value_first - value_second
    ci_low: float
    ci_high: float
    p_value: float
    p_holm: float = math.nan


def compare_drops(answers: Answers, first: str, second: str) -> list[Contrast]:
    """Drop of the first minus drop of the second, by condition: positive where the second loses less."""
    chosen = [place_of(answers, first), place_of(answers, second)]
    losses = original_rates(answers)[chosen][:, None, :] - photo_rates(answers)[chosen]
    conditions = [c for c, condition in enumerate(answers.conditions) if condition.attribute != "original"]
    pairs = ((answers.conditions[c], losses[0, c], losses[1, c]) for c in conditions)
    return _adjusted([_contrast((first, second), *pair) for pair in pairs])


def compare_accuracies(answers: Answers, first: str, second: str) -> list[Contrast]:
    """Accuracy of the first minus accuracy of the second, by condition, the original included."""
    rates = photo_rates(answers)[[place_of(answers, first), place_of(answers, second)]]
    pairs = ((condition, rates[0, c], rates[1, c]) for c, condition in enumerate(answers.conditions))
    return _adjusted([_contrast((first, second), *pair) for pair in pairs])


def _contrast(
    models: tuple[str, str],
    condition: Condition,
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> Contrast:
    both = np.isfinite(first) & np.isfinite(second)
    gaps = first[both] - second[both]
    difference = estimate(gaps).scaled(100)
    return Contrast(
        *models,
        condition,
        difference.n,
        value_first=100 * estimate(first[both]).value,
        value_second=100 * estimate(second[both]).value,
        difference=difference.value,
        ci_low=difference.ci_low,
        ci_high=difference.ci_high,
        p_value=score_test(gaps),
    )


def _adjusted(rows: list[Contrast]) -> list[Contrast]:
    adjusted = holm([row.p_value for row in rows])
    return [row._replace(p_holm=p) for row, p in zip(rows, adjusted, strict=True)]


def mcnemar(differences: NDArray[np.float64]) -> float:
    """The exact two-sided p of McNemar's test; with several replicates per photo, of the sign test over photos."""
    if len(differences) == 0:
        return math.nan
    lost, gained = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    if lost == gained:
        return 1.0
    return min(1.0, 2.0 * _fair_coin_tail(min(lost, gained), lost + gained))
