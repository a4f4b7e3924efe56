"""Calibration: reliability curves, and how edits change confidence, calibration error and margin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Condition, Details
from counterfoil.statistics.intervals import (
    NORMAL_QUANTILE,
    Estimate,
    Interval,
    percentile_interval,
    resample_counts,
    resampled_means,
)
from counterfoil.types import Attribute

_RESAMPLES = 1_000
_BINS = 15  # of confidence, of equal width, (low, high]
_MOST_GROUPS = 500  # above this, photos are resampled in this many random groups: the same width, in less time


class Calibration(NamedTuple):
    """Mean confidence, accuracy and calibration error of a model, in percent."""

    confidence: float
    accuracy: float
    error: float


class ConfidenceChange(NamedTuple):
    """One model before and after the edits of an attribute; the rise due to the edits, in points.

    With few photos the error of a well-calibrated model looks large, so that a rise is understated; the excess of
    confidence over accuracy is a mean and has no such bias.
    """

    model: str
    attribute: Attribute
    before: Calibration
    after: Calibration
    excess_rise: Estimate  # of confidence minus accuracy
    error_rise: Estimate


class ReliabilityPoint(NamedTuple):
    """Answers of similar confidence: their mean confidence and their accuracy, in percent."""

    confidence: float
    accuracy: float
    n: int


def confidence_changes(details: Details, rng: np.random.Generator) -> list[ConfidenceChange]:
    """Return the changes by attribute: the mean over its edits and levels, each over the photos answered on both sides.

    Edits and levels are measured separately: an error looks smaller on more answers, and there is one original a photo.
    """
    groups = rng.permutation(len(details.answers.samples)) % _MOST_GROUPS
    counts = resample_counts(int(groups.max(initial=-1)) + 1, rng, resamples=_RESAMPLES)
    drawn = np.vstack([np.ones(counts.shape[1]), counts])  # the first row is the photos unresampled
    return [
        change
        for model in range(len(details.answers.models))
        for change in _changes(details, model, _errors(details, model, groups, drawn))
    ]


def reliability_curve(
    details: Details, model: str, attributes: Collection[str], *, parts: int = 5
) -> list[ReliabilityPoint]:
    """Return the answers under these attributes by rising confidence, in bins of equal size."""
    answers, confidence = details.answers, details.top_score
    rows = np.flatnonzero(answers.scored_rows(model, attributes) & np.isfinite(confidence))
    rows = rows[np.argsort(confidence[rows], kind="stable")]
    return [
        ReliabilityPoint(100 * float(confidence[part].mean()), 100 * float(answers.correct[part].mean()), len(part))
        for part in np.array_split(rows, parts)
        if len(part)
    ]


class _Sides(NamedTuple):
    """One row per draw, the first without resampling; one column per condition; before, then after."""

    confidence: NDArray[np.float64]  # (2, draws, conditions)
    accuracy: NDArray[np.float64]
    error: NDArray[np.float64]
    photos: NDArray[np.intp]  # (conditions,)


def _changes(details: Details, model: int, sides: _Sides) -> Iterator[ConfidenceChange]:
    conditions = details.answers.conditions
    for attribute in dict.fromkeys(condition.attribute for condition in conditions):
        own = [c for c, condition in enumerate(conditions) if condition.attribute == attribute and sides.photos[c]]
        if attribute == "original" or not own:
            continue
        before, after = (
            Calibration(*(100 * float(part[side, 0, own].mean()) for part in sides[:3])) for side in (0, 1)
        )
        photos = int(sides.photos[own].max())
        excess = 100 * _rises(sides.confidence - sides.accuracy, own)
        errors = 100 * _rises(sides.error, own)
        yield ConfidenceChange(
            details.answers.models[model],
            attribute,
            before,
            after,
            Estimate(float(excess[0]), *percentile_interval(excess[1:]), photos),
            Estimate(float(errors[0]), *_normal_interval(float(errors[0]), errors[1:]), photos),
        )


def _rises(part: NDArray[np.float64], own: Sequence[int]) -> NDArray[np.float64]:
    """After minus before, mean over an attribute's conditions, draw by draw."""
    rises: NDArray[np.float64] = (part[1][:, own] - part[0][:, own]).mean(axis=1)
    return rises


def _normal_interval(value: float, drawn: NDArray[np.float64]) -> Interval:
    """The normal interval around a value: resampled errors are biased upwards, so percentiles would be off."""
    reach = NORMAL_QUANTILE * float(drawn.std())
    return Interval(value - reach, value + reach)


