"""Calibration: how far confidence and accuracy lie apart, before and after an edit."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Condition
from counterfoil.analyse.details import Details
from counterfoil.analyse.interval import Estimate
from counterfoil.analyse.resampling import percentile_interval, resample_counts

BINS = 15
_RESAMPLES = 1_000  # of thousands of photos in 15 bins under every condition


class CalibrationChange(NamedTuple):
    """The expected calibration error of one model before and after an edit, in percent, and its rise in points."""

    model: str
    condition: Condition
    before: float
    after: float
    change: Estimate


def expected_calibration_error(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], *, bins: int = BINS
) -> float:
    """Sum over equal bins (low, high] of the bin's share times |accuracy - mean confidence|; a share."""
    if len(confidence) == 0:
        return math.nan
    gaps = np.bincount(_bin(confidence, bins), confidence - correct, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def calibration_changes(details: Details, rng: np.random.Generator, *, bins: int = BINS) -> list[CalibrationChange]:
    """ECE before and after every edit, over the photos answered on both sides; interval by photos resampled."""
    answers = details.answers
    counts = resample_counts(len(answers.samples), rng, resamples=_RESAMPLES)
    changes: list[CalibrationChange] = []
    for model in range(len(answers.models)):
        sides = [_side(details, model, condition, bins) for condition in range(len(answers.conditions))]
        before = [side for side, what in zip(sides, answers.conditions, strict=True) if what.attribute == "original"]
        changes += [
            _change((answers.models[model], what), before[0], after, counts)
            for what, after in zip(answers.conditions, sides, strict=True)
            if before and what.attribute != "original"
        ]
    return changes


class _Side(NamedTuple):
    gaps: NDArray[np.float64]  # (photos, bins), confidence minus right answers
    answers: NDArray[np.float64]  # (photos,)

    def of(self, photos: NDArray[np.bool_]) -> _Side:
        """The same without the other photos."""
        return _Side(self.gaps * photos[:, None], self.answers * photos)

    def error(self, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        """ECE of photos drawn so often, (draws, photos)."""
        with np.errstate(invalid="ignore"):  # a draw without answers has no error
            errors: NDArray[np.float64] = np.abs(drawn @ self.gaps).sum(axis=1) / (drawn @ self.answers)
        return errors


def _side(details: Details, model: int, condition: int, bins: int) -> _Side:
    answers, photos = details.answers, len(details.answers.samples)
    rows = np.flatnonzero((answers.model == model) & (answers.condition == condition) & answers.scored)
    rows = rows[np.isfinite(details.top_score[rows])]
    photo, confidence = answers.sample[rows], details.top_score[rows]
    cell = photo * bins + _bin(confidence, bins)
    gaps = np.bincount(cell, confidence - answers.correct[rows], minlength=photos * bins).astype(np.float64)
    return _Side(gaps.reshape(photos, bins), np.bincount(photo, minlength=photos).astype(np.float64))


def _change(
    names: tuple[str, Condition], before: _Side, after: _Side, counts: NDArray[np.float64]
) -> CalibrationChange:
    both = (before.answers > 0) & (after.answers > 0)
    before, after = before.of(both), after.of(both)
    first, second = (float(side.error(np.ones((1, len(both))))[0]) for side in (before, after))
    interval = percentile_interval(after.error(counts) - before.error(counts))
    change = Estimate(second - first, *interval, int(both.sum())).scaled(100)
    return CalibrationChange(*names, 100 * first, 100 * second, change)


def _bin(confidence: NDArray[np.float64], bins: int) -> NDArray[np.intp]:
    places: NDArray[np.intp] = np.clip(np.ceil(confidence * bins).astype(np.intp) - 1, 0, bins - 1)
    return places
