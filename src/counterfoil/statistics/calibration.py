"""Expected calibration error and its change.

Confidence against accuracy, reliability curve; margin of the true class and its change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Condition, Details, place_of
from counterfoil.statistics.intervals import Estimate, Interval, percentile_interval, resample_counts
from counterfoil.types import Attribute

_QUANTILE = NormalDist().inv_cdf(0.975)
_RESAMPLES = 1_000
_BINS = 15  # of confidence, of equal width, (low, high]
_MOST_GROUPS = 500  # more photos than this are resampled in so many groups, drawn by lot: the same width, in less time


class Confidence(NamedTuple):
    """What a model says of itself and what is true, in percent: mean confidence, accuracy, calibration error."""

    said: float
    right: float
    error: float


class ConfidenceChange(NamedTuple):
    """One model before and after the edits of an attribute; what the edits add, in points.

    With few photos the error of a well-calibrated model looks large, so that a rise is understated; the excess of
    confidence over accuracy is a mean and has no such bias.
    """

    model: str
    attribute: Attribute
    before: Confidence
    after: Confidence
    excess_rise: Estimate  # of confidence minus accuracy
    error_rise: Estimate


class ReliabilityPoint(NamedTuple):
    """Answers of like confidence: their mean confidence and their accuracy, in percent."""

    said: float
    right: float
    n: int


def confidence_changes(details: Details, rng: np.random.Generator) -> list[ConfidenceChange]:
    """Each attribute is the mean over its edits and levels, each measured over the photos answered on both sides.

    They are measured apart since an error looks smaller on more answers, and of the original there is one a photo.
    """
    groups = rng.permutation(len(details.answers.samples)) % _MOST_GROUPS
    counts = resample_counts(int(groups.max(initial=-1)) + 1, rng, resamples=_RESAMPLES)
    drawn = np.vstack([np.ones(counts.shape[1]), counts])  # first the photos as they are
    return [
        change
        for model in range(len(details.answers.models))
        for change in _changes(details, model, _errors(details, model, groups, drawn))
    ]


def reliability_curve(
    details: Details, model: str, attributes: Collection[str], *, parts: int = 5
) -> list[ReliabilityPoint]:
    """The answers under these attributes by rising confidence, in parts of as many answers each."""
    answers = details.answers
    wanted = np.array([condition.attribute in attributes for condition in answers.conditions], bool)
    own = (answers.model == place_of(answers, model)) & _told(details)
    rows = np.flatnonzero(own & wanted[answers.condition])
    rows = rows[np.argsort(details.top_score[rows], kind="stable")]
    cut = [part for part in np.array_split(rows, parts) if len(part)]
    return [
        ReliabilityPoint(
            100 * float(details.top_score[part].mean()), 100 * float(answers.correct[part].mean()), len(part)
        )
        for part in cut
    ]


def _told(details: Details) -> NDArray[np.bool_]:
    """The answers that count and come with a confidence."""
    return details.answers.scored & np.isfinite(details.top_score)


class _Sides(NamedTuple):
    """One row per draw, the first of the photos as they are; one column per condition; before, then after."""

    said: NDArray[np.float64]  # (2, draws, conditions)
    right: NDArray[np.float64]
    error: NDArray[np.float64]
    photos: NDArray[np.intp]  # (conditions,)


def _changes(details: Details, model: int, sides: _Sides) -> Iterator[ConfidenceChange]:
    conditions = details.answers.conditions
    for attribute in dict.fromkeys(condition.attribute for condition in conditions):
        own = [c for c, condition in enumerate(conditions) if condition.attribute == attribute and sides.photos[c]]
        if attribute == "original" or not own:
            continue
        before, after = (Confidence(*(100 * float(part[side, 0, own].mean()) for part in sides[:3])) for side in (0, 1))
        photos = int(sides.photos[own].max())
        excess = 100 * _rises(sides.said - sides.right, own)
        errors = 100 * _rises(sides.error, own)
        yield ConfidenceChange(
            details.answers.models[model],
            attribute,
            before,
            after,
            Estimate(float(excess[0]), *percentile_interval(excess[1:]), photos),
            Estimate(float(errors[0]), *_about(float(errors[0]), errors[1:]), photos),
        )


def _rises(part: NDArray[np.float64], own: Sequence[int]) -> NDArray[np.float64]:
    """After minus before, mean over an attribute's conditions, draw by draw."""
    rises: NDArray[np.float64] = (part[1][:, own] - part[0][:, own]).mean(axis=1)
    return rises


def _about(value: float, drawn: NDArray[np.float64]) -> Interval:
    """The normal interval about a value: draws of an error lie above it, so their percentiles would be off."""
    reach = _QUANTILE * float(drawn.std())
    return Interval(value - reach, value + reach)


