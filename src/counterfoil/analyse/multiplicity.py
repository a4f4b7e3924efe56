"""Many tests at once: Holm's and Benjamini-Hochberg's adjusted p values."""

from __future__ import annotations

import math
from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment over all p values that are numbers; NaN stays NaN and counts for nothing."""
    order = sorted((p, position) for position, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for rank, (p, position) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[position] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The step-up adjustment that bounds the share of false findings; NaN stays NaN and counts for nothing."""
    order = sorted((p, position) for position, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    smallest = 1.0
    for rank, (p, position) in reversed(list(enumerate(order, start=1))):
        smallest = min(smallest, p * len(order) / rank)
        adjusted[position] = smallest
    return adjusted
