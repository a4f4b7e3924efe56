"""Confidence intervals of means over photos: score interval and its test, jackknife, percentile bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

INTERVAL_NAME = "score interval over photos (Tango's for paired proportions, carried over to replicates)"
RESAMPLES = 2_000
NORMAL_QUANTILE = NormalDist().inv_cdf(0.975)

_MOST_UNITS = 8_192  # drawn apart in a resample
_PRODUCT_BYTES = 1 << 23  # of the resamples that are converted to double precision together
_NORMAL = NormalDist()
_DECIMALS = 10  # differences of rates are rounded to these, so that float error does not count as a change
_HALVINGS = 44  # of the bracket of a bound, which gives a precision of 1e-13
_FEWEST_LEFT_OUT = 3  # units of a jackknife; with two the variance cannot be estimated


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float

    def scaled(self, factor: float) -> Interval:
        """Both bounds times a factor: 100 for shares to points."""
        return Interval(factor * self.low, factor * self.high)


class Estimate(NamedTuple):
    """A number with its 95 % interval and the number of photos."""

    value: float
    ci_low: float
    ci_high: float
    n: int

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in another unit: 100 turns shares into percent."""
        return Estimate(factor * self.value, factor * self.ci_low, factor * self.ci_high, self.n)


class RateBounds(NamedTuple):
    """The lowest and the highest possible value of a photo."""

    low: float
    high: float


RATE = RateBounds(0.0, 1.0)


def exact_mean(values: NDArray[np.float64]) -> float:
    """The mean of the values that are numbers, the same to the bit in any order; NaN where there is none."""
    numbers = values[np.isfinite(values)].tolist()
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def estimate(values: NDArray[np.float64], bounds: RateBounds | None = None) -> Estimate:
    """The mean over photos with its score interval; NaN values (photos without answer) are left out."""
    known = values[np.isfinite(values)]
    return Estimate(exact_mean(known), *score_interval(known, bounds=bounds), len(known))


def score_interval(
    values: NDArray[np.float64], *, bounds: RateBounds | None = None, confidence: float = 0.95
) -> Interval:
    """The means that a score test does not reject, its variance taken under the tested mean.

    The likelihood is the multinomial one over the observed values and the two bounds. On -1, 0, 1 this is Tango's
    interval of a difference of paired proportions, on 0, 1 it is Wilson's. Unless bounds are given, a change seen on
    one side of zero is taken to be possible on the other: the largest change, or 1 where nothing changed.
    """
    if len(values) == 0:
        return Interval(math.nan, math.nan)
    quantile = _NORMAL.inv_cdf(0.5 + confidence / 2.0)
    rounded = np.round(values, _DECIMALS)
    floor, ceiling = bounds or _mirrored_bounds(rounded)
    return Interval(_lower_bound(rounded, floor, quantile), -_lower_bound(-rounded, -ceiling, quantile))


def score_test(values: NDArray[np.float64], *, bounds: RateBounds | None = None) -> float:
    """The two-sided p of the score test for mean zero: on -1, 0, 1 it is McNemar's without correction.

    Bounds must be given where a photo that was not seen may be further from zero than all that were: of ten pictures
    a photo one may be lost in many, while an original that is lost counts ten times as much.
    """
    if len(values) == 0:
        return math.nan
    observed, times = np.unique(np.round(values, _DECIMALS), return_counts=True)
    total = round(float(observed @ times), _DECIMALS)
    if total == 0.0:
        return 1.0
    sign = math.copysign(1.0, total)
    low, high = bounds or _mirrored_bounds(observed)
    return math.erfc(math.sqrt(abs(total) * _multiplier(sign * observed, times, low if sign > 0 else -high) / 2.0))


