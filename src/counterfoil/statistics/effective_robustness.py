"""Effective robustness: accuracy under a shift beyond what a line through reference models expects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.intervals import Estimate, percentile_interval, resampled_means

FEWEST_REFERENCES = 3  # models of a run that give a line of their own; two lie on their line exactly


class Baseline(NamedTuple):
    """The line through the reference models, on the scale of log odds."""

    slope: float
    intercept: float

    def expected(self, clean: float) -> float:
        """The expected accuracy under the shift at this clean accuracy; both as shares."""
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
    """The accuracy under the shift minus the expected one; all as shares."""
    return shifted - baseline.expected(clean)


def _log_odds(share: float) -> float:
    if not 0.0 < share < 1.0:
        raise UserError(f"expected an accuracy between 0 and 1, got {share:g}; log odds do not exist at the ends")
    return math.log(share / (1.0 - share))


def estimate_effective_robustness(
    clean: NDArray[np.float64], shifted: NDArray[np.float64], rng: np.random.Generator, baseline: Baseline | None = None
) -> list[Estimate]:
    """Effective robustness of each model in points, interval by photos resampled.

    Args:
        clean: Right answers to the unedited photos as shares, (models, photos), NaN where unknown.
        shifted: Right answers under the shift, mean over its pictures, (models, photos), NaN where unknown.
        rng: Draws the photos.
        baseline: The line of other models; without it, the line through these models, fitted anew in every resample.
    """
    known = np.isfinite(clean) & np.isfinite(shifted)
    one, two = np.where(known, clean, np.nan), np.where(known, shifted, np.nan)
    photos = known.sum(axis=1)
    with np.errstate(invalid="ignore"):
        observed = np.stack([np.nansum(rows, axis=1) / photos for rows in (one, two)])
    values = _residuals(observed[:1], observed[1:], photos, baseline)[0]
    one_drawn, two_drawn = resampled_means([one, two], rng)
    drawn = _residuals(one_drawn, two_drawn, photos, baseline)
    return [
        Estimate(float(value), *percentile_interval(column), int(n)).scaled(100)
        for value, column, n in zip(values, drawn.T, photos, strict=True)
    ]


def _residuals(
    clean: NDArray[np.float64], shifted: NDArray[np.float64], photos: NDArray[np.intp], baseline: Baseline | None
) -> NDArray[np.float64]:
    """Accuracy under the shift minus the expected one, (resamples, models); log odds of half a photo at the ends."""
    edge = 0.5 / np.maximum(photos, 1)
    x, y = (np.clip(rates, edge, 1 - edge) for rates in (clean, shifted))
    x, y = np.log(x / (1 - x)), np.log(y / (1 - y))
    if baseline is None:
        gaps = x - x.mean(axis=1, keepdims=True)
        spread = (gaps**2).sum(axis=1, keepdims=True)
        slope = (gaps * y).sum(axis=1, keepdims=True) / np.where(spread > 0, spread, np.nan)
        expected = y.mean(axis=1, keepdims=True) + slope * gaps
    else:
        expected = baseline.slope * x + baseline.intercept
    return np.asarray(shifted - 1 / (1 + np.exp(-expected)), np.float64)
