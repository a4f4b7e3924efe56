"""ImageNet-X's error ratio: how much more often a model errs on photos with a factor than on all photos."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.interval import Estimate
from counterfoil.analyse.resampling import percentile_interval, resample_counts


def error_ratio(correct: NDArray[np.bool_], factor: NDArray[np.bool_], rng: np.random.Generator) -> Estimate:
    """(1 - accuracy with the factor) / (1 - accuracy over all), interval by photos resampled; n are those with it."""
    wrong = ~correct
    if not wrong.any() or not factor.any():
        return Estimate(math.nan, math.nan, math.nan, int(factor.sum()))
    value = wrong[factor].mean() / wrong.mean()
    counts = resample_counts(len(correct), rng)
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample without the factor has no ratio
        shares = (counts @ (wrong & factor)) / (counts @ factor)
        ratios = shares / ((counts @ wrong) / len(correct))
    return Estimate(float(value), *percentile_interval(ratios), int(factor.sum()))
