"""Effective robustness: accuracy under a shift beyond what the accuracy without it lets expect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counterfoil.errors import UserError


class Baseline(NamedTuple):
    """The line through the reference models, on the scale of log odds."""

    slope: float
    intercept: float

    def expected(self, clean: float) -> float:
        """The accuracy under the shift that a model of this clean accuracy should have; both as shares."""
        return 1.0 / (1.0 + math.exp(-(self.slope * _log_odds(clean) + self.intercept)))


def fit_baseline(clean: Sequence[float], shifted: Sequence[float]) -> Baseline:
    """The least-squares line of log odds, shifted against clean accuracy, over the reference models."""
    if len(set(clean)) < 2 or len(clean) != len(shifted):
        raise UserError(
            f"expected pairs of accuracies of two different models at least, got {len(clean)} and {len(shifted)}"
        )
    slope, intercept = np.polyfit([_log_odds(a) for a in clean], [_log_odds(a) for a in shifted], 1)
    return Baseline(float(slope), float(intercept))


def effective_robustness(clean: float, shifted: float, baseline: Baseline) -> float:
    """Accuracy under the shift minus the expected one; all as shares."""
    return shifted - baseline.expected(clean)


def _log_odds(share: float) -> float:
    if not 0.0 < share < 1.0:
        raise UserError(f"expected an accuracy between 0 and 1, got {share:g}; log odds do not exist at the ends")
    return math.log(share / (1.0 - share))