def jackknife_interval(value: float, left_out: NDArray[np.float64], bounds: RateBounds) -> Interval:
    """The score interval of the pseudo-values, with Student's quantile; it has a width even where all units agree.

    `left_out` holds the measure without each unit. Where one of these has no value, that unit alone determines the
    measure, and there is no interval.
    """
    n = len(left_out)
    if n < _FEWEST_LEFT_OUT or not np.isfinite([value, *left_out]).all():
        return Interval(math.nan, math.nan)
    pseudo = n * value - (n - 1) * left_out
    possible = RateBounds(min(bounds.low, float(pseudo.min())), max(bounds.high, float(pseudo.max())))
    low, high = score_interval(pseudo, bounds=possible, confidence=student_confidence(n - 1))
    return Interval(max(bounds.low, min(low, value)), min(bounds.high, max(high, value)))


class ResampleCounts(np.ndarray[Any, np.dtype[Any]]):
    """How often photos, or groups of photos, are drawn, (resamples, photos or groups), in a byte each.

    A product with values by photo is taken in double precision, some rows at a time. With groups, the photos of one
    group are drawn together: with thousands of groups at random this gives the same spread in less time and memory.
    """

    groups: PhotoGroups | None = None  # None where every photo is drawn by itself

    def __matmul__(self, other: Any) -> Any:
        """Sums of the values in each resample; `other` is (photos,) or (photos, columns)."""
        values = np.asarray(other)
        if self.groups is not None:
            values = self.groups.sums(values)
        plain = np.asarray(self)
        at_once = _rows_at_once(plain.shape[1])
        blocks = range(0, max(1, len(plain)), at_once)
        return np.concatenate([plain[start : start + at_once].astype(np.float64) @ values for start in blocks])


