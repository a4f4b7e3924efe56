"""Shares of pictures clustered by photo, and intervals of a share, of a change and of a sum of shares.

No resampling: the influence of each photo gives the variance of a share, and few photos widen its interval. A bootstrap
of few photos is too narrow, most of all where all fail (bench/mining_coverage.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.intervals import (
    NORMAL_QUANTILE,
    Estimate,
    Interval,
    score_interval,
    student_confidence,
    student_quantile,
)

_FEWEST_FOR_A_SHARE = 2.0  # effective photos; with fewer, the interval is 0 to 1
_FEWEST_FOR_A_CHANGE = 3.0
_NOTHING = 1e-12  # an influence below this is float error


class PhotoShare(NamedTuple):
    """A share of pictures with the influence of each photo: pictures of one photo are correlated."""

    value: float  # NaN where there is no picture
    influences: NDArray[np.float64]  # (photos,): by how much each photo moves the value; sums to 0
    weights: NDArray[np.float64]  # (photos,): each photo's part of the pictures; sums to 1
    pictures: float  # number of pictures; a mean over the sets where the share is a mean of several


class PhotoCounts(NamedTuple):
    """The photo of each picture."""

    photo: NDArray[np.intp]  # (pictures,)
    many: int

    def counts(
        self, hits: NDArray[np.bool_], kinds: Iterable[NDArray[np.bool_]] | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Count the hits of each photo, (photos, questions), separately for each kind of picture.

        Hits are (questions, pictures), a kind is (pictures,); without kinds all pictures are one kind.
        """
        questions = len(hits)
        question, picture = np.nonzero(hits)
        cell = self.photo[picture] * questions + question
        for kind in [np.ones(hits.shape[1], bool)] if kinds is None else kinds:
            counts = np.bincount(cell, kind[picture], self.many * questions)
            yield np.asarray(counts.reshape(self.many, questions), np.float64)


class ShareSum(NamedTuple):
    """The sum of several shares, and the number of sets; a set without a picture has no share."""

    sets: int
    empty: int
    total: PhotoShare  # sum of each field
    lowest: float
    highest: float

    def joined(self, other: ShareSum) -> ShareSum:
        """Return the sum of both."""
        return ShareSum(
            self.sets + other.sets,
            self.empty + other.empty,
            PhotoShare(
                self.total.value + other.total.value,
                self.total.influences + other.total.influences,
                self.total.weights + other.total.weights,
                self.total.pictures + other.total.pictures,
            ),
            float(np.fmin(self.lowest, other.lowest)),
            float(np.fmax(self.highest, other.highest)),
        )

    @property
    def mean(self) -> PhotoShare:
        """The mean share over the sets that have one."""
        if not self.sets:
            return self.total._replace(value=np.nan)
        value, influences, weights, pictures = self.total
        return PhotoShare(value / self.sets, influences / self.sets, weights / self.sets, pictures / self.sets)


def sum_shares(hits: NDArray[np.float64], among: NDArray[np.float64]) -> ShareSum:
    """Sum the shares of counted hits among counted pictures, (photos, sets) each."""
    filled = among.sum(axis=0) > 0
    own, every = hits[:, filled], among[:, filled]
    sizes = every.sum(axis=0)
    values = own.sum(axis=0) / sizes
    weights = every / sizes
    # where all succeed or all fail, pictures of one photo count as one
    pictures = np.where((values == 0) | (values == 1), 1 / (weights**2).sum(axis=0), sizes)
    influences = ((own - values * every) / sizes).sum(axis=1)
    total = PhotoShare(float(values.sum()), influences, weights.sum(axis=1), float(pictures.sum()))
    ends = (float(values.min()), float(values.max())) if filled.any() else (np.nan, np.nan)
    return ShareSum(int(filled.sum()), int((~filled).sum()), total, *ends)


def pooled_share(hits: NDArray[np.bool_], among: NDArray[np.bool_], photos: PhotoCounts) -> PhotoShare:
    """The share of hits among pictures, (pictures,) each, or (models, pictures) pooled over all pairs."""
    photo = np.broadcast_to(photos.photo, among.shape)[among]
    own, every = (np.bincount(photo, weight, photos.many)[:, None].astype(np.float64) for weight in (hits[among], None))
    return sum_shares(own, every).mean._replace(pictures=float(len(photo)))


def mean_share(values: NDArray[np.float64]) -> PhotoShare:
    """The mean of one number per photo, as a share with equal weights; NaN are photos without a number."""
    known = np.isfinite(values)
    n = int(known.sum())
    mean = float(values[known].mean()) if n else math.nan
    return PhotoShare(mean, np.where(known, values - mean, 0.0) / max(n, 1), known / max(n, 1), n)


