"""Bootstrap intervals of a mean over photos, by percentile and by BCa, for comparison with the score interval."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.intervals import Interval

_NORMAL = NormalDist()
_ROUNDING = 1e-10  # what the Fourier transform may add to or take from a probability


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


def bca_interval(differences: NDArray[np.float64], *, unit: int = 1, confidence: float = 0.95) -> Interval:
    """The bias-corrected and accelerated bootstrap interval of the mean, as infinitely many resamples would give it."""
    if len(differences) == 0 or np.ptp(differences) == 0.0:
        return bootstrap_interval(differences, unit=unit, confidence=confidence)
    means, mass = resample_means(differences, unit)
    centre = float(np.rint(differences * unit).sum()) / (unit * len(differences))
    step = 0.5 / (unit * len(differences))
    below, at = mass[means < centre - step].sum(), mass[np.abs(means - centre) <= step].sum()
    bias = _NORMAL.inv_cdf(float(below + at / 2.0))
    acceleration = _acceleration(differences)
    cumulative = np.cumsum(mass)
    tail = (1.0 - confidence) / 2.0
    low, high = (_adjusted(_NORMAL.inv_cdf(p), bias, acceleration) for p in (tail, 1.0 - tail))
    return Interval(_quantile(means, cumulative, low), _quantile(means, cumulative, high))


def resample_means(differences: NDArray[np.float64], unit: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The means that a resample of the photos takes, ascending, and their probabilities."""
    sums, mass = _distribution_of_sum(np.rint(differences * unit).astype(np.int64))
    return sums / (unit * len(differences)), mass


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


def _acceleration(differences: NDArray[np.float64]) -> float:
    """A sixth of the jackknife's skewness."""
    gaps = differences - differences.mean()
    return float(np.sum(gaps**3) / (6.0 * np.sum(gaps**2) ** 1.5))


def _adjusted(quantile: float, bias: float, acceleration: float) -> float:
    shifted = bias + quantile
    return _NORMAL.cdf(bias + shifted / (1.0 - acceleration * shifted))


def _quantile(means: NDArray[np.float64], cumulative: NDArray[np.float64], probability: float) -> float:
    place = int(np.searchsorted(cumulative, probability))
    return float(means[min(place, len(means) - 1)])