class PhotoGroups(NamedTuple):
    """Photos that are drawn together."""

    order: NDArray[np.intp]  # the photos, group by group
    starts: NDArray[np.intp]  # where each group begins in `order`

    @classmethod
    def draw(cls, n: int, rng: np.random.Generator) -> PhotoGroups:
        """As many groups as are drawn apart, of n photos at random."""
        return cls(rng.permutation(n), np.arange(_MOST_UNITS) * n // _MOST_UNITS)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values (photos, ...) summed by group."""
        return np.add.reduceat(values[self.order], self.starts, axis=0)


def _rows_at_once(units: int) -> int:
    """The resamples of so many photos or groups that are held in double precision together."""
    return max(1, _PRODUCT_BYTES // (8 * max(1, units)))


def resample_counts(
    n: int, rng: np.random.Generator, *, resamples: int = RESAMPLES, strata: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """How often each of n photos is drawn, (resamples, n); within strata, each stratum keeps its size.

    Of more than 8,192 photos without strata, random groups are drawn; the result is then good for products only. For
    few products `sum_resamples` gives the same sums in less memory.
    """
    if strata is None and n > _MOST_UNITS:
        groups = PhotoGroups.draw(n, rng)
        drawn = resample_counts(_MOST_UNITS, rng, resamples=resamples).view(ResampleCounts)
        drawn.groups = groups
        return drawn
    counts = np.empty((resamples, n), np.uint8)  # a photo is never drawn 256 times
    _draw_counts(counts, rng, np.zeros(n, np.intp) if strata is None else strata)
    return counts.view(ResampleCounts)


def _draw_counts(counts: NDArray[Any], rng: np.random.Generator, strata: NDArray[np.intp]) -> None:
    """Fill the rows with how often each photo is drawn; each stratum keeps its size."""
    order = np.argsort(strata, kind="stable")
    _, first, inverse, sizes = np.unique(strata[order], return_index=True, return_inverse=True, return_counts=True)
    start, size = first[inverse], sizes[inverse]  # where each photo's stratum begins, and how many photos it has
    for row in counts:
        row[order] = np.bincount(start + rng.integers(0, size), minlength=len(strata))


def sum_resamples(
    values: Sequence[NDArray[np.float64]], rng: np.random.Generator, *, resamples: int = RESAMPLES
) -> list[NDArray[np.float64]]:
    """The sums of values by photo, each (photos,) or (photos, columns), in the same resamples of the photos.

    They are those of `resample_counts(...) @ values`, to the bit. Some resamples at a time are drawn and used, so that
    memory grows with neither resamples nor photos.
    """
    n = len(values[0])
    if n > _MOST_UNITS:
        groups = PhotoGroups.draw(n, rng)
        values = [groups.sums(each) for each in values]
    units = min(n, _MOST_UNITS)
    block = np.empty((min(resamples, _rows_at_once(units)), units), np.float64)  # filled anew in each turn
    sums: list[list[NDArray[np.float64]]] = [[] for _ in values]
    for start in range(0, resamples, len(block)):
        counts = block[: resamples - start]
        _draw_counts(counts, rng, np.zeros(units, np.intp))
        for own, each in zip(sums, values, strict=True):
            own.append(counts @ each)
    return [np.concatenate(own) for own in sums]


def resampled_means(tables: Sequence[NDArray[np.float64]], rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """The mean of each row of tables (rows, photos) in the same resamples, (resamples, rows); NaNs are left out."""
    known = [np.isfinite(table) for table in tables]
    sums = sum_resamples(
        [part for table, there in zip(tables, known, strict=True)
         for part in (np.where(there, table, 0.0).T, there.T.astype(np.float64))], rng,
    )  # fmt: skip
    with np.errstate(invalid="ignore"):  # a row or resample without values has no mean
        return [total / times for total, times in zip(sums[::2], sums[1::2], strict=True)]


def percentile_interval(values: NDArray[np.float64], *, confidence: float = 0.95) -> Interval:
    """The central interval of the resampled values; NaN where a resample had no value: the share is then unknown."""
    if len(values) == 0 or np.isnan(values).any():
        return Interval(math.nan, math.nan)
    ordered, n = np.sort(values), len(values)
    # ranks, not interpolation: a value may be infinite, and infinity times zero is no number
    low, high = (math.ceil(round(share * n, 6)) - 1 for share in ((1 - confidence) / 2, (1 + confidence) / 2))
    return Interval(float(ordered[max(low, 0)]), float(ordered[high]))


def student_quantile(freedom: float) -> float:
    """Student's 97.5 % quantile by Fisher's expansion in 1 / freedom; too small below 3 degrees of freedom."""
    z, few = NORMAL_QUANTILE, max(1.0, freedom)
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return math.fsum(term / few**power for power, term in enumerate(terms))


def student_confidence(freedom: float) -> float:
    """The confidence at which the normal quantile equals Student's 95 % quantile."""
    return 2 * _NORMAL.cdf(student_quantile(freedom)) - 1


def _mirrored_bounds(values: NDArray[np.float64]) -> RateBounds:
    reach = float(np.abs(values).max()) or 1.0
    return RateBounds(-reach, reach)


def _lower_bound(values: NDArray[np.float64], floor: float, quantile: float) -> float:
    """The smallest mean that the score test does not reject.

    Under the tested mean t the likelihood weights a value v by 1 / (1 + m (v - t)), and the squared score is
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
            return math.inf  # at the edge the floor's own weight is unbounded
        return -sum(
            many * (value - tested) / (n * (mean - tested) + square * (value - tested))
            for value, many in zip(observed, times, strict=True)
        )

    if observed[0] > floor and shortfall(edge) <= 0.0:
        return edge
    return _bisect(shortfall, floor, edge)


def _multiplier(observed: NDArray[np.float64], times: NDArray[np.intp], floor: float) -> float:
    """The m > 0 at which the values, weighted by 1 / (1 + m v), have mean zero; at most what the floor allows."""

    def deficit(m: float) -> float:
        return -float(np.sum(times * observed / (1.0 + m * observed)))

    limit = -1.0 / floor
    if observed.min() > floor and deficit(limit) <= 0.0:
        return limit
    return _bisect(deficit, 0.0, limit)


def _bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rising(middle) < 0.0 else (low, middle)
    return high
