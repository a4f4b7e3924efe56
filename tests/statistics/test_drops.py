from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from scipy import stats

from answer_rows import Answer, collect
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.dose import dose_curve
from counterfoil.statistics.drops import is_significant, measure_drops
from counterfoil.types import Drop, PredictionOutcome

ORIGINAL = Condition("original", "original", "")
CONTROL = Condition("control", "control", "")
SWAP = Condition("background", "background-swap", "other")
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
    assert swap.p_value == pytest.approx(2 * (1 + 7) / 2**7)  # 6 lost, 1 gained
    assert swap.p_holm == pytest.approx(2 * swap.p_value)
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
        math.isnan(value) for value in (row.accuracy, row.drop, row.ci_low, row.ci_high, row.p_value, row.p_holm)
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


def test_with_replicates_the_p_is_that_of_the_sign_test_over_photos() -> None:
    rows = answers_to(ORIGINAL, [1] * 9 + [0] * 3)
    for replicate, correct in enumerate([[0] * 9 + [1, 0, 0], [1] * 4 + [0] * 5 + [0, 0, 0]]):
        rows += [
            Answer("net", f"cat/{photo}", SWAP, bool(right), replicate=replicate) for photo, right in enumerate(correct)
        ]
    row = measure_drops(collect(rows))[0]
    assert row.p_value == pytest.approx(stats.binomtest(9, 10).pvalue)
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
    expected = measure_drops(collect(rows, **names))  # type: ignore[arg-type]
    for _ in range(3):
        source.shuffle(rows)
        assert measure_drops(collect(rows, **names)) == expected  # type: ignore[arg-type]


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


def test_another_model_changes_only_the_adjusted_p() -> None:
    same = [answers_to(condition, [1] * 20, model) for condition in (ORIGINAL, CONTROL) for model in ("net", "other")]
    swaps = [answers_to(SWAP, [0] * 9 + [1] * 11), answers_to(SWAP, [1] * 20, "other")]
    alone = [*same[0], *same[2], *swaps[0]]
    row, with_other = (
        measure_drops(collect(alone))[1],
        measure_drops(collect([*alone, *same[1], *same[3], *swaps[1]]))[1],
    )
    assert row.p_holm == pytest.approx(2 * row.p_value)
    assert with_other.p_holm == pytest.approx(4 * row.p_value)
    assert with_other.p_bh == pytest.approx(4 * row.p_value)
    assert with_other == replace(row, p_holm=with_other.p_holm, p_bh=with_other.p_bh)


def drop_row(ci_low: float, ci_high: float, p_holm: float) -> Drop:
    return Drop("net", *SWAP, 60, 80, 80, 70, 10, ci_low, ci_high, 10, p_holm, p_holm)


def test_significant_needs_the_interval_and_the_adjusted_p() -> None:
    assert is_significant(drop_row(2, 18, 0.01))
    assert is_significant(drop_row(-18, -2, 0.01))
    assert not is_significant(drop_row(2, 18, 0.06))
    assert not is_significant(drop_row(-1, 18, 0.01))
    assert not is_significant(drop_row(math.nan, math.nan, math.nan))


def test_dose_curve_goes_from_small_to_large_and_carries_the_interval() -> None:
    rows = [
        *answers_to(ORIGINAL, [1] * 12),
        *answers_to(LARGE, [1] * 12, share=40.0),
        *answers_to(SMALL, [0] * 9 + [1] * 3, share=5.0),
        *answers_to(SWAP, [0] * 12),
    ]
    table = measure_drops(collect(rows))
    small, large = dose_curve(table)
    assert (small.level, small.object_share, small.accuracy, small.significant) == ("0.05", 5.0, 25.0, True)
    assert small.low < small.accuracy < small.high
    assert (large.level, large.accuracy, large.high, large.significant) == ("full", 100, 100, False)
    assert large.low == pytest.approx(
        100 - 100 * 3.8415 / (12 + 3.8415), abs=0.01
    )  # no change in 12 photos is no proof


def test_dose_curve_leaves_out_rows_without_share() -> None:
    rows = [*answers_to(ORIGINAL, [1]), *answers_to(SMALL, [0], share=math.nan)]
    assert dose_curve(measure_drops(collect(rows))) == []
