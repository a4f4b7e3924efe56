"""Accuracy against the strength of an edit, and the strength at which it has fallen by so many points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from counterfoil.analyse.drops import significant
from counterfoil.types import Drop


class DosePoint(NamedTuple):
    """Accuracy of one model at one level; the interval is the drop's, seen from the original, within 0..100."""

    model: str
    level: str
    object_share: float  # percent of the picture
    n: int
    accuracy: float
    low: float
    high: float
    accuracy_original: float
    significant: bool


def dose_curve(drops: Iterable[Drop], edit: str = "size") -> list[DosePoint]:
    """The points of one edit, models in the order of the table, small objects first; rows without share left out."""
    rows = [row for row in drops if row.edit == edit and row.n > 0 and not math.isnan(row.object_share)]
    models = list(dict.fromkeys(row.model for row in rows))
    return [_point(row) for row in sorted(rows, key=lambda row: (models.index(row.model), row.object_share))]


def _point(row: Drop) -> DosePoint:
    low, high = max(0.0, row.accuracy_original - row.ci_high), min(100.0, row.accuracy_original - row.ci_low)
    return DosePoint(
        row.model, row.level, row.object_share, row.n, row.accuracy, low, high, row.accuracy_original, significant(row)
    )
