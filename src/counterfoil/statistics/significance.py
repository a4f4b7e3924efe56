"""P values adjusted for many tests by Holm, and by Benjamini and Hochberg."""

from __future__ import annotations

import math
from collections.abc import Sequence

SIGNIFICANCE = 0.05


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment over all p values that are numbers; NaN stays NaN and is not counted."""
    return [min(1.0, product) if product == product else math.nan for product, _ in _step_down(p_values)]


def holm_factors(p_values: Sequence[float]) -> list[float]:
    """By how much Holm's method multiplies each p value before it is cut at 1; NaN where p is NaN."""
    return [factor for _, factor in _step_down(p_values)]


def _step_down(p_values: Sequence[float]) -> list[tuple[float, float]]:
    """Holm's product of each p value, and the factor in it; no product is smaller than that of a smaller p."""
    order = sorted((p, position) for position, p in enumerate(p_values) if not math.isnan(p))
    products = [(math.nan, math.nan)] * len(p_values)
    largest = 0.0
    for rank, (p, position) in enumerate(order):
        largest = max(largest, p * (len(order) - rank))
        products[position] = largest, largest / p if p > 0.0 else float(len(order) - rank)
    return products


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The step-up adjustment that bounds the false discovery rate; NaN stays NaN and is not counted."""
    order = sorted((p, position) for position, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    smallest = 1.0
    for rank, (p, position) in reversed(list(enumerate(order, start=1))):
        smallest = min(smallest, p * len(order) / rank)
        adjusted[position] = smallest
    return adjusted
