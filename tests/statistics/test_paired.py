from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from counterfoil.statistics.paired import mcnemar


def outcomes(lost: int, gained: int, same: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([1.0] * lost + [-1.0] * gained + [0.0] * same)


@pytest.mark.parametrize(("lost", "gained"), [(0, 1), (5, 0), (10, 2), (2, 10), (7, 7), (60, 31), (3_000, 2_800)])
def test_mcnemar_is_the_binomial_test_of_scipy(lost: int, gained: int) -> None:
    reference = stats.binomtest(lost, lost + gained, 0.5).pvalue
    assert mcnemar(outcomes(lost, gained, 50)) == pytest.approx(reference, rel=1e-9)


def test_mcnemar_worked_by_hand() -> None:
    # 1 gained of 6 changed: 2 * (1 + 6) / 64.
    assert mcnemar(outcomes(5, 1, 9)) == pytest.approx(14 / 64)


def test_mcnemar_says_one_where_nothing_changed() -> None:
    assert mcnemar(outcomes(0, 0, 12)) == 1.0


def test_no_photos_give_no_numbers() -> None:
    assert math.isnan(mcnemar(outcomes(0, 0, 0)))
