"""How different the pictures of a set are: the mean distance between two of one class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.interval import Estimate

_QUANTILE = NormalDist().inv_cdf(0.975)
_FEWEST = 3  # pictures of a class; with two, leaving one out leaves no pair


def mean_pairwise_distance(embeddings: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of 1 - cosine over all pairs of rows of length 1, and its variance by the jackknife.

    The cosines of all pairs add up to the squared length of the rows' sum less one for each row, so no pair is formed.
    """
    n = len(embeddings)
    total = embeddings.sum(axis=0)
    left_out = total - embeddings
    lengths = np.einsum("ij,ij->i", left_out, left_out)
    without = 1 - (lengths - (n - 1)) / ((n - 1) * (n - 2))
    value = 1 - (float(total @ total) - n) / (n * (n - 1))
    return value, float((n - 1) / n * ((without - without.mean()) ** 2).sum())


def diversity(embeddings: NDArray[np.float32], labels: Sequence[str]) -> Estimate:
    """The mean over classes of the mean distance within a class, with its 95 % interval; small classes are left out."""
    rows = embeddings.astype(np.float64)
    names = np.asarray(labels, object)
    groups = [rows[names == label] for label in sorted(set(labels))]
    found = [mean_pairwise_distance(group) for group in groups if len(group) >= _FEWEST]
    used = sum(len(group) for group in groups if len(group) >= _FEWEST)
    if not found:
        return Estimate(math.nan, math.nan, math.nan, 0)
    value = math.fsum(mean for mean, _ in found) / len(found)
    error = math.sqrt(math.fsum(variance for _, variance in found)) / len(found)
    return Estimate(value, value - _QUANTILE * error, value + _QUANTILE * error, used)
