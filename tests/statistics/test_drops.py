from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answer_rows import Answer, collect
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.attribute_verdicts import costs
from counterfoil.statistics.drops import is_significant, measure_attribute_drops, measure_drops
from counterfoil.statistics.families import DIVISORS, MAIN_FAMILY, family_of
from counterfoil.statistics.intervals import score_test
from counterfoil.types import ATTRIBUTES, GROWN_MASK, SECOND_FILL, SHRUNK_MASK, Drop, PredictionOutcome

ORIGINAL = Condition("original", "original", "")
CONTROL = Condition("control", "control", "")
SWAP = Condition("background", "background-swap", "other")
SAME = Condition("background", "background-swap", "same")
SMALL = Condition("size", "size", "0.05")
LARGE = Condition("size", "size", "full")


def answers_to(condition: Condition, correct: Sequence[int], model: str = "net", share: float = 20.0) -> list[Answer]:
    return [
        Answer(model, f"cat/{photo}", condition, bool(right), object_share=share) for photo, right in enumerate(correct)
    ]


def test_drop_worked_by_hand() -> None:
    rows = [
        *answers_to(ORIGINAL, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]),
        *answers_to(CONTROL, [1, 1, 1, 1, 1, 1, 1, 0, 0, 0]),
        *answers_to(SWAP, [0, 0, 0, 0, 0, 0, 1, 1, 1, 0]),
    ]
    control, swap = measure_drops(collect(rows))
    assert (control.attribute, control.n, control.drop_vs_control) == ("control", 10, 0.0)
    assert control.drop == pytest.approx(10.0)
    assert (swap.model, swap.attribute, swap.edit, swap.level) == ("net", *SWAP)
    assert swap.n == 10
    assert (swap.accuracy_original, swap.accuracy_control, swap.accuracy) == pytest.approx((80, 70, 30))
    assert (swap.drop, swap.drop_vs_control) == pytest.approx((50, 40))
    assert swap.p_value == pytest.approx(math.erfc(5 / math.sqrt(7) / math.sqrt(2)))  # 6 lost, 1 gained
    assert swap.p_adjusted == pytest.approx(12 * swap.p_value)
    assert (control.family, swap.family) == ("control", "attributes")
    assert swap.object_share == pytest.approx(20.0)


def test_only_photos_scored_on_both_sides_count() -> None:
    rows = [
        *answers_to(ORIGINAL, [1, 1, 1, 1]),
        *answers_to(CONTROL, [1, 1]),
        *answers_to(SWAP, [0, 1, 0]),
        Answer("net", "cat/3", SWAP, correct=True, outcome="error"),
    ]
    swap = measure_drops(collect(rows))[1]
    assert swap.n == 3
    assert swap.accuracy == pytest.approx(100 / 3)
    assert swap.accuracy_control == pytest.approx(100.0)  # of the two photos that have a control
    assert swap.drop_vs_control == pytest.approx(50.0)


@pytest.mark.parametrize("outcome", ["error", "refused", "unparsed"])
def test_unscored_answers_are_counted_and_left_out(outcome: PredictionOutcome) -> None:
    rows = [*answers_to(ORIGINAL, [1, 1]), Answer("net", "cat/0", SWAP, correct=False, outcome=outcome)]
    answers = collect(rows)
    row = measure_drops(answers)[0]
    assert answers.unscored == {"net": 1}
    assert row.n == 0
    assert all(
        math.isnan(value) for value in (row.accuracy, row.drop, row.ci_low, row.ci_high, row.p_value, row.p_adjusted)
    )


def test_without_control_the_comparison_with_it_is_no_number() -> None:
    row = measure_drops(collect([*answers_to(ORIGINAL, [1, 0]), *answers_to(SWAP, [0, 0])]))[0]
    assert math.isnan(row.accuracy_control)
    assert math.isnan(row.drop_vs_control)
    assert row.drop == pytest.approx(50.0)


def test_no_answers_give_no_rows() -> None:
    assert measure_drops(collect([])) == []


def test_every_photo_counts_once_whatever_its_replicates() -> None:
    rows = [*answers_to(ORIGINAL, [1, 1]), Answer("net", "cat/1", SWAP, True)]
    rows += [Answer("net", "cat/0", SWAP, correct=False, replicate=replicate) for replicate in range(3)]
    row = measure_drops(collect(rows))[0]
    assert (row.n, row.accuracy, row.drop) == (2, 50.0, 50.0)


