"""The table of drops: the drop of each model under each edit, paired by photo; and the mean of a model's drops."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import NO_ATTRIBUTE, Answers
from counterfoil.statistics.intervals import (
    Estimate,
    exact_mean,
    percentile_interval,
    resample_counts,
    resampled_means,
    score_interval,
)
from counterfoil.statistics.significance import SIGNIFICANCE, benjamini_hochberg, holm, mcnemar
from counterfoil.types import Drop

FEWEST_PHOTOS = 10  # a row with fewer is shown without a conclusion


class MeanDrop(NamedTuple):
    """The mean of a model's drops in points, and the number of conditions."""

    model: str
    conditions: int
    drop: Estimate


def measure_drops(answers: Answers) -> list[Drop]:
    """Return one row per model and condition other than the original; only photos scored on both sides count.

    Every photo counts once, whatever its number of replicates. Both adjustments are over the whole table: every
    model and every condition, the control and the diagnostics included, since the report covers them too.
    """
    rows = [
        _measure_drop(answers, model, condition)
        for model in range(len(answers.models))
        for condition in np.flatnonzero(~answers.conditions_of({"original"})).tolist()
    ]
    p_values = [row.p_value for row in rows]
    adjusted = zip(rows, holm(p_values), benjamini_hochberg(p_values), strict=True)
    return [replace(row, p_holm=p_holm, p_bh=p_bh) for row, p_holm, p_bh in adjusted]


def is_significant(drop: Drop) -> bool:
    """Whether the interval excludes zero and the adjusted p is below 0.05."""
    return (drop.ci_low > 0 or drop.ci_high < 0) and drop.p_holm < SIGNIFICANCE


def mean_drops(
    answers: Answers, rng: np.random.Generator, *, leave_out: Collection[str] = NO_ATTRIBUTE
) -> list[MeanDrop]:
    """Return the mean of each model's drops, every condition counting once; interval by photos resampled."""
    losses = answers.losses[:, ~answers.conditions_of(leave_out)]
    counts = resample_counts(len(answers.samples), rng)
    return [
        MeanDrop(model, len(own), _mean_drop(own, counts)) for model, own in zip(answers.models, losses, strict=True)
    ]


def _measure_drop(answers: Answers, model: int, condition: int) -> Drop:
    original, control = answers.original_rates[model], answers.control_rates[model]
    edited = answers.rates[model, condition]
    paired = np.isfinite(original) & np.isfinite(edited)
    controlled = paired & np.isfinite(control)
    differences = original[paired] - edited[paired]
    interval = score_interval(differences)
    return Drop(
        answers.models[model],
        *answers.conditions[condition],
        n=int(paired.sum()),
        accuracy_original=100 * exact_mean(original[paired]),
        accuracy_control=100 * exact_mean(control[controlled]),
        accuracy=100 * exact_mean(edited[paired]),
        drop=100 * exact_mean(differences),
        ci_low=100 * interval.low,
        ci_high=100 * interval.high,
        drop_vs_control=100 * exact_mean(control[controlled] - edited[controlled]),
        p_value=mcnemar(differences),
        p_holm=math.nan,
        object_share=exact_mean(answers.tally.object_share[model, condition][paired]),
    )


def _mean_drop(losses: NDArray[np.float64], counts: NDArray[np.float64]) -> Estimate:
    known = np.isfinite(losses)
    photos = int(known.any(axis=0).sum())
    if not known.any(axis=1).all() or not len(losses):
        return Estimate(math.nan, math.nan, math.nan, photos)
    value = float(np.mean(np.nanmean(losses, axis=1)))
    return Estimate(value, *percentile_interval(resampled_means(losses, counts).mean(axis=1)), photos).scaled(100)
