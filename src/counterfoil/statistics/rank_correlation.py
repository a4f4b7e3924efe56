"""Spearman's rank correlation of a few models' measures, with an exact test."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FEWEST_MODELS = 5  # with four, no order of the models reaches p < 0.05
_EXACT_UP_TO = 7  # models: 5,040 orders
_SHUFFLES = 20_000


class RankCorrelation(NamedTuple):
    """Spearman's rho of two measures over the same models."""

    rho: float
    p_value: float  # two-sided, over all orders of the models; over drawn ones with more than seven models
    models: int


def correlate_ranks(
    first: NDArray[np.float64], second: NDArray[np.float64], rng: np.random.Generator
) -> RankCorrelation:
    """Spearman's rho over the models that have both measures; NaN with fewer than three, or where all are tied."""
    known = np.isfinite(first) & np.isfinite(second)
    n = int(known.sum())
    if n < 3:
        return RankCorrelation(math.nan, math.nan, n)
    one, two = (_centred_ranks(values[known]) for values in (first, second))
    scale = math.sqrt(float(one @ one) * float(two @ two))
    if not scale:
        return RankCorrelation(math.nan, math.nan, n)
    rho = float(one @ two) / scale
    if n <= _EXACT_UP_TO:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        orders = rng.permuted(np.tile(np.arange(n), (_SHUFFLES, 1)), axis=1)
    shuffled = np.abs(two[orders] @ one) / scale
    extreme = int((shuffled >= abs(rho) - 1e-9).sum())
    exact = n <= _EXACT_UP_TO
    return RankCorrelation(rho, extreme / len(orders) if exact else (extreme + 1) / (len(orders) + 1), n)


def _centred_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks minus their mean; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2.0)[place]
    return np.asarray(ranks - ranks.mean(), np.float64)
