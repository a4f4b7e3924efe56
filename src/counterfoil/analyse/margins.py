"""Margins: how far the true class lies ahead of the best other one, and what an edit takes from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Condition
from counterfoil.analyse.details import Details
from counterfoil.analyse.interval import Estimate
from counterfoil.analyse.paired import Interval
from counterfoil.analyse.resampling import percentile_interval, resample_counts


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
            answers.conditions, _changes(model, answers.conditions, own, own[original][0], counts), strict=True
        )
        if condition.attribute != "original"
    ]


def _changes(
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