def test_with_replicates_the_p_is_that_of_the_score_test_over_photos() -> None:
    rows = answers_to(ORIGINAL, [1] * 9 + [0] * 3)
    for replicate, correct in enumerate([[0] * 9 + [1, 0, 0], [1] * 4 + [0] * 5 + [0, 0, 0]]):
        rows += [
            Answer("net", f"cat/{photo}", SWAP, bool(right), replicate=replicate) for photo, right in enumerate(correct)
        ]
    row = measure_drops(collect(rows))[0]
    assert row.p_value == pytest.approx(score_test(np.array([0.5] * 4 + [1.0] * 5 + [-0.5, 0, 0])))
    assert row.drop == pytest.approx(100 * (4 * 0.5 + 5 - 0.5) / 12)


def test_an_answer_that_is_there_twice_is_refused() -> None:
    rows = [*answers_to(ORIGINAL, [1]), *answers_to(SWAP, [1]), *answers_to(SWAP, [0])]
    with pytest.raises(ValueError, match="got 2 of net to cat/0, background-swap other"):
        measure_drops(collect(rows))


def test_order_of_answers_changes_no_number() -> None:
    source = random.Random(5)
    rows = [
        Answer(model, f"cat/{photo}", condition, source.random() < 0.7, "scored", source.random() * 40, replicate)
        for model in ("a", "b")
        for photo in range(40)
        for condition in (ORIGINAL, CONTROL, SWAP, SMALL)
        for replicate in range(1 if condition in (ORIGINAL, CONTROL) else 3)
    ]
    names = {"models": ("a", "b"), "conditions": (ORIGINAL, CONTROL, SWAP, SMALL)}
    expected = repr(measure_drops(collect(rows, **names)))  # type: ignore[arg-type]
    for _ in range(3):
        source.shuffle(rows)
        assert repr(measure_drops(collect(rows, **names))) == expected  # type: ignore[arg-type]


def test_rows_come_in_the_order_that_was_given() -> None:
    rows = [
        answer
        for model in ("b", "a")
        for condition in (LARGE, SWAP, ORIGINAL)
        for answer in answers_to(condition, [1, 0], model)
    ]
    table = measure_drops(collect(rows, models=("a", "b"), conditions=(ORIGINAL, SWAP, LARGE)))
    assert [(row.model, row.edit) for row in table] == [
        ("a", "background-swap"), ("a", "size"), ("b", "background-swap"), ("b", "size"),
    ]  # fmt: skip


OTHERS = {
    "another model": [(ORIGINAL, "b"), (SWAP, "b"), (SMALL, "b")],
    "another attribute": [(Condition("colour", "object-hue", "90"), "net")],
    "a level of another attribute": [(LARGE, "net")],
    "an attribute of another package": [(Condition("stripes", "stripes", "8"), "net")],
    "a surface edit": [(Condition("texture", "texture", "fur"), "net")],
    "another attribute in another scene": [(Condition("size", "scene-size", "0.05"), "net")],
    "another mask for another attribute": [(Condition(SHRUNK_MASK, *SMALL[1:]), "net")],
}


@pytest.mark.parametrize("added", OTHERS)
def test_nothing_added_outside_an_attribute_changes_its_verdict(added: str) -> None:
    source = random.Random(3)

    def draw(condition: Condition, model: str) -> list[Answer]:
        return answers_to(condition, [source.random() < 0.7 for _ in range(40)], model)

    rows = [*draw(ORIGINAL, "net"), *draw(SWAP, "net"), *draw(SAME, "net"), *draw(SMALL, "net")]
    more = [answer for condition, model in OTHERS[added] for answer in draw(condition, model)]
    before, after = (
        [row for row in measure_drops(collect(table)) if (row.model, row.attribute) == ("net", "background")]
        for table in (rows, rows + more)
    )
    assert repr([replace(row, accuracy_control=0, drop_vs_control=0) for row in after]) == repr(
        [replace(row, accuracy_control=0, drop_vs_control=0) for row in before]
    )


def test_a_second_edit_of_the_attribute_is_corrected_for() -> None:
    rows = [*answers_to(ORIGINAL, [1] * 20), *answers_to(SWAP, [0] * 6 + [1] * 14)]
    alone = measure_drops(collect(rows))[0]
    beside = measure_drops(collect([*rows, *answers_to(SAME, [1] * 20)]))[0]
    assert alone.p_adjusted == pytest.approx(12 * alone.p_value)
    assert beside.p_adjusted == pytest.approx(24 * alone.p_value)
    assert beside.reference_low < alone.reference_low < alone.ci_low