def effective_photos(share: PhotoShare) -> float:
    """Kish's effective number of photos; 0 where there is no picture."""
    squares = float((share.weights**2).sum())
    return 1.0 / squares if squares > 0 else 0.0


def estimate_share(share: PhotoShare) -> Estimate:
    """The share with its interval: Wilson's, or 0 to 1 where a single photo determines it."""
    few = 0 < effective_photos(share) < _FEWEST_FOR_A_SHARE
    return Estimate(share.value, *(Interval(0.0, 1.0) if few else wilson_interval(share)), round(share.pictures))


def wilson_interval(share: PhotoShare) -> Interval:
    """Wilson's interval for as many independent pictures as have the same variance (Korn and Graubard)."""
    if math.isnan(share.value):
        return Interval(math.nan, math.nan)
    effective = _effective_pictures(share)
    spread = NORMAL_QUANTILE**2 / effective
    centre = (share.value + spread / 2) / (1 + spread)
    variance = share.value * (1 - share.value) / effective
    reach = NORMAL_QUANTILE * math.sqrt(variance + spread / (4 * effective)) / (1 + spread)
    return Interval(max(0.0, centre - reach), min(1.0, centre + reach))


def mover_interval(terms: Sequence[tuple[float, PhotoShare]], value: float) -> Interval:
    """The interval of a sum of shares, each times a factor, such as the difference of two shares.

    Computed from the shares' own intervals and correlations: Newcombe's for two independent shares, Zou and Donner's
    (MOVER) for shares over the same photos. The value is given, since it need not be linear: the factors are then its
    derivatives.
    """
    if any(0 < effective_photos(share) < _FEWEST_FOR_A_CHANGE for _, share in terms):
        return Interval(-1.0, 1.0)  # two photos always correlate fully, and the interval would vanish
    factors = np.array([factor for factor, _ in terms])
    ends = np.array([estimate_share(share)[:3] for _, share in terms])  # value, low, high
    below, above = ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 0]
    down = factors * np.where(factors > 0, below, above)
    up = factors * np.where(factors > 0, above, below)
    correlations = _correlations(np.stack([share.influences for _, share in terms]))
    low, high = value - _length(down, correlations), value + _length(up, correlations)
    return Interval(max(min(-1.0, value), low), min(max(1.0, value), high))  # clipped to the possible range


def share_change(before: PhotoShare, after: PhotoShare) -> Estimate:
    """The change of a share, or of a mean over photos, to other pictures of the same photos.

    The score interval of each photo's contribution to the change, with Student's quantile for the photos of the smaller
    side; NaN with fewer than three.
    """
    value, n = after.value - before.value, round(after.pictures)
    photos = min(effective_photos(before), effective_photos(after))
    if photos < _FEWEST_FOR_A_CHANGE:
        return Estimate(value, math.nan, math.nan, n)
    there = (before.weights > 0) | (after.weights > 0)
    added = value + int(there.sum()) * (after.influences - before.influences)[there]
    return Estimate(value, *score_interval(added, confidence=student_confidence(photos - 1)), n)


def _effective_pictures(share: PhotoShare) -> float:
    """The number of independent pictures with the same variance: at most all of them, at least the effective photos.

    The variance is the jackknife's over photos, widened by Student's quantile where photos are few. Where all succeed
    or all fail the variance is zero, and photos count.
    """
    photos = int((share.weights > 0).sum())
    fewest = effective_photos(share)
    if photos < 2 or share.value in (0.0, 1.0):
        return fewest
    moved = share.influences / np.maximum(1.0 - share.weights, _NOTHING)
    variance = float((moved**2).sum()) * (photos - 1) / photos * (student_quantile(fewest - 1) / NORMAL_QUANTILE) ** 2
    most = float(share.pictures)
    return max(fewest, min(most, share.value * (1 - share.value) / variance)) if variance > 0 else most


def _correlations(influences: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correlations of shares over photos, (shares, shares); a constant share correlates with no other."""
    lengths = np.sqrt((influences**2).sum(axis=1))
    units = np.where(lengths[:, None] > _NOTHING, influences, 0.0) / np.maximum(lengths, _NOTHING)[:, None]
    correlations = np.asarray(units @ units.T, np.float64)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def _length(distances: NDArray[np.float64], correlations: NDArray[np.float64]) -> float:
    return math.sqrt(max(0.0, float(distances @ correlations @ distances)))
