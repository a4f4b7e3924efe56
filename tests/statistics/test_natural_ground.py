"""Drops on another photo's background, against counts by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from answer_rows import ORIGINAL, SMALL, SWAP, answers_of
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.attribute_verdicts import judge_attributes
from counterfoil.statistics.drops import measure_drops
from counterfoil.statistics.natural_ground import measure_natural_ground, prefer_scene
from counterfoil.types import EditLevel

SCENE = Condition("background", "scene-swap", "random")
SMALL_THERE = Condition("size", "scene-size", "0.05")
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


def test_an_edit_in_a_scene_is_against_that_scene_and_beside_the_same_edit_on_its_own_ground() -> None:
    rows = {
        ("m", ORIGINAL): [1.0] * 20,
        ("m", SMALL): [0.0] * 3 + [1.0] * 9 + [np.nan] * 8,
        ("m", SCENE): [0.0] * 5 + [1.0] * 15,
        ("m", SMALL_THERE): [0.0] * 15 + [1.0] * 5,
    }
    answers = answers_of(rows)
    (row,) = measure_natural_ground(answers)
    assert (row.edit, row.ground) == (EditLevel("size", "0.05"), EditLevel("scene-swap", "random"))
    assert row.drop.n == 12
    assert (row.drop.value, row.own_drop.value) == pytest.approx((100 * 7 / 12, 25))
    there = next(own for own in measure_drops(answers) if own.edit == "scene-size")
    assert (there.reference, there.n_reference, there.drop_vs_reference) == ("scene-swap random", 20, 50)


def test_the_ground_on_which_more_photos_could_be_used_stands_for_the_attribute() -> None:
    rows = {
        ("m", ORIGINAL): [1.0] * 20,
        ("m", SMALL): [1.0] * 12 + [np.nan] * 8,
        ("m", SCENE): [1.0] * 20,
        ("m", SMALL_THERE): [1.0] * 13 + [np.nan] * 7,
    }
    own, there = EditLevel("size", "0.05"), EditLevel("scene-size", "0.05")
    assert prefer_scene(answers_of(rows), own) == there
    fewer = rows | {("m", SCENE): [1.0] * 9 + [np.nan] * 11}  # without its reference a picture says nothing
    assert prefer_scene(answers_of(fewer), own) == own
    assert prefer_scene(answers_of(rows), EditLevel("size", "0.1")) == EditLevel("size", "0.1")


def test_a_loss_in_scenes_alone_is_a_loss_of_the_attribute_and_both_grounds_share_its_level() -> None:
    rows = {
        ("m", ORIGINAL): [1.0] * 60,
        ("m", SMALL): [1.0] * 60,
        ("m", SCENE): [1.0] * 60,
        ("m", SMALL_THERE): [0.0] * 30 + [1.0] * 30,
    }
    answers = answers_of(rows)
    drops = {row.edit: row for row in measure_drops(answers)}
    alone = {row.edit: row for row in measure_drops(answers_of({k: v for k, v in rows.items() if k[1] != SMALL}))}
    assert drops["scene-size"].p_adjusted == pytest.approx(2 * alone["scene-size"].p_adjusted)
    verdict = next(own for own in judge_attributes(answers, list(drops.values()), {}) if own.attribute == "size")
    assert (verdict.costs, verdict.representative.edit) == (True, "scene-size")
