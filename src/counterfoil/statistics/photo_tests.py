"""The test of a mean difference over photos and the interval that belongs to it: one pair for every comparison.

Each photo has one number. A difference of two answers (a drop, two models on the same picture) lies in -1..1: the score
test with both ends possible. A difference of four answers (the drops of two models, or of two attributes, or an
interaction) lies in -2..2: Student's test, and the score test where few photos differ. Null simulations of both are in
tests/statistics/test_photo_tests.py and bench/coverage.py.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.intervals import Estimate, Interval, RateBounds, exact_mean, score_interval, score_test

AnswerCount: TypeAlias = Literal[2, 4]  # how many answers are in the number of a photo

FEWEST_DIFFERENT = 5  # photos that differ; with fewer their spread says too little for Student's test
_TWO_ANSWERS = RateBounds(-1.0, 1.0)
_ROUNDED = 1e-10  # below it a difference is float error
_STEPS = 300  # of the continued fraction; it ends by itself long before
_TINY = 1e-300


def p_of_mean(values: NDArray[np.float64], answers: AnswerCount = 2) -> float:
    """The two-sided p for mean zero; NaN without values, 1 where nothing differs."""
    if _student(values, answers):
        return student_p(abs(float(values.mean())) / _standard_error(values), len(values) - 1)
    return score_test(values, bounds=_TWO_ANSWERS if answers == 2 else None)


def mean_interval(values: NDArray[np.float64], answers: AnswerCount = 2, *, confidence: float = 0.95) -> Interval:
    """The means that the test does not reject at this level."""
    if _student(values, answers):
        half = student_two_sided_quantile(1.0 - confidence, len(values) - 1) * _standard_error(values)
        return Interval(float(values.mean()) - half, float(values.mean()) + half)
    return score_interval(values, bounds=_TWO_ANSWERS if answers == 2 else None, confidence=confidence)


def estimate_mean(values: NDArray[np.float64], answers: AnswerCount = 2) -> Estimate:
    """The mean with its 95 % interval; NaN values (photos without answer) are left out."""
    known = values[np.isfinite(values)]
    return Estimate(exact_mean(known), *mean_interval(known, answers), len(known))


def student_p(t: float, freedom: float) -> float:
    """The two-sided p of Student's distribution."""
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)


@lru_cache(maxsize=4_096)
def student_two_sided_quantile(p: float, freedom: float) -> float:
    """The value that Student's distribution exceeds on either side with probability p."""
    low, high = 0.0, 2.0
    while student_p(high, freedom) > p:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if student_p(middle, freedom) > p else (low, middle)
    return high


def _student(values: NDArray[np.float64], answers: AnswerCount) -> bool:
    different = int((np.abs(values) > _ROUNDED).sum())
    return answers == 4 and different >= FEWEST_DIFFERENT and float(np.ptp(values)) > _ROUNDED


def _standard_error(values: NDArray[np.float64]) -> float:
    ordered = np.sort(values)  # the same to the bit in any order of photos
    return float(ordered.std(ddof=1)) / math.sqrt(len(values))


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(1.0 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) - math.log(a) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    value, c, d = 1.0, 1.0, 0.0
    for step in range(_STEPS):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        else:
            term = -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        d = 1.0 / (1.0 + term * d or _TINY)
        c = 1.0 + term / c or _TINY
        value *= c * d
        if abs(1.0 - c * d) < 1e-14:
            break
    return math.exp(front) * (value - 1.0)
