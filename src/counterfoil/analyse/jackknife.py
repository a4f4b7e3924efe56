"""The interval of a measure that is no mean, from its values with each unit left out."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.interval import Bounds, score_interval
from counterfoil.analyse.paired import Interval
from counterfoil.analyse.photo_shares import student

_FEWEST = 3  # units; the variance of two is anybody's guess
_NORMAL = NormalDist()


def jackknife_interval(value: float, left_out: NDArray[np.float64], bounds: Bounds) -> Interval:
    """The score interval of the pseudo-values, with Student's quantile; it has a width where all units agree.

    A pseudo-value is what one unit makes of the measure. Where the measure has no value without one of the units, that
    one carries it, and there is no interval.
    """
    n = len(left_out)
    if n < _FEWEST or not np.isfinite([value, *left_out]).all():
        return Interval(math.nan, math.nan)
    pseudo = n * value - (n - 1) * left_out
    possible = Bounds(min(bounds.low, float(pseudo.min())), max(bounds.high, float(pseudo.max())))
    confidence = 2 * _NORMAL.cdf(student(n - 1)) - 1
    low, high = score_interval(pseudo, bounds=possible, confidence=confidence)
    return Interval(max(bounds.low, min(low, value)), min(bounds.high, max(high, value)))
