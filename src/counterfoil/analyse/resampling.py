"""Photos resampled with replacement, for statistics whose distribution is not known in closed form."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.paired import Interval

RESAMPLES = 2_000


def resample_counts(
    n: int, rng: np.random.Generator, *, resamples: int = RESAMPLES, strata: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """How often each of n photos is drawn, (resamples, n); within strata, each stratum keeps its size."""
    groups = np.zeros(n, np.intp) if strata is None else strata
    order = np.argsort(groups, kind="stable")
    _, first, inverse, sizes = np.unique(groups[order], return_index=True, return_inverse=True, return_counts=True)
    start, size = first[inverse], sizes[inverse]  # where each photo's stratum begins, and how many photos it has
    counts = np.empty((resamples, n))
    for row in counts:
        row[order] = np.bincount(start + rng.integers(0, size), minlength=n)
    return counts


def percentile_interval(values: NDArray[np.float64], *, confidence: float = 0.95) -> Interval:
    """The middle share of the resampled values; NaN where a resample had no value, since the share is then unknown."""
    if len(values) == 0 or np.isnan(values).any():
        return Interval(math.nan, math.nan)
    ordered, n = np.sort(values), len(values)
    # ranks, not interpolation: a value may be infinite, and infinity times zero is no number
    low, high = (math.ceil(round(share * n, 6)) - 1 for share in ((1 - confidence) / 2, (1 + confidence) / 2))
    return Interval(float(ordered[max(low, 0)]), float(ordered[high]))
