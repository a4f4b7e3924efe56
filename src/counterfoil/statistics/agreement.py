"""Agreement of annotators: percent, Cohen's and Fleiss' kappa, Krippendorff's alpha, with intervals.

Every measure is a function of sums over pictures, so a bootstrap resamples pictures by weighting those sums, many
resamples at once. The bootstrap is too narrow with few pictures, or with few disagreements, so no interval is narrower
than the jackknife's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import encode_labels
from counterfoil.statistics.intervals import (
    RATE,
    RESAMPLES,
    Estimate,
    Interval,
    RateBounds,
    jackknife_interval,
    percentile_interval,
)
from counterfoil.types import Verdict

NO_ANSWER = -1
_BLOCK = 100  # resamples held in memory at once
_KAPPA = RateBounds(-1.0, 1.0)
_BOUNDS = (RATE, _KAPPA, _KAPPA, _KAPPA)  # of percent, Cohen's and Fleiss' kappa, alpha
_MOSTLY = 0.95  # share of the resamples that must have a value


class Ratings(NamedTuple):
    """Answers as positions in `answers`, -1 where an annotator gave none to a picture."""

    pictures: tuple[str, ...]  # variant ids
    annotators: tuple[str, ...]
    answers: tuple[str, ...]
    codes: NDArray[np.intp]  # (pictures, annotators)

    @property
    def one_hot(self) -> NDArray[np.float64]:
        """1 where an annotator gave an answer, (pictures, annotators, answers)."""
        return np.asarray(self.codes[:, :, None] == np.arange(len(self.answers)), np.float64)

    @property
    def counts(self) -> NDArray[np.float64]:
        """How often each answer was given, (pictures, answers)."""
        return np.asarray(self.one_hot.sum(axis=1), np.float64)


def latest_verdicts(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the last version of every answer."""
    latest: dict[tuple[str, str, str, str], Verdict] = {}
    for verdict in verdicts:
        key = (verdict.variant_id, verdict.annotator, verdict.question, verdict.control)
        if key not in latest or latest[key].version <= verdict.version:
            latest[key] = verdict
    return list(latest.values())


def collect_ratings(verdicts: Iterable[Verdict], question: str, *, answers: Sequence[str] = ()) -> Ratings:
    """Collect the answers to one question without hidden controls; `answers` fixes their order where it is known."""
    kept = [verdict for verdict in latest_verdicts(verdicts) if verdict.question == question and not verdict.control]
    pictures, picture = encode_labels(verdict.variant_id for verdict in kept)
    annotators, annotator = encode_labels(verdict.annotator for verdict in kept)
    known, answer = encode_labels((verdict.answer for verdict in kept), answers)
    codes = np.full((len(pictures), len(annotators)), NO_ANSWER, np.intp)
    codes[picture, annotator] = answer
    return Ratings(pictures, annotators, known, codes)


class Agreement(NamedTuple):
    """Agreement of annotators on one question; n counts the pictures with at least two answers."""

    percent: Estimate  # of the pairs of answers to a picture, mean over pictures
    cohen: Estimate  # mean over the pairs of annotators (Light's kappa)
    fleiss: Estimate
    krippendorff: Estimate  # alpha for nominal data, missing answers allowed

    @property
    def summary(self) -> dict[str, float]:
        """Each measure with its interval under plain names, as stored in a `VerificationResult`."""
        measures = {
            "percent_agreement": self.percent, "cohen_kappa": self.cohen, "fleiss_kappa": self.fleiss,
            "krippendorff_alpha": self.krippendorff,
        }  # fmt: skip
        rows = {
            name + suffix: value
            for name, measure in measures.items()
            for suffix, value in zip(("", "_low", "_high"), measure[:3], strict=True)
        }
        return {**rows, "pictures": float(self.percent.n)}


