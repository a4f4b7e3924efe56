"""Paired statistics: the exact percentile bootstrap of a mean difference, McNemar's exact test."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-10  # what the Fourier transform may add to or take from a probability


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def bootstrap_interval(differences: NDArray[np.float64], *, unit: int = 1, confidence: float = 0.95) -> Interval:
    """The percentile bootstrap interval of the mean, as infinitely many resamples would give it.

    The differences are multiples of 1/unit (others are rounded to it). Resampling n photos then is a sum of n
    independent draws from few values, whose distribution is known exactly: no seed, no Monte-Carlo error.
    """
    if len(differences) == 0:
        return Interval(math.nan, math.nan)
    means, mass = resample_means(differences, unit)
    tail = (1.0 - confidence) / 2.0 - _ROUNDING
    low = means[np.argmax(np.cumsum(mass) >= tail)]
    high = means[len(means) - 1 - np.argmax(np.cumsum(mass[::-1]) >= tail)]
    return Interval(float(low), float(high))


def resample_means(differences: NDArray[np.float64], unit: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The means that a resample of the photos takes, ascending, and their probabilities."""
    sums, mass = _distribution_of_sum(np.rint(differences * unit).astype(np.int64))
    return sums / (unit * len(differences)), mass


def mcnemar(differences: NDArray[np.float64]) -> float:
    """The exact two-sided p of McNemar's test; with several replicates per photo, of the sign test over photos."""
    if len(differences) == 0:
        return math.nan
    lost, gained = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    if lost == gained:
        return 1.0
    return min(1.0, 2.0 * _fair_coin_tail(min(lost, gained), lost + gained))


def _distribution_of_sum(steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The values that the sum of a resample takes, and their probabilities."""
    lowest = int(steps.min())
    counts = np.bincount(steps - lowest)
    values = lowest + np.flatnonzero(counts)
    times = counts[counts > 0]
    width = _width(steps, int(values[-1] - values[0]))
    single = np.zeros(width)
    np.add.at(single, values % width, times / len(steps))
    mass = np.fft.irfft(np.fft.rfft(single) ** len(steps), width)  # the n-fold convolution, modulo `width`
    sums = int(steps.sum()) - width // 2 + np.arange(width)
    return sums, mass[sums % width]


def _width(steps: NDArray[np.int64], spread: int) -> int:
    """How many neighbouring sums to keep: all, or those outside which less than 1e-19 lies (Bernstein's bound)."""
    reach = 12.0 * math.sqrt(len(steps)) * float(steps.std()) + 30.0 * spread
    return 2 * min(len(steps) * spread, math.ceil(reach)) + 1


def _fair_coin_tail(successes: int, tosses: int) -> float:
    """P(at most `successes` heads in `tosses` of a fair coin)."""
    k = np.arange(1, successes + 1, dtype=np.float64)
    logarithms = np.concatenate(([0.0], np.cumsum(np.log((tosses - k + 1.0) / k)))) - tosses * math.log(2.0)
    return float(np.sum(np.exp(logarithms)))
