"""Intervals of shares of pictures that come in photos, of sums of such shares, and of changes from one to another.

No resampling: what a share owes to each photo gives its variance, and how few photos there are widens the interval. A
bootstrap of few photos is sure of itself, the more so where all fail (bench/mining_coverage.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.interval import Estimate, score_interval
from counterfoil.analyse.paired import Interval
from counterfoil.types import PhotoShare

_NORMAL = NormalDist()
_QUANTILE = _NORMAL.inv_cdf(0.975)
_FEWEST_FOR_A_SHARE = 2.0  # effective photos; below this a share can be anything
_FEWEST_FOR_A_CHANGE = 3.0
_NOTHING = 1e-12  # of a pull: what a float leaves where a photo moves nothing


def effective_photos(share: PhotoShare) -> float:
    """How many photos of equally many pictures would tell as much (Kish); 0 where there is no picture."""
    squares = float((share.parts**2).sum())
    return 1.0 / squares if squares > 0 else 0.0


def share_estimate(share: PhotoShare) -> Estimate:
    """The share with its interval: Wilson's, or everything from 0 to 1 where one photo carries it."""
    few = 0 < effective_photos(share) < _FEWEST_FOR_A_SHARE
    return Estimate(share.value, *(Interval(0.0, 1.0) if few else wilson(share)), round(share.pictures))


def wilson(share: PhotoShare) -> Interval:
    """Wilson's interval for as many independent pictures as carry the same variance (Korn and Graubard)."""
    if math.isnan(share.value):
        return Interval(math.nan, math.nan)
    effective = _effective_pictures(share)
    spread = _QUANTILE**2 / effective
    centre = (share.value + spread / 2) / (1 + spread)
    reach = _QUANTILE * math.sqrt(share.value * (1 - share.value) / effective + spread / (4 * effective)) / (1 + spread)
    return Interval(max(0.0, centre - reach), min(1.0, centre + reach))


def combined(terms: Sequence[tuple[float, PhotoShare]], value: float) -> Interval:
    """The interval of how much higher one share is than another, as a sum of shares that are each times a factor.

    From their own intervals and how they vary together: Newcombe's for two independent shares, Zou and Donner's (MOVER)
    for shares over the same photos. The value is given, as it need not be linear: the factors are then its derivatives.
    """
    if any(0 < effective_photos(share) < _FEWEST_FOR_A_CHANGE for _, share in terms):
        return Interval(-1.0, 1.0)  # two photos always vary together, and what they say would cancel to certainty
    factors = np.array([factor for factor, _ in terms])
    ends = np.array([share_estimate(share)[:3] for _, share in terms])  # value, low, high
    below, above = ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 0]
    down = factors * np.where(factors > 0, below, above)
    up = factors * np.where(factors > 0, above, below)
    together = _correlations(np.stack([share.pulls for _, share in terms]))
    low, high = value - _length(down, together), value + _length(up, together)
    return Interval(max(min(-1.0, value), low), min(max(1.0, value), high))  # lengths add up to more than all there is


def change(before: PhotoShare, after: PhotoShare) -> Estimate:
    """How much higher a share, or a mean over photos, is on other pictures of the same photos.

    The score interval of what every photo adds to the change, with Student's quantile for the photos of the smaller
    side; none where that rests on fewer than three.
    """
    value, n = after.value - before.value, round(after.pictures)
    photos = min(effective_photos(before), effective_photos(after))
    if photos < _FEWEST_FOR_A_CHANGE:
        return Estimate(value, math.nan, math.nan, n)
    there = (before.parts > 0) | (after.parts > 0)
    added = value + int(there.sum()) * (after.pulls - before.pulls)[there]
    confidence = 2 * _NORMAL.cdf(student(photos - 1)) - 1
    return Estimate(value, *score_interval(added, confidence=confidence), n)


def mean_over_photos(values: NDArray[np.float64]) -> PhotoShare:
    """The mean of one number per photo, as a share that every photo has an equal part of; NaN are photos without."""
    known = np.isfinite(values)
    n = int(known.sum())
    mean = float(values[known].mean()) if n else math.nan
    return PhotoShare(mean, np.where(known, values - mean, 0.0) / max(n, 1), known / max(n, 1), n)


def student(freedom: float) -> float:
    """Student's 97.5 % quantile by Fisher's expansion in 1 / freedom; below 3 it is too small, but so are the sets."""
    z, few = _QUANTILE, max(1.0, freedom)
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return math.fsum(term / few**power for power, term in enumerate(terms))


def _effective_pictures(share: PhotoShare) -> float:
    """How many independent pictures tell as much: all of them at most, at least what photos of one answer each tell.

    The variance is the jackknife's, photo by photo. Few photos show it badly, which Student's quantile pays for; where
    all succeed or all fail it shows nothing, and photos count.
    """
    photos = int((share.parts > 0).sum())
    fewest = effective_photos(share)
    if photos < 2 or share.value in (0.0, 1.0):
        return fewest
    moved = share.pulls / np.maximum(1.0 - share.parts, _NOTHING)
    variance = float((moved**2).sum()) * (photos - 1) / photos * (student(fewest - 1) / _QUANTILE) ** 2
    most = float(share.pictures)
    return max(fewest, min(most, share.value * (1 - share.value) / variance)) if variance > 0 else most


def _correlations(pulls: NDArray[np.float64]) -> NDArray[np.float64]:
    """How shares vary together over photos, (shares, shares); one that does not vary goes with no other."""
    lengths = np.sqrt((pulls**2).sum(axis=1))
    units = np.where(lengths[:, None] > _NOTHING, pulls, 0.0) / np.maximum(lengths, _NOTHING)[:, None]
    found = units @ units.T
    np.fill_diagonal(found, 1.0)
    return np.asarray(found, np.float64)


def _length(parts: NDArray[np.float64], together: NDArray[np.float64]) -> float:
    return math.sqrt(max(0.0, float(parts @ together @ parts)))