def measure_agreement(ratings: Ratings, rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Agreement:
    """Return every measure with its 95 % interval, pictures resampled; NaN where disagreement is not possible."""
    codes = ratings.codes[(ratings.codes >= 0).sum(axis=1) > 1]
    shared = ratings._replace(codes=codes)
    sums = _count_features(shared.counts)
    pairs = _annotator_pairs(shared)
    whole = _measures(sums, pairs, np.ones((1, len(codes))))
    drawn, without = _bootstrap(sums, pairs, rng, resamples), _leave_one_out(sums, pairs)
    percent, cohen, fleiss, alpha = (
        Estimate(
            value,
            *_wider(_centred_interval(value, column, bounds), jackknife_interval(value, left, bounds)),
            len(codes),
        )
        for value, column, left, bounds in zip(np.ravel(whole).tolist(), drawn.T, without, _BOUNDS, strict=True)
    )
    return Agreement(percent.scaled(100), cohen, fleiss, alpha)


class _AnnotatorPair(NamedTuple):
    """The answers of two annotators to the pictures that both answered."""

    both: NDArray[np.bool_]  # (pictures,)
    features: NDArray[np.float64]  # (pictures of both, 2 + 2 * answers)

    def resampled(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Their kappa for every row of weights (rows, pictures)."""
        return _cohen(weights[:, self.both] @ self.features)

    @property
    def left_out(self) -> NDArray[np.float64]:
        """Their kappa without each picture, (pictures,)."""
        own = np.zeros((len(self.both), self.features.shape[1]))
        own[self.both] = self.features
        return _cohen(own.sum(axis=0) - own)


def _annotator_pairs(ratings: Ratings) -> list[_AnnotatorPair]:
    """The pairs of annotators that answered a picture in common."""
    pairs = []
    for first, second in itertools.combinations(range(len(ratings.annotators)), 2):
        codes = ratings.codes[:, first], ratings.codes[:, second]
        features, both = _pair_features(*codes, len(ratings.answers))
        if both.any():
            pairs.append(_AnnotatorPair(both, features))
    return pairs


def _mean_kappa(kappas: list[NDArray[np.float64]], rows: int) -> NDArray[np.float64]:
    """The mean over the pairs that have a kappa, (rows,)."""
    table = np.array(kappas).reshape(len(kappas), rows)
    defined = np.isfinite(table)
    with np.errstate(invalid="ignore"):  # 0 / 0: no pair has a kappa
        return np.asarray(np.where(defined, table, 0.0).sum(axis=0) / defined.sum(axis=0), np.float64)


def _beyond_chance(observed: NDArray[np.float64], by_chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Agreement beyond chance; NaN where chance agreement is 1, up to rounding."""
    room = np.where(1.0 - by_chance < 1e-12, np.nan, 1.0 - by_chance)
    return np.asarray((observed - by_chance) / room, np.float64)


def _pair_features(
    first: NDArray[np.intp], second: NDArray[np.intp], answers: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """1, agreement and each annotator's answer one-hot over the pictures that both answered; and a mask of those."""
    both = np.asarray((first >= 0) & (second >= 0))
    a, b = first[both], second[both]
    columns = [
        np.ones((len(a), 1)),
        (a == b)[:, None],
        a[:, None] == np.arange(answers),
        b[:, None] == np.arange(answers),
    ]
    return np.hstack(columns).astype(np.float64), both


def _cohen(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    pictures, agreeing = sums[:, 0], sums[:, 1]
    first, second = np.split(sums[:, 2:], 2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: no picture of both was drawn
        return _beyond_chance(agreeing / pictures, (first * second).sum(axis=1) / pictures**2)


def _count_features(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums over pictures: 1, agreeing share, answers, answers matched within, counts of each answer."""
    given = counts.sum(axis=1, keepdims=True)
    same = (counts * (counts - 1)).sum(axis=1, keepdims=True)
    return np.hstack([np.ones_like(given), same / (given * (given - 1)), same / (given - 1), counts])


def _from_counts(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Percent (as a share), Fleiss' kappa and Krippendorff's alpha of sums (resamples, features)."""
    pictures, agreeing, matched, by_answer = sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3:]
    total = by_answer.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: disagreement is not possible
        observed = agreeing / pictures
        by_chance = ((by_answer / total[:, None]) ** 2).sum(axis=1)
        disagreement = 1.0 - (by_answer * (by_answer - 1)).sum(axis=1) / (total * (total - 1))
        alpha = 1.0 - (1.0 - matched / total) / disagreement
        return observed, _beyond_chance(observed, by_chance), alpha


def _measures(
    sums: NDArray[np.float64], pairs: list[_AnnotatorPair], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Percent, mean Cohen, Fleiss, alpha of every row of weights (resamples, pictures)."""
    percent, fleiss, alpha = _from_counts(weights @ sums)
    return percent, _mean_kappa([pair.resampled(weights) for pair in pairs], len(weights)), fleiss, alpha


def _leave_one_out(sums: NDArray[np.float64], pairs: list[_AnnotatorPair]) -> tuple[NDArray[np.float64], ...]:
    """The measures without each picture, (pictures,) each."""
    percent, fleiss, alpha = _from_counts(sums.sum(axis=0) - sums)
    return percent, _mean_kappa([pair.left_out for pair in pairs], len(sums)), fleiss, alpha


def _bootstrap(
    sums: NDArray[np.float64], pairs: list[_AnnotatorPair], rng: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    """The measures of every resample, (resamples, 4)."""
    if not len(sums):
        return np.full((1, 4), np.nan)
    sizes = [min(_BLOCK, resamples - start) for start in range(0, resamples, _BLOCK)]
    blocks = [_measures(sums, pairs, _drawn(len(sums), size, rng)) for size in sizes]
    return np.concatenate([np.stack(block, axis=1) for block in blocks])


def _drawn(pictures: int, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How often each picture is drawn, (resamples, pictures); drawn in blocks for speed."""
    places = rng.integers(0, pictures, (resamples, pictures)) + pictures * np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=resamples * pictures)
    return counts.reshape(resamples, pictures).astype(np.float64)


def _centred_interval(value: float, drawn: NDArray[np.float64], bounds: RateBounds) -> Interval:
    """The percentile interval, shifted by the bootstrap's own bias: resampled kappas of few pictures are too low.

    A resample in which all answers agree has no value and is left out. Where there are many of these, too few pictures
    determine the measure, and there is no interval.
    """
    known = drawn[np.isfinite(drawn)]
    if len(known) < _MOSTLY * len(drawn):
        return Interval(np.nan, np.nan)
    low, high = percentile_interval(known)
    bias = float(known.mean()) - value
    return Interval(max(bounds.low, low - bias), min(bounds.high, high - bias))


def _wider(first: Interval, second: Interval) -> Interval:
    """From the lower to the higher end of both; NaN where one of them has none."""
    return Interval(float(np.minimum(first.low, second.low)), float(np.maximum(first.high, second.high)))
