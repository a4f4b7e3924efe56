"""A loss is clear only where the traces of editing, which the controls measure, do not explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from answer_rows import CONTROL, ORIGINAL, SMALL, SWAP, Answer, collect
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.control_losses import losses_from_controls
from counterfoil.statistics.drops import is_significant, measure_drops
from counterfoil.statistics.photo_tests import mean_interval
from counterfoil.statistics.references import find_reference
from counterfoil.types import Drop

HOLE = Condition("control", "fill-control", "beside")
PLAIN = Condition("background", "background-plain", "gray")
NOISE = Condition("corruption", "corruption-gaussian-noise", "3")
MOVED = Condition("position", "position", "random@0.05")


def drops_of(right: Mapping[Condition, Sequence[float]]) -> dict[str, Drop]:
    """The rows by edit; NaN is a photo without that picture."""
    rows = [
        Answer("net", str(photo), condition, value == 1)
        for condition, values in right.items()
        for photo, value in enumerate(values)
        if value == value
    ]
    return {row.edit: row for row in measure_drops(collect(rows))}


def first_right(right: int, photos: int = 200) -> list[float]:
    return [1.0] * right + [0.0] * (photos - right)


def test_a_loss_that_the_control_has_too_is_not_clear() -> None:
    rows = drops_of({ORIGINAL: first_right(190), CONTROL: first_right(150), PLAIN: first_right(148)})
    assert rows["background-plain"].drop_vs_reference == 21
    assert rows["background-plain"].p_adjusted < 1e-6
    assert not is_significant(rows["background-plain"])
    assert is_significant(rows["control"])  # the control itself is not counted from itself
    alone = drops_of({ORIGINAL: first_right(190), PLAIN: first_right(148)})
    assert is_significant(alone["background-plain"])


def test_a_loss_beyond_the_control_stays_clear_and_its_interval_holds_both_readings() -> None:
    rows = drops_of({ORIGINAL: first_right(190), CONTROL: first_right(180), PLAIN: first_right(120)})
    row = rows["background-plain"]
    assert is_significant(row)
    assert row.controls == "control"
    assert 0 < row.reference_low < row.drop_vs_control == 30 < row.drop_vs_reference == 35 < row.reference_high


def test_only_edits_that_show_a_fill_are_counted_from_the_filled_hole() -> None:
    right = {ORIGINAL: first_right(190), CONTROL: first_right(190), HOLE: first_right(150)}
    rows = drops_of({**right, PLAIN: first_right(150), SMALL: first_right(150)})
    assert (rows["background-plain"].controls, rows["size"].controls) == ("control", "control + fill-control")
    assert is_significant(rows["background-plain"])
    assert not is_significant(rows["size"])
    assert rows["size"].drop_vs_fill_control == 0


def test_an_edit_that_is_compared_with_another_edit_or_cuts_nothing_keeps_its_interval() -> None:
    right = {ORIGINAL: first_right(190), SMALL: first_right(160), MOVED: first_right(120), NOISE: first_right(120)}
    before, after = drops_of(right), drops_of({**right, CONTROL: first_right(100), HOLE: first_right(100)})
    for edit in ("position", "corruption-gaussian-noise"):
        assert (after[edit].reference_low, after[edit].controls) == (before[edit].reference_low, "")


def test_nine_photos_with_a_control_are_too_few_to_count_from() -> None:
    nine, ten = (
        drops_of({ORIGINAL: first_right(190), CONTROL: [0.0] * n + [np.nan] * (200 - n), SWAP: first_right(100)})
        for n in (9, 10)
    )
    assert (nine["background-swap"].controls, ten["background-swap"].controls) == ("", "control")
    assert is_significant(nine["background-swap"])
    assert not is_significant(ten["background-swap"])


def test_photos_without_a_control_have_the_mean_cost_of_the_others() -> None:
    # 40 photos, all right before; the hole is there for the first 20 and costs 10 of them; size costs 30.
    hole = [0.0] * 10 + [1.0] * 10 + [np.nan] * 20
    row = drops_of({ORIGINAL: [1.0] * 40, HOLE: hole, SMALL: [0.0] * 30 + [1.0] * 10})["size"]
    assert row.drop_vs_fill_control == pytest.approx(75 - 50)


def test_photos_without_a_control_have_the_cost_of_those_answered_alike_before() -> None:
    # The hole costs 5 of 10 that were right and none of 10 that were wrong, which had nothing to lose. It is missing
    # for 20 that were right: they lose half in the mean, not the quarter of all. Size costs all 30.
    original, hole = [1.0] * 10 + [0.0] * 10 + [1.0] * 20, [0.0] * 5 + [1.0] * 5 + [0.0] * 10 + [np.nan] * 20
    row = drops_of({ORIGINAL: original, HOLE: hole, SMALL: [0.0] * 40})["size"]
    assert row.drop_vs_fill_control == pytest.approx(100 * (30 - 5 - 10) / 40)


def test_the_bound_from_a_control_spends_its_level_on_the_one_side_where_the_drop_can_lie() -> None:
    lost = {ORIGINAL: first_right(190), CONTROL: first_right(180), PLAIN: first_right(120)}
    row = drops_of(lost)["background-plain"]
    beyond = np.array(lost[CONTROL]) - np.array(lost[PLAIN])
    level = 0.05 / 12  # one row of one attribute
    assert row.reference_low == pytest.approx(100 * mean_interval(beyond, confidence=1 - 2 * level).low)
    against = np.array(lost[ORIGINAL]) - np.array(lost[PLAIN])
    assert row.reference_high == pytest.approx(100 * mean_interval(against, confidence=1 - level).high)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_traces_alone_are_called_a_loss_no_more_often_than_the_level_allows(share: float) -> None:
    rng, rejected = np.random.default_rng(5), []
    for _ in range(300):
        easy = rng.random(120)  # answers of one photo are alike
        right = [(0.5 * easy + 0.5 * rng.random(120) < bound).astype(float) for bound in (0.75, 0.6, 0.6)]
        right[1][int(share * 120) :] = np.nan
        rows = [
            Answer("net", str(photo), condition, value == 1)
            for condition, values in zip((ORIGINAL, HOLE, SMALL), right, strict=True)
            for photo, value in enumerate(values)
            if value == value
        ]
        answers = collect(rows)
        (counted,) = losses_from_controls(answers, [2], [find_reference(answers, 2)], 0)
        low, high = mean_interval(counted.values, counted.answers)
        rejected.append(low > 0 or high < 0)
    assert 0.02 <= np.mean(rejected) <= 0.085  # 5 %, with the error of 300 trials


def test_few_photos_whose_control_costs_nothing_do_not_prove_that_it_costs_nothing() -> None:
    # Of ten photos none is lost in a tenth of the runs although the hole costs 20 points, as much as the size.
    rng, called = np.random.default_rng(6), []
    for _ in range(600):
        right = [(rng.random(30) < bound).astype(float) for bound in (0.98, 0.78, 0.78)]
        right[1][10:] = np.nan
        rows = [
            Answer("net", str(photo), condition, value == 1)
            for condition, values in zip((ORIGINAL, HOLE, SMALL), right, strict=True)
            for photo, value in enumerate(values)
            if value == value
        ]
        answers = collect(rows)
        (counted,) = losses_from_controls(answers, [2], [find_reference(answers, 2)], 0)
        called.append(mean_interval(counted.values, counted.answers).low > 0)
    assert (
        np.mean(called) <= 0.045
    )  # 2.5 % on this side, with the error of 600 trials; 8.5 % without the two unseen photos
