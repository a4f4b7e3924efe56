"""Paired statistics: McNemar's exact test, and what an interval is."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def mcnemar(differences: NDArray[np.float64]) -> float:
    """The exact two-sided p of McNemar's test; with several replicates per photo, of the sign test over photos."""
    if len(differences) == 0:
        return math.nan
    lost, gained = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    if lost == gained:
        return 1.0
    return min(1.0, 2.0 * _fair_coin_tail(min(lost, gained), lost + gained))


def _fair_coin_tail(successes: int, tosses: int) -> float:
    """P(at most `successes` heads in `tosses` of a fair coin)."""
    k = np.arange(1, successes + 1, dtype=np.float64)
    logarithms = np.concatenate(([0.0], np.cumsum(np.log((tosses - k + 1.0) / k)))) - tosses * math.log(2.0)
    return float(np.sum(np.exp(logarithms)))
