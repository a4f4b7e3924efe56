"""Paired statistics: the bootstrap interval of a mean difference, McNemar's exact test, Holm's adjustment."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    sums, mass = _distribution_of_sum(np.rint(differences * unit).astype(np.int64))
    tail = (1.0 - confidence) / 2.0 - _ROUNDING
    low = sums[np.argmax(np.cumsum(mass) >= tail)]
    high = sums[len(sums) - 1 - np.argmax(np.cumsum(mass[::-1]) >= tail)]
    scale = unit * len(differences)
    return Interval(float(low / scale), float(high / scale))


def mcnemar(differences: NDArray[np.float64]) -> float:
    """The exact two-sided p of McNemar's test; with several replicates per photo, of the sign test over photos."""
    if len(differences) == 0:
        return math.nan
    lost, gained = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    if lost == gained:
        return 1.0
    return min(1.0, 2.0 * _fair_coin_tail(min(lost, gained), lost + gained))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment over all p values that are numbers; NaN stays NaN and counts for nothing."""
    order = sorted((p, position) for position, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for rank, (p, position) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[position] = largest
    return adjusted


def _distribution_of_sum(steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The values that the sum of a resample takes, and their probabilities."""
    values, times = np.unique(steps, return_counts=True)
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
