"""ImageNet-E's summary: the mean of the drops, the control left out."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, original_rates, photo_rates
from counterfoil.analyse.interval import Estimate
from counterfoil.analyse.resampling import percentile_interval, resample_counts
from counterfoil.types import Attribute

NO_ATTRIBUTE: frozenset[Attribute] = frozenset({"original", "control", "presence", "combination"})


class MeanDrop(NamedTuple):
    """The mean of a model's drops in points, over so many conditions."""

    model: str
    conditions: int
    drop: Estimate


def mean_drops(
    answers: Answers, rng: np.random.Generator, *, leave_out: Collection[str] = NO_ATTRIBUTE
) -> list[MeanDrop]:
    """The mean of each model's drops, every condition counting once; interval by photos resampled."""
    chosen = [c for c, condition in enumerate(answers.conditions) if condition.attribute not in leave_out]
    losses = original_rates(answers)[:, None, :] - photo_rates(answers)[:, chosen]
    counts = resample_counts(len(answers.samples), rng)
    return [MeanDrop(model, len(chosen), _mean(losses[m], counts)) for m, model in enumerate(answers.models)]


def _mean(losses: NDArray[np.float64], counts: NDArray[np.float64]) -> Estimate:
    known = np.isfinite(losses)
    if not known.any(axis=1).all() or not len(losses):
        return Estimate(math.nan, math.nan, math.nan, int(known.any(axis=0).sum()))
    value = float(np.mean(np.nanmean(losses, axis=1)))
    with np.errstate(invalid="ignore"):  # a resample without any answer to a condition has no mean
        means = (counts @ np.where(known, losses, 0.0).T) / (counts @ known.T.astype(np.float64))
    return Estimate(value, *percentile_interval(means.mean(axis=1)), int(known.any(axis=0).sum())).scaled(100)
