"""Intervals for means and differences of photos, resampling, Holm and Benjamini-Hochberg."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def _fair_coin_tail(successes: int, tosses: int) -> float:
    """P(at most `successes` heads in `tosses` of a fair coin)."""
    k = np.arange(1, successes + 1, dtype=np.float64)
    logarithms = np.concatenate(([0.0], np.cumsum(np.log((tosses - k + 1.0) / k)))) - tosses * math.log(2.0)
    return float(np.sum(np.exp(logarithms)))


INTERVAL_NAME = "score interval over photos (Tango's for paired proportions, carried over to replicates)"

_NORMAL = NormalDist()
_DECIMALS = 10  # differences of rates are rounded to these: what a float adds to them is no change of an answer
_HALVINGS = 44  # of the bracket of a bound, which is then known to 1e-13


class RateBounds(NamedTuple):
    """Between which values a photo's number can lie at all."""

    low: float
    high: float


class Estimate(NamedTuple):
    """A number with its 95 % interval and the photos behind it."""

    value: float
    ci_low: float
    ci_high: float
    n: int

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit: 100 turns shares into percent."""
        return Estimate(factor * self.value, factor * self.ci_low, factor * self.ci_high, self.n)


RATE = RateBounds(0.0, 1.0)


def score_interval(
    values: NDArray[np.float64], *, bounds: RateBounds | None = None, confidence: float = 0.95
) -> Interval:
    """The means that a score test does not reject, its variance taken under the mean that is tested.

    The likelihood is the multinomial one over the observed values and the two bounds. On -1, 0, 1 this is Tango's
    interval of a difference of paired proportions, on 0, 1 it is Wilson's. Unless bounds are given, what was seen on
    one side of zero is taken to be possible on the other: the largest change, or 1 where nothing changed.
    """
    if len(values) == 0:
        return Interval(math.nan, math.nan)
    quantile = _NORMAL.inv_cdf(0.5 + confidence / 2.0)
    clean = np.round(values, _DECIMALS)
    floor, ceiling = bounds or _mirrored(clean)
    return Interval(_lower_bound(clean, floor, quantile), -_lower_bound(-clean, -ceiling, quantile))


def score_test(values: NDArray[np.float64]) -> float:
    """The two-sided p of the score test that the mean is zero: on -1, 0, 1 it is McNemar's without correction."""
    if len(values) == 0:
        return math.nan
    observed, times = np.unique(np.round(values, _DECIMALS), return_counts=True)
    total = round(float(observed @ times), _DECIMALS)
    if total == 0.0:
        return 1.0
    sign = math.copysign(1.0, total)
    return math.erfc(math.sqrt(abs(total) * _multiplier(sign * observed, times, _mirrored(observed).low) / 2.0))


def estimate(values: NDArray[np.float64], bounds: RateBounds | None = None) -> Estimate:
    """The mean over photos with its score interval; NaN among the values are photos without answer, left out."""
    known = values[np.isfinite(values)]
    mean = math.fsum(known.tolist()) / len(known) if len(known) else math.nan
    return Estimate(mean, *score_interval(known, bounds=bounds), len(known))


def _mirrored(values: NDArray[np.float64]) -> RateBounds:
    reach = float(np.abs(values).max()) or 1.0
    return RateBounds(-reach, reach)


def _lower_bound(values: NDArray[np.float64], floor: float, quantile: float) -> float:
    """The smallest mean that the score test keeps.

    Under the tested mean t the likelihood weighs a value v by 1 / (1 + m (v - t)), and the squared score is
    n (mean - t) m. Setting it to quantile**2 gives m, and one equation in t is left. Where no photo reaches the
    floor, the likelihood may put weight there: then m is as large as the floor allows, and t has a closed form.
    """
    distinct, counts = np.unique(values, return_counts=True)
    observed: list[float] = distinct.tolist()
    times: list[int] = counts.tolist()
    n, square = len(values), quantile**2
    mean = sum(value * many for value, many in zip(observed, times, strict=True)) / n  # the same in any order of photos
    edge = (n * mean + square * floor) / (n + square)

    def shortfall(tested: float) -> float:
        if n * (mean - tested) + square * (observed[0] - tested) <= 0.0:
            return math.inf  # at the edge the floor's own weight has no limit
        return -sum(
            many * (value - tested) / (n * (mean - tested) + square * (value - tested))
            for value, many in zip(observed, times, strict=True)
        )

    if observed[0] > floor and shortfall(edge) <= 0.0:
        return edge
    return _root(shortfall, floor, edge)


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rising(middle) < 0.0 else (low, middle)
    return high


def _multiplier(observed: NDArray[np.float64], times: NDArray[np.intp], floor: float) -> float:
    """The m > 0 at which the values, weighed by 1 / (1 + m v), have mean zero; at most what the floor allows."""

    def deficit(m: float) -> float:
        return -float(np.sum(times * observed / (1.0 + m * observed)))

    limit = -1.0 / floor
    if observed.min() > floor and deficit(limit) <= 0.0:
        return limit
    return _root(deficit, 0.0, limit)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment over all p values that are numbers; NaN stays NaN and counts for nothing."""
    order = sorted((p, position) for position, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for rank, (p, position) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[position] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The step-up adjustment that bounds the share of false findings; NaN stays NaN and counts for nothing."""
    order = sorted((p, position) for position, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    smallest = 1.0
    for rank, (p, position) in reversed(list(enumerate(order, start=1))):
        smallest = min(smallest, p * len(order) / rank)
        adjusted[position] = smallest
    return adjusted


RESAMPLES = 2_000


def resample_counts(
    n: int, rng: np.random.Generator, *, resamples: int = RESAMPLES, strata: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """How often each of n photos is drawn, (resamples, n); within strata, each stratum keeps its size."""
    groups = np.zeros(n, np.intp) if strata is None else strata
    order = np.argsort(groups, kind="stable")
    _, first, inverse, sizes = np.unique(groups[order], return_index=True, return_inverse=True, return_counts=True)
    start, size = first[inverse], sizes[inverse]  # where each photo's stratum begins, and how many photos it has
    counts = np.empty((resamples, n))
    for row in counts:
        row[order] = np.bincount(start + rng.integers(0, size), minlength=n)
    return counts


def percentile_interval(values: NDArray[np.float64], *, confidence: float = 0.95) -> Interval:
    """The middle share of the resampled values; NaN where a resample had no value, since the share is then unknown."""
    if len(values) == 0 or np.isnan(values).any():
        return Interval(math.nan, math.nan)
    ordered, n = np.sort(values), len(values)
    # ranks, not interpolation: a value may be infinite, and infinity times zero is no number
    low, high = (math.ceil(round(share * n, 6)) - 1 for share in ((1 - confidence) / 2, (1 + confidence) / 2))
    return Interval(float(ordered[max(low, 0)]), float(ordered[high]))