def _errors(details: Details, model: int, groups: NDArray[np.intp], drawn: NDArray[np.float64]) -> _Sides:
    answers = details.answers
    rows = np.flatnonzero((answers.model == model) & answers.scored & np.isfinite(details.top_score))
    answered = np.zeros((len(answers.conditions), len(answers.samples)), bool)
    answered[answers.condition[rows], answers.sample[rows]] = True
    original = answers.conditions_of({"original"})
    both = answered & answered[original].any(axis=0)
    unedited = rows[original[answers.condition[rows]]]
    after = [rows[answers.condition[rows] == c] for c in range(len(both))]
    sums = [
        [_sums(details, part[both[c, answers.sample[part]]], groups, drawn.shape[1]) for c, part in enumerate(side)]
        for side in ([unedited] * len(both), after)
    ]
    with np.errstate(invalid="ignore"):  # a condition, or a draw, without answers has no mean
        confidence, accuracy, error = np.array([_measure_sums(np.hstack(side), drawn) for side in sums]).swapaxes(0, 1)
    return _Sides(confidence, accuracy, error, both.sum(axis=1))


def _sums(details: Details, rows: NDArray[np.intp], groups: NDArray[np.intp], most: int) -> NDArray[np.float64]:
    """Sums by group of photos: the gap of each confidence bin, then confidence, right answers and answers."""
    confidence, right = details.top_score[rows], details.answers.correct[rows].astype(np.float64)
    group = groups[details.answers.sample[rows]]
    bins = np.clip(np.ceil(confidence * _BINS).astype(np.intp) - 1, 0, _BINS - 1)
    gaps = np.bincount(group * _BINS + bins, confidence - right, minlength=most * _BINS).reshape(most, _BINS)
    totals = [np.bincount(group, weights, minlength=most) for weights in (confidence, right, None)]
    return np.column_stack([gaps, *totals])


def _measure_sums(sums: NDArray[np.float64], drawn: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Confidence, accuracy and calibration error, each (draws, conditions), of resampled groups."""
    totals = (drawn @ sums).reshape(len(drawn), -1, _BINS + 3)
    n = totals[:, :, -1]
    return [totals[:, :, -3] / n, totals[:, :, -2] / n, np.abs(totals[:, :, :_BINS]).sum(axis=2) / n]


class MarginChange(NamedTuple):
    """The mean margin before and after an edit, and the loss; in points of probability."""

    model: str
    condition: Condition
    before: float
    after: float
    loss: Estimate


def margin_changes(details: Details, rng: np.random.Generator) -> list[MarginChange]:
    """Return the loss of margin under every edit, paired by photo, each counting once; interval by photos resampled."""
    answers = details.answers
    counts = resample_counts(len(answers.samples), rng)
    margins = _photo_margins(details)
    original = answers.conditions_of({"original"})
    if not original.any():
        return []
    edited = np.flatnonzero(~original)
    return [
        MarginChange(model, answers.conditions[c], *change)
        for model, own in zip(answers.models, margins, strict=True)
        for c, change in zip(edited, _margin_losses(own[original][0], own[edited], counts), strict=True)
    ]


def _margin_losses(
    before: NDArray[np.float64], after: NDArray[np.float64], counts: NDArray[np.float64]
) -> list[tuple[float, float, Estimate]]:
    """The mean margin before and after, and the loss, under all conditions at once, (conditions, photos)."""
    losses = before - after
    both = np.isfinite(losses)
    n = both.sum(axis=1)
    with np.errstate(invalid="ignore"):  # a condition without answers has no mean
        value, was, became = (100 * np.where(both, part, 0.0).sum(axis=1) / n for part in (losses, before, after))
    intervals = [percentile_interval(100 * means) for means in resampled_means(losses, counts).T]
    return [
        (float(was[c]), float(became[c]), Estimate(float(value[c]), *interval, int(n[c])))
        for c, interval in enumerate(intervals)
    ]


def _photo_margins(details: Details) -> NDArray[np.float64]:
    """Mean margin over replicates, (models, conditions, photos); NaN where none was scored."""
    answers = details.answers
    margin = details.true_score - details.other_score
    known = answers.scored & np.isfinite(margin)
    cell, size = answers.cell[known], int(np.prod(answers.shape))
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
        means = np.bincount(cell, margin[known], minlength=size) / np.bincount(cell, minlength=size)
    return means.reshape(answers.shape)
