"""Calibration: reliability curves, and how edits change confidence, calibration error and margin."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Details
from counterfoil.statistics.intervals import Estimate, Interval, exact_mean, student_quantile
from counterfoil.statistics.photo_tests import estimate_mean, mean_interval
from counterfoil.statistics.references import find_summed_parts, locate_reference, pool_attributes, pool_pictures
from counterfoil.types import Attribute

BINS = 10  # of confidence, of equal width, (low, high]
_FEWEST_PHOTOS = 3  # for an interval

Pair: TypeAlias = tuple[list[int], int]  # the conditions that a condition is compared with, and that condition


class Calibration(NamedTuple):
    """Mean confidence, accuracy and calibration error of a model, in percent."""

    confidence: float
    accuracy: float
    error: float


class ConfidenceChange(NamedTuple):
    """One model on the references of an attribute's edits and on the edits; the rises due to the edits, in points."""

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


def confidence_changes(details: Details) -> list[ConfidenceChange]:
    """Return the changes by attribute, each edit against its reference, over the photos answered on both sides.

    The calibration error is the root mean square distance of confidence and accuracy over bins of confidence. Its
    square is estimated without the upward bias of few photos (Kumar, Liang and Ma 2019): products of two different
    photos in a bin. Edits and levels are measured separately, and their squares averaged.
    """
    known = np.isfinite(details.top_score)
    confidence, accuracy = (
        _photo_means(details, values, known) for values in (details.top_score, details.answers.correct)
    )
    return [
        _change(details, model, attribute, pairs, (confidence[model], accuracy[model]))
        for model in range(len(details.answers.models))
        for attribute, pairs in _pair_with_references(details).items()
        if np.isfinite(confidence[model, [pair[1] for pair in pairs]]).any()
    ]


def reliability_curve(
    details: Details, model: str, attributes: Collection[str], *, parts: int = 5
) -> list[ReliabilityPoint]:
    """Return the answers under these attributes by rising confidence, in bins of equal size."""
    answers, confidence = details.answers, details.top_score
    rows = np.flatnonzero(answers.scored_rows(model, attributes) & np.isfinite(confidence))
    rows = rows[np.argsort(confidence[rows], kind="stable")]
    return [
        ReliabilityPoint(
            100 * float(confidence[part].mean(dtype=np.float64)), 100 * float(answers.correct[part].mean()), len(part)
        )
        for part in np.array_split(rows, parts)
        if len(part)
    ]


def _mean(values: NDArray[Any]) -> float:
    return float(values.astype(np.float64).mean())


def _pair_with_references(details: Details) -> dict[Attribute, list[Pair]]:
    """By attribute, each condition with its reference: the declared edit, else the original.

    What has two references, such as two edits at once, is left out: no picture shows the sum of two effects.
    """
    answers = details.answers
    original = np.flatnonzero(answers.conditions_of({"original"})).tolist()
    pairs: dict[Attribute, list[Pair]] = {}
    for attribute, places in pool_attributes(answers).items():
        for place in places:
            declared = locate_reference(answers, place)
            before = original if declared is None else [declared]
            if before and find_summed_parts(answers, place) is None:
                pairs.setdefault(attribute, []).append((before, place))
    return pairs


def _change(
    details: Details, model: int, attribute: Attribute, pairs: Sequence[Pair], means: Sequence[NDArray[np.float64]]
) -> ConfidenceChange:
    """One row; `means` are the confidence and accuracy of each photo, (conditions, photos) each."""
    scored = details.answers.tally.scored[model]
    sides = [[_pool_side(values, scored, pairs, side) for values in means] for side in (0, 1)]
    before, after, rise = _root_change([_squared_errors(details, model, pair) for pair in pairs])
    (sure_before, right_before), (sure_after, right_after) = sides
    return ConfidenceChange(
        details.answers.models[model],
        attribute,
        Calibration(100 * exact_mean(sure_before), 100 * exact_mean(right_before), 100 * before),
        Calibration(100 * exact_mean(sure_after), 100 * exact_mean(right_after), 100 * after),
        excess_rise=_estimate_excess(sure_after - right_after - sure_before + right_before).scaled(100),
        error_rise=rise.scaled(100),
    )


def _estimate_excess(rises: NDArray[np.float64]) -> Estimate:
    """The mean over photos; its interval counts one photo more that is lost and one that is gained.

    Where no answer changes, the photos alone say nothing on how often one would (Bonett and Price 2012).
    """
    known = rises[np.isfinite(rises)]
    if not len(known):
        return estimate_mean(known, 4)
    mean = exact_mean(known)
    return Estimate(mean, *mean_interval(np.append(known, [mean - 1.0, mean + 1.0]), 4), len(known))


def _pool_side(
    values: NDArray[np.float64], scored: NDArray[np.int32], pairs: Sequence[Pair], side: int
) -> NDArray[np.float64]:
    """The mean of each photo over an attribute's pictures, or over their references, (photos,)."""
    before = np.stack([_mean_over(values[own]) for own, _ in pairs])
    after = np.stack([values[place] for _, place in pairs])
    chosen = np.where(np.isfinite(before) & np.isfinite(after), (before, after)[side], np.nan)
    return pool_pictures(chosen, np.stack([scored[place] for _, place in pairs]))


