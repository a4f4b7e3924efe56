"""ImageNet-X's error ratio: how much more often a model errs on pictures with a factor than on all pictures."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.intervals import Estimate, percentile_interval, sum_resamples
from counterfoil.statistics.tail_probabilities import hypergeometric_tail


def error_ratio(
    wrong: NDArray[np.float64], asked: NDArray[np.float64], factor: NDArray[np.bool_], rng: np.random.Generator
) -> Estimate:
    """(1 - accuracy with the factor) / (1 - accuracy over all), interval by photos resampled; n are photos with it.

    Args:
        wrong: Wrong answers by photo and condition, (photos, conditions).
        asked: Answers by photo and condition, (photos, conditions).
        factor: Which photos and conditions have the factor, (photos, conditions).
        rng: Draws the photos.
    """
    inside = factor & (asked > 0)
    columns = np.stack(
        [
            np.where(inside, wrong, 0.0).sum(axis=1), np.where(inside, asked, 0.0).sum(axis=1),
            wrong.sum(axis=1), asked.sum(axis=1),
        ],
        axis=1,
    )  # fmt: skip
    n = int(inside.any(axis=1).sum())
    total = columns.sum(axis=0)
    if not n or not total[2]:
        return Estimate(math.nan, math.nan, math.nan, n)
    (drawn,) = sum_resamples([columns], rng)
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample without the factor, or without errors
        ratios = (drawn[:, 0] / drawn[:, 1]) / (drawn[:, 2] / drawn[:, 3])
    value = float((total[0] / total[1]) / (total[2] / total[3]))
    return Estimate(value, *percentile_interval(ratios), n)


def p_above_one(wrong: NDArray[np.float64], asked: NDArray[np.float64], factor: NDArray[np.bool_]) -> float:
    """The one-sided p of as many wrong photos with a factor by chance: Fisher's exact test, a photo counting once.

    A bootstrap of a handful of errors calls too many factors hard. A photo is wrong where half of its answers are.

    Args:
        wrong: Wrong answers by photo, (photos,).
        asked: Answers by photo, (photos,).
        factor: Which photos have the factor, (photos,).
    """
    known = asked > 0
    failed = known & (2 * wrong >= np.maximum(asked, 1))
    with_factor = int((factor & known).sum())
    return hypergeometric_tail(int((failed & factor).sum()), int(known.sum()), int(failed.sum()), with_factor)
