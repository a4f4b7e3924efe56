"""Whether annotators agree beyond chance: percent, Cohen's and Fleiss' kappa, Krippendorff's alpha.

Every measure is a function of sums over pictures, so a bootstrap resamples pictures by weighing those sums, many
resamples at once; the tests hold the values against the libraries that compute one measure at a time. A bootstrap of
few pictures, or of few that anybody disagreed on, is too sure: no interval is narrower than the jackknife's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.cohen import Pair, beyond_chance, mean_kappa, pairs_of
from counterfoil.analyse.interval import Bounds, Estimate
from counterfoil.analyse.jackknife import jackknife_interval
from counterfoil.analyse.paired import Interval
from counterfoil.analyse.resampling import RESAMPLES, percentile_interval
from counterfoil.analyse.verdict_table import Ratings

_BLOCK = 100  # resamples held in memory at once
_SHARE, _KAPPA = Bounds(0.0, 1.0), Bounds(-1.0, 1.0)
_BOUNDS = (_SHARE, _KAPPA, _KAPPA, _KAPPA)  # of percent, Cohen's and Fleiss' kappa, alpha
_MOSTLY = 0.95  # of the resamples must have a value


class Agreement(NamedTuple):
    """How far annotators agree on one question; n counts the pictures that two annotators answered at least."""

    percent: Estimate  # of the pairs of answers to a picture, mean over pictures
    cohen: Estimate  # mean over the pairs of annotators (Light's kappa)
    fleiss: Estimate
    krippendorff: Estimate  # alpha for nominal data, missing answers allowed

    @property
    def summary(self) -> dict[str, float]:
        """Each measure with its interval under plain names, as `Verified` keeps them."""
        named = {
            "percent_agreement": self.percent, "cohen_kappa": self.cohen, "fleiss_kappa": self.fleiss,
            "krippendorff_alpha": self.krippendorff,
        }  # fmt: skip
        told = {name + end: value for name, found in named.items() for end, value in _ends(found)}
        return {**told, "pictures": float(self.percent.n)}


def agreement(ratings: Ratings, rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Agreement:
    """Every measure with its 95 % interval, pictures resampled; NaN where there is nothing to disagree about."""
    codes = ratings.codes[(ratings.codes >= 0).sum(axis=1) > 1]
    shared = ratings._replace(codes=codes)
    sums = _count_features(shared.counts)
    pairs = pairs_of(shared)
    whole = _measures(sums, pairs, np.ones((1, len(codes))))
    drawn, without = _resampled(sums, pairs, rng, resamples), _left_out(sums, pairs)
    percent, cohen, fleiss, alpha = (
        Estimate(value, *_wider(_bootstrap(value, column, bounds), jackknife_interval(value, left, bounds)), len(codes))
        for value, column, left, bounds in zip(np.ravel(whole).tolist(), drawn.T, without, _BOUNDS, strict=True)
    )
    return Agreement(percent.scaled(100), cohen, fleiss, alpha)


def _count_features(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is summed over pictures: 1, agreeing share, answers, answers matched within, counts of each answer."""
    given = counts.sum(axis=1, keepdims=True)
    same = (counts * (counts - 1)).sum(axis=1, keepdims=True)
    return np.hstack([np.ones_like(given), same / (given * (given - 1)), same / (given - 1), counts])


def _from_counts(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Percent as a share, Fleiss' kappa, Krippendorff's alpha of sums (resamples, features)."""
    pictures, agreeing, matched, by_answer = sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3:]
    total = by_answer.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: nothing to disagree about
        observed = agreeing / pictures
        by_chance = ((by_answer / total[:, None]) ** 2).sum(axis=1)
        disagreement = 1.0 - (by_answer * (by_answer - 1)).sum(axis=1) / (total * (total - 1))
        alpha = 1.0 - (1.0 - matched / total) / disagreement
        return observed, beyond_chance(observed, by_chance), alpha


def _measures(
    sums: NDArray[np.float64], pairs: list[Pair], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Percent, mean Cohen, Fleiss, alpha of every row of weights (resamples, pictures)."""
    percent, fleiss, alpha = _from_counts(weights @ sums)
    return (
        percent,
        mean_kappa([pair.weighed(weights) for pair in pairs], len(weights)),
        fleiss,
        alpha,
    )


def _left_out(sums: NDArray[np.float64], pairs: list[Pair]) -> tuple[NDArray[np.float64], ...]:
    """The measures without each picture, (pictures,) each."""
    percent, fleiss, alpha = _from_counts(sums.sum(axis=0) - sums)
    return percent, mean_kappa([pair.left_out for pair in pairs], len(sums)), fleiss, alpha


def _resampled(
    sums: NDArray[np.float64], pairs: list[Pair], rng: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    """The measures of every resample, (resamples, 4)."""
    if not len(sums):
        return np.full((1, 4), np.nan)
    sizes = [min(_BLOCK, resamples - start) for start in range(0, resamples, _BLOCK)]
    blocks = [_measures(sums, pairs, _drawn(len(sums), size, rng)) for size in sizes]
    return np.concatenate([np.stack(block, axis=1) for block in blocks])


def _drawn(pictures: int, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How often each picture is drawn, (resamples, pictures); a block at once, since a page waits for it."""
    places = rng.integers(0, pictures, (resamples, pictures)) + pictures * np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=resamples * pictures)
    return counts.reshape(resamples, pictures).astype(np.float64)


def _bootstrap(value: float, drawn: NDArray[np.float64], bounds: Bounds) -> Interval:
    """The percentile interval, moved by the bootstrap's own bias: kappas of few pictures come out low resampled.

    A resample in which all say the same has no value. Where few have disagreed some such are drawn, and are left out;
    where many are, too few pictures carry the measure, and there is no interval.
    """
    known = drawn[np.isfinite(drawn)]
    if len(known) < _MOSTLY * len(drawn):
        return Interval(np.nan, np.nan)
    low, high = percentile_interval(known)
    bias = float(known.mean()) - value
    return Interval(max(bounds.low, low - bias), min(bounds.high, high - bias))


def _wider(first: Interval, second: Interval) -> Interval:
    """From the lower to the higher end of both; none where one of them has none."""
    return Interval(float(np.minimum(first.low, second.low)), float(np.maximum(first.high, second.high)))


def _ends(found: Estimate) -> tuple[tuple[str, float], ...]:
    return ("", found.value), ("_low", found.ci_low), ("_high", found.ci_high)
