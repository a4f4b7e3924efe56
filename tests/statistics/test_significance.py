from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from counterfoil.statistics.significance import benjamini_hochberg, holm


def test_holm_worked_by_hand() -> None:
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 raised to its predecessor.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_never_exceeds_one_and_leaves_out_what_is_no_number() -> None:
    adjusted = holm([0.6, math.nan, 0.5, 0.001])
    assert math.isnan(adjusted[1])
    assert [adjusted[0], adjusted[2], adjusted[3]] == pytest.approx([1.0, 1.0, 0.003])


def test_benjamini_hochberg_is_that_of_scipy() -> None:
    p_values = np.random.default_rng(1).beta(0.5, 2, 40)
    assert benjamini_hochberg(p_values.tolist()) == pytest.approx(stats.false_discovery_control(p_values))


def test_benjamini_hochberg_worked_by_hand() -> None:
    # Sorted: 0.005 x 4/1, 0.01 x 4/2, 0.03 x 4/3 lowered to its successor, 0.04 x 4/4.
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


def test_benjamini_hochberg_leaves_out_what_is_no_number() -> None:
    adjusted = benjamini_hochberg([0.6, math.nan, 0.02])
    assert math.isnan(adjusted[1])
    assert [adjusted[0], adjusted[2]] == pytest.approx([0.6, 0.04])