def test_the_divisor_covers_the_built_in_attributes_that_are_in_no_other_family() -> None:
    assert DIVISORS[MAIN_FAMILY] >= sum(family_of(attribute) == MAIN_FAMILY for attribute in ATTRIBUTES)


def test_an_edit_is_compared_with_its_reference_where_the_table_has_it() -> None:
    moved = Condition("position", "position", "random@0.05")
    rows = [
        *answers_to(ORIGINAL, [1] * 20),
        *answers_to(SMALL, [1] * 11 + [0] * 9),
        *answers_to(moved, [1] * 10 + [0] * 10),
    ]
    size, position = measure_drops(collect(rows))
    assert (size.reference, position.reference) == ("original", "size 0.05")
    assert (size.drop_vs_reference, position.accuracy_reference) == pytest.approx((45.0, 55.0))
    assert (position.drop, position.drop_vs_reference) == pytest.approx((50.0, 5.0))
    assert is_significant(size)
    assert not is_significant(position)
    alone = measure_drops(collect([row for row in rows if row.condition != SMALL]))[0]
    assert alone.reference == "original"
    assert alone.drop_vs_reference == pytest.approx(50.0)


def test_a_filled_hole_is_no_replicate_of_the_control() -> None:
    hole = Condition("control", "fill-control", "beside")
    rows = [*answers_to(ORIGINAL, [1] * 20), *answers_to(CONTROL, [1] * 20), *answers_to(hole, [0] * 20)]
    assert [(row.attribute, row.drop) for row in measure_attribute_drops(collect(rows))] == [("control", 0)]
    assert [(row.edit, row.drop) for row in measure_drops(collect(rows))] == [("control", 0), ("fill-control", 100)]
    assert measure_attribute_drops(collect([row for row in rows if row.condition != CONTROL])) == []


def test_nine_photos_that_have_the_reference_are_too_few_however_many_have_the_original() -> None:
    moved = Condition("position", "position", "random@0.05")
    rows = [*answers_to(ORIGINAL, [1] * 100), *answers_to(moved, [0] * 100)]
    nine, ten = (
        measure_drops(
            collect([*rows, *answers_to(SMALL, [1] * photos)]),
        )[0]
        for photos in (9, 10)
    )
    assert [(row.n, row.n_reference, row.drop_vs_reference) for row in (nine, ten)] == [(100, 9, 100), (100, 10, 100)]
    assert nine.p_adjusted < 0.05
    assert not is_significant(nine)
    assert not costs(nine)
    assert is_significant(ten)
    assert costs(ten)


def test_a_drop_that_hangs_on_the_fill_is_no_finding() -> None:
    rows = [*answers_to(ORIGINAL, [1] * 40), *answers_to(SMALL, [0] * 16 + [1] * 24)]
    sure = measure_drops(collect(rows))[0]
    second = answers_to(Condition(SECOND_FILL, *SMALL[1:]), [1] * 40)
    (doubtful,) = measure_drops(collect([*rows, *second]))  # the doubles are no row of their own
    assert is_significant(sure)
    assert math.isnan(sure.tool_uncertainty)
    assert doubtful.tool_uncertainty == pytest.approx(100 * math.sqrt(0.4**2 - 0.4 * 0.6 / 39))
    assert not is_significant(doubtful)
    assert (doubtful.drop, doubtful.ci_low, doubtful.p_adjusted) == (sure.drop, sure.ci_low, sure.p_adjusted)


def test_no_interval_leaves_the_drops_that_are_possible() -> None:
    rows = [*answers_to(ORIGINAL, [1] * 12), *answers_to(SMALL, [0] * 11 + [1])]
    (row,) = measure_drops(collect([*rows, *answers_to(Condition(SECOND_FILL, *SMALL[1:]), [1] * 12)]))
    assert row.tool_uncertainty > 80
    assert (row.reference_high, row.reference_low > -100) == (100.0, True)  # 100 points would be every photo


def test_tool_uncertainty_is_of_the_drop_against_the_reference() -> None:
    moved = Condition("position", "position", "random@0.05")
    rows = [
        *answers_to(ORIGINAL, [1] * 20),
        *answers_to(SMALL, [1] * 10 + [0] * 10),
        *answers_to(moved, [1] * 10 + [0] * 10),
        *answers_to(Condition(SECOND_FILL, *SMALL[1:]), [1] * 14 + [0] * 6),
        *answers_to(Condition(SECOND_FILL, *moved[1:]), [1] * 14 + [0] * 6),
        *answers_to(Condition(GROWN_MASK, *SMALL[1:]), [1] * 13 + [0] * 7),
    ]
    size, position = measure_drops(collect(rows))
    fill, mask = (share**2 - share * (1 - share) / 19 for share in (0.2, 0.15))
    assert size.tool_uncertainty == pytest.approx(100 * math.sqrt(fill + mask))
    assert position.tool_uncertainty == 0.0  # both pictures gain alike from the other fill


