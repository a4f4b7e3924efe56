"""Drops on another photo's background, against counts by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from answer_rows import ORIGINAL, SMALL, SWAP, answers_of
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.natural_ground import measure_natural_ground
from counterfoil.types import EditLevel

BOTH = Condition("combination", "combine-donor", "background-swap other + size 0.05")


def test_a_drop_on_another_ground_is_against_that_ground_alone_and_beside_the_drop_on_its_own() -> None:
    rows = {
        ("m", ORIGINAL): [1.0] * 20,
        ("m", SMALL): [0.0] * 8 + [1.0] * 12,
        ("m", SWAP): [0.0] * 4 + [1.0] * 16,
        ("m", BOTH): [0.0] * 14 + [1.0] * 5 + [np.nan],
    }
    (row,) = measure_natural_ground(answers_of(rows))
    assert (row.edit, row.ground) == (EditLevel("size", "0.05"), EditLevel("background-swap", "other"))
    assert row.drop.n == row.own_drop.n == 19  # the last photo has no picture with both
    assert (row.drop.value, row.own_drop.value) == pytest.approx((100 * 10 / 19, 100 * 8 / 19))
    assert row.difference.value == pytest.approx(100 * 2 / 19)
    assert row.difference.ci_low < row.difference.value < row.difference.ci_high
    assert row.is_clear


def test_without_the_edit_alone_the_drop_on_the_other_ground_is_still_there() -> None:
    rows = {("m", ORIGINAL): [1.0] * 4, ("m", SWAP): [0.0, 1, 1, 1], ("m", BOTH): [0.0, 0, 0, 1]}
    (row,) = measure_natural_ground(answers_of(rows))
    assert (row.drop.value, row.drop.n) == (50, 4)
    assert math.isnan(row.own_drop.value)


def test_without_the_ground_alone_nothing_is_said() -> None:
    assert measure_natural_ground(answers_of({("m", ORIGINAL): [1.0], ("m", BOTH): [1.0]})) == []