def _mean_over(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over conditions (conditions, photos); NaN where none is known."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))


def _photo_means(details: Details, values: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean over the replicates of each photo, (models, conditions, photos); NaN where none was scored."""
    answers = details.answers
    used = answers.scored & known
    cell, size = answers.cell[used], int(np.prod(answers.shape))
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
        means = np.bincount(cell, values[used], minlength=size) / np.bincount(cell, minlength=size)
    return means.reshape(answers.shape)


class _Squared(NamedTuple):
    """A squared calibration error, and what the chance of the photos adds to it."""

    value: float
    slope: float  # its variance is 4 * slope * the true square + constant
    constant: float


class _SquaredPair(NamedTuple):
    """The squared errors under an edit's reference and under the edit."""

    before: _Squared
    after: _Squared
    photos: NDArray[np.bool_]  # (photos,): answered on both sides


def _squared_errors(details: Details, model: int, pair: Pair) -> _SquaredPair:
    answers = details.answers
    rows = np.flatnonzero((answers.model == model) & answers.scored & np.isfinite(details.top_score))
    sides = [rows[np.isin(answers.condition[rows], places)] for places in (pair[0], [pair[1]])]
    answered = np.zeros((2, len(answers.samples)), bool)
    for side, own in zip(answered, sides, strict=True):
        side[answers.sample[own]] = True
    both = answered[0] & answered[1]
    before, after = (_squared_error(details, own[both[answers.sample[own]]]) for own in sides)
    return _SquaredPair(before, after, both)


def _squared_error(details: Details, rows: NDArray[np.intp]) -> _Squared:
    """The mean squared distance of confidence and accuracy over bins; the replicates of a photo count as one photo."""
    if not len(rows):
        return _Squared(math.nan, math.nan, math.nan)
    confidence, photo = details.top_score[rows].astype(np.float64), details.answers.sample[rows].astype(np.int64)
    bins = np.clip(np.ceil(confidence * BINS).astype(np.intp) - 1, 0, BINS - 1)
    cell, place, times = np.unique(photo * BINS + bins, return_inverse=True, return_counts=True)
    gap = np.bincount(place, confidence - details.answers.correct[rows], minlength=len(cell)) / times  # photo in a bin
    many, gaps, squares, answers = (
        np.bincount(cell % BINS, values, minlength=BINS) for values in (None, gap, gap**2, times)
    )
    weight, several = answers / len(rows), many > 1
    pairs = np.divide(gaps**2 - squares, many * (many - 1), out=np.zeros(BINS), where=several)
    within = squares - np.divide(gaps**2, many, out=np.zeros(BINS), where=many > 0)
    # One photo more that is right and one that is wrong: where all are right, the next need not be.
    noise = weight * np.divide(within + 0.5, (many + 1) * many, out=np.zeros(BINS), where=many > 0)
    return _Squared(float(weight @ pairs), float(weight @ noise), 2.0 * float(noise @ noise))


def _root_change(squared: Sequence[_SquaredPair]) -> tuple[float, float, Estimate]:
    """The root of the mean of several squared errors before and after, and the rise with its interval.

    The bounds of a square are the true squares that the estimate does not reject, their roots those of the error, and
    the two sides are put together by the recovery of variances (Zou and Donner 2008). The root of a negative estimate
    is 0, and where the lower bound of a side is 0, its distance is added whole: the root of an error that may be 0 is
    measured too large.
    """
    photos = int(np.any([own.photos for own in squared], axis=0).sum())
    before, first = _bound_root([own.before for own in squared], photos)
    after, second = _bound_root([own.after for own in squared], photos)
    down = _combine(after - second.low, first.high - before, whole=second.low <= 0.0)
    up = _combine(second.high - after, before - first.low, whole=first.low <= 0.0)
    return before, after, Estimate(after - before, after - before - down, after - before + up, photos)


def _bound_root(squared: Sequence[_Squared], photos: int) -> tuple[float, Interval]:
    """The root of the mean square with its interval; the edits of a photo may err alike: variances are not averaged."""
    known = [own for own in squared if not math.isnan(own.value)]
    if not known or photos < _FEWEST_PHOTOS:
        root = math.sqrt(max(0.0, float(np.mean([own.value for own in known])))) if known else math.nan
        return root, Interval(math.nan, math.nan)
    value, slope, constant = (float(part) for part in np.mean(known, axis=0))
    quantile = student_quantile(photos - 1)
    middle = value + 2.0 * quantile**2 * slope
    reach = math.sqrt(max(0.0, middle**2 - value**2 + quantile**2 * constant))
    low, high = (math.sqrt(max(0.0, middle + sign * reach)) for sign in (-1, 1))
    root = math.sqrt(max(0.0, value))
    return root, Interval(min(low, root), high)


def _combine(first: float, second: float, *, whole: bool) -> float:
    return first + second if whole else math.hypot(first, second)


class MarginChange(NamedTuple):
    """The mean margin on an attribute's references and edits, and the loss; in points of probability."""

    model: str
    attribute: Attribute
    before: float
    after: float
    loss: Estimate


def margin_changes(details: Details) -> list[MarginChange]:
    """Return the loss of margin by attribute, each picture against its edit's reference, paired by photo."""
    answers = details.answers
    margin = details.true_score.astype(np.float64) - details.other_score
    margins, scored = _photo_means(details, margin, np.isfinite(margin)), answers.tally.scored
    changes = []
    for model, name in enumerate(answers.models):
        for attribute, pairs in _pair_with_references(details).items():
            before, after = (_pool_side(margins[model], scored[model], pairs, side) for side in (0, 1))
            loss = estimate_mean(before - after, 4).scaled(100)
            changes.append(MarginChange(name, attribute, 100 * exact_mean(before), 100 * exact_mean(after), loss))
    return changes