def test_an_edit_whose_masks_were_not_changed_must_survive_those_of_its_attributes_main_edit() -> None:
    """Another mask brings 12 of 40 lost answers back under the swap; the blurred background has the same cut-out."""
    blurred = Condition("background", "background-blur", "15/3")
    fog = Condition("corruption", "corruption-fog", "3")
    lost = [0] * 12 + [1] * 28
    rows = [*answers_to(ORIGINAL, [1] * 40)]
    for condition in (SWAP, blurred, SMALL, fog):
        rows += answers_to(condition, lost)
    alone = {row.edit: row for row in measure_drops(collect(rows))}
    shrunk = answers_to(Condition(SHRUNK_MASK, *SWAP[1:]), [1] * 40)
    swap, blur, size, corruption = measure_drops(collect([*rows, *shrunk]))
    assert swap.tool_uncertainty == blur.tool_uncertainty > 25
    assert blur.reference_low < alone["background-blur"].reference_low
    assert math.isnan(size.tool_uncertainty)  # another attribute's
    assert corruption.tool_uncertainty == 0.0  # needs no mask


def test_answers_that_change_at_random_between_two_fills_are_no_uncertainty_of_the_tool() -> None:
    rows = [*answers_to(ORIGINAL, [1] * 40), *answers_to(SMALL, [1, 0] * 20)]
    rows += answers_to(Condition(SECOND_FILL, *SMALL[1:]), [0, 1] * 19 + [1, 1])
    assert measure_drops(collect(rows))[0].tool_uncertainty == 0.0


def test_where_few_photos_are_checked_only_the_noise_of_all_photos_is_taken_out() -> None:
    """All 480 photos have the row, 100 of them a second fill, under which 10 lost answers come back."""
    rows = [*answers_to(ORIGINAL, [1] * 480), *answers_to(SMALL, [0] * 48 + [1] * 432)]
    second = answers_to(Condition(SECOND_FILL, *SMALL[1:]), [1] * 10 + [0] * 38 + [1] * 52)
    variance = 100 / 99 * 0.1 * 0.9
    (row,) = measure_drops(collect([*rows, *second]))
    assert row.tool_uncertainty == pytest.approx(100 * math.sqrt(0.1**2 - variance / 480))


def test_tool_uncertainty_is_zero_where_nothing_of_the_tool_shows_and_unknown_where_nothing_was_measured() -> None:
    fog = Condition("corruption", "corruption-fog", "3")
    rows = [*answers_to(ORIGINAL, [1] * 20), *answers_to(SMALL, [1] * 20), *answers_to(fog, [1] * 20)]
    size, corruption = measure_drops(collect(rows))
    assert math.isnan(size.tool_uncertainty)
    assert corruption.tool_uncertainty == 0.0


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=10, max_size=60), st.integers(1, 3))
def test_the_interval_and_the_adjusted_p_give_the_same_verdict(losses: list[float], edits: int) -> None:
    rows = [Answer("net", str(photo), ORIGINAL, loss > 0) for photo, loss in enumerate(losses)]
    for edit, replicate in itertools.product(range(edits), range(2)):
        condition = Condition("size", "size", f"0.{edit}")
        rows += [
            Answer("net", str(photo), condition, (loss > 0) - loss > replicate / 2, replicate=replicate)
            for photo, loss in enumerate(losses)
        ]
    for row in measure_drops(collect(rows)):
        assert (row.reference_low > 0 or row.reference_high < 0) == (row.p_adjusted < 0.05)


def drop_row(low: float, high: float, p: float) -> Drop:
    return Drop(
        "net", *SWAP, 60, 80, 80, 70, 10, 1, 19, 10, p, n_reference=60, reference_low=low, reference_high=high,
        p_adjusted=p,
    )  # fmt: skip


def test_significant_needs_the_interval_and_the_adjusted_p() -> None:
    assert is_significant(drop_row(2, 18, 0.01))
    assert is_significant(drop_row(-18, -2, 0.01))
    assert not is_significant(drop_row(2, 18, 0.06))
    assert not is_significant(drop_row(-1, 18, 0.01))
    assert not is_significant(drop_row(math.nan, math.nan, math.nan))
