"""Error consistency: whether two models fail on the same pictures more often than their accuracies let expect."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, Condition, count
from counterfoil.analyse.interval import Estimate
from counterfoil.analyse.resampling import percentile_interval, resample_counts


class Consistency(NamedTuple):
    """Cohen's kappa of two models' right and wrong answers: 1 the same failures, 0 independent ones."""

    first: str
    second: str
    pictures: int
    observed: float  # share of pictures on which both are right or both wrong
    expected: float  # the same, were the failures independent
    kappa: Estimate  # n counts photos; NaN where both are always right or always wrong


def error_consistency(
    answers: Answers, rng: np.random.Generator, *, conditions: Collection[Condition] | None = None
) -> list[Consistency]:
    """Kappa of every pair of models over the pictures that both answered; interval by photos resampled."""
    correct = _by_picture(answers, answers.conditions if conditions is None else conditions)
    counts = resample_counts(len(answers.samples), rng)
    pairs = itertools.combinations(range(len(answers.models)), 2)
    return [_consistency((answers.models[a], answers.models[b]), correct[a], correct[b], counts) for a, b in pairs]


def _by_picture(answers: Answers, conditions: Collection[Condition]) -> NDArray[np.float64]:
    """1 right, 0 wrong, NaN unanswered, (models, pictures of a photo, photos)."""
    count(answers)  # refuses an answer that is there twice
    replicates = int(answers.replicate.max(initial=0)) + 1
    wanted = np.array([condition in conditions for condition in answers.conditions], dtype=bool)
    table = np.full((len(answers.models), len(answers.conditions) * replicates, len(answers.samples)), np.nan)
    rows = answers.scored & wanted[answers.condition]
    picture = answers.condition[rows] * replicates + answers.replicate[rows]
    table[answers.model[rows], picture, answers.sample[rows]] = answers.correct[rows]
    return table


def _consistency(
    names: tuple[str, str], first: NDArray[np.float64], second: NDArray[np.float64], counts: NDArray[np.float64]
) -> Consistency:
    both = np.isfinite(first) & np.isfinite(second)
    sums = np.stack([np.where(both, value, 0.0).sum(axis=0) for value in (both, first == second, first, second)])
    total, same, right_first, right_second = sums.sum(axis=1)
    kappa, observed, expected = _kappa(total, same, right_first, right_second)
    resampled = _kappa(*(counts @ row for row in sums))[0]
    photos = int(both.any(axis=0).sum())
    return Consistency(
        *names, int(total), float(observed), float(expected),
        Estimate(float(kappa), *percentile_interval(np.atleast_1d(resampled)), photos),
    )  # fmt: skip


def _kappa(
    total: NDArray[np.float64], same: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Kappa, the observed and the expected agreement."""
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: no picture, or nothing to agree about
        observed = same / total
        expected = (first * second + (total - first) * (total - second)) / total**2
        return (observed - expected) / (1.0 - expected), observed, expected