def _errors(details: Details, model: int, groups: NDArray[np.intp], drawn: NDArray[np.float64]) -> _Sides:
    answers = details.answers
    rows = np.flatnonzero((answers.model == model) & _told(details))
    answered = np.zeros((len(answers.conditions), len(answers.samples)), bool)
    answered[answers.condition[rows], answers.sample[rows]] = True
    original = np.array([condition.attribute == "original" for condition in answers.conditions], bool)
    both = answered & answered[original].any(axis=0)
    unedited = rows[original[answers.condition[rows]]]
    after = [rows[answers.condition[rows] == c] for c in range(len(both))]
    sums = [
        [_sums(details, part[both[c, answers.sample[part]]], groups, drawn.shape[1]) for c, part in enumerate(side)]
        for side in ([unedited] * len(both), after)
    ]
    with np.errstate(invalid="ignore"):  # a condition, or a draw, without answers has no mean
        told = np.array([_measured(np.hstack(side), drawn) for side in sums])
    return _Sides(told[:, 0], told[:, 1], told[:, 2], both.sum(axis=1))


def _sums(details: Details, rows: NDArray[np.intp], groups: NDArray[np.intp], most: int) -> NDArray[np.float64]:
    """By group of photos: the gap of each bin of confidence, then confidence, right answers and answers, added up."""
    said, right = details.top_score[rows], details.answers.correct[rows].astype(np.float64)
    group = groups[details.answers.sample[rows]]
    bins = np.clip(np.ceil(said * _BINS).astype(np.intp) - 1, 0, _BINS - 1)
    gaps = np.bincount(group * _BINS + bins, said - right, minlength=most * _BINS).reshape(most, _BINS)
    totals = [np.bincount(group, weights, minlength=most) for weights in (said, right, None)]
    return np.column_stack([gaps, *totals])


def _measured(sums: NDArray[np.float64], drawn: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Confidence, accuracy and calibration error, each (draws, conditions), of groups drawn so often."""
    totals = (drawn @ sums).reshape(len(drawn), -1, _BINS + 3)
    n = totals[:, :, -1]
    return [totals[:, :, -3] / n, totals[:, :, -2] / n, np.abs(totals[:, :, :_BINS]).sum(axis=2) / n]


class MarginChange(NamedTuple):
    """The mean margin before and after an edit, and what it lost; in points of probability."""

    model: str
    condition: Condition
    before: float
    after: float
    loss: Estimate


def margin_changes(details: Details, rng: np.random.Generator) -> list[MarginChange]:
    """What every edit takes from the margin, paired by photo; every photo counts once; interval by photos resampled."""
    answers = details.answers
    counts = resample_counts(len(answers.samples), rng)
    margins = _photo_margins(details)
    original = [condition.attribute == "original" for condition in answers.conditions]
    if not any(original):
        return []
    return [
        row
        for model, own in zip(answers.models, margins, strict=True)
        for condition, row in zip(
            answers.conditions, _margin_changes(model, answers.conditions, own, own[original][0], counts), strict=True
        )
        if condition.attribute != "original"
    ]


def _margin_changes(
    model: str,
    conditions: tuple[Condition, ...],
    after: NDArray[np.float64],
    before: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> list[MarginChange]:
    """The changes under all conditions at once, (conditions, photos): one product with the resamples."""
    losses = before - after
    both = np.isfinite(losses)
    with np.errstate(invalid="ignore"):  # a condition, or a resample, without answers has no mean
        means = (counts @ np.where(both, losses, 0.0).T) / (counts @ both.T.astype(np.float64))
        value, was, became = (
            100 * np.where(both, part, 0.0).sum(axis=1) / both.sum(axis=1) for part in (losses, before, after)
        )
    rows = zip(conditions, was, became, value, means.T, both.sum(axis=1), strict=True)
    return [
        MarginChange(model, condition, float(a), float(b), Estimate(float(v), *_percent(resampled), int(n)))
        for condition, a, b, v, resampled, n in rows
    ]


def _percent(resampled: NDArray[np.float64]) -> Interval:
    return percentile_interval(100 * resampled)


def _photo_margins(details: Details) -> NDArray[np.float64]:
    """Mean margin over replicates, (models, conditions, photos); NaN where none was scored."""
    answers = details.answers
    shape = (len(answers.models), len(answers.conditions), len(answers.samples))
    margin = details.true_score - details.other_score
    known = answers.scored & np.isfinite(margin)
    cell = np.ravel_multi_index((answers.model, answers.condition, answers.sample), shape)[known]
    size = int(np.prod(shape))
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "unanswered"
        means = np.bincount(cell, margin[known], minlength=size) / np.bincount(cell, minlength=size)
    return means.reshape(shape)
