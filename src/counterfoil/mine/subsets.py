"""Groups of surrogates: all there are, or a sample where they are too many."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

MOST_SURROGATES_FOR_ALL = 12  # 4,095 groups; past this a sample of each size is drawn
_SAMPLED = 100  # groups of a size


def subsets(surrogates: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Every non-empty group as a row, (groups, surrogates), small ones first; sampled past twelve surrogates."""
    rows = [row for size in range(1, surrogates + 1) for row in _of_size(surrogates, size, rng)]
    masks = np.zeros((len(rows), surrogates), bool)
    for mask, row in zip(masks, rows, strict=True):
        mask[list(row)] = True
    return masks


def _of_size(surrogates: int, size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    if surrogates <= MOST_SURROGATES_FOR_ALL or math.comb(surrogates, size) <= _SAMPLED:
        return list(itertools.combinations(range(surrogates), size))
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < _SAMPLED:
        drawn[tuple(sorted(rng.choice(surrogates, size, replace=False).tolist()))] = None
    return list(drawn)
