from __future__ import annotations

import pytest
from scipy import stats

from answer_rows import details_of
from counterfoil.statistics.answers import Condition
from counterfoil.study.background_answers import measure_background_answers

REMOVED = Condition("presence", "object-removed", "")


def test_a_model_is_right_from_the_background_only_where_its_interval_lies_above_guessing() -> None:
    truth = ["cat", "dog"] * 20
    said = {
        ("guesses", REMOVED): ["cat", "cat", "dog", "dog"] * 10,
        ("reads", REMOVED): ["cat", "dog"] * 18 + ["dog", "cat"] * 2,
        ("few", REMOVED): [*truth[:9], *[""] * 31],
    }
    guesses, reads, _ = measure_background_answers(details_of(said, truth), {})
    assert (guesses.accuracy.value, guesses.chance, guesses.above_chance) == (50, 50, False)
    assert (reads.accuracy.value, reads.above_chance) == (90, True)


def test_guessing_the_commonest_class_is_no_knowledge_of_the_background() -> None:
    truth = ["cat"] * 27 + ["dog"] * 3
    (row,) = measure_background_answers(details_of({("net", REMOVED): ["cat"] * 30}, truth), {"net": 1000})
    assert (row.accuracy.value, row.chance, row.above_chance) == (90, 90, False)


def test_many_competing_classes_make_few_right_answers_more_than_guessing() -> None:
    truth = [f"class {place}" for place in range(40)]
    said = [*truth[:8], *(truth[9:] + truth[:1])]
    (row,) = measure_background_answers(details_of({("net", REMOVED): said}, truth), {"net": 1000})
    assert (row.accuracy.value, row.chance) == pytest.approx((20, 2.5))
    assert row.above_chance


def test_one_right_answer_of_eleven_photos_is_not_shown_to_be_more_than_guessing() -> None:
    """Wilson's interval of 1 of 11 begins at 1.6 %; guessing at 1 % is right on a photo of eleven in one run of ten."""
    truth = [f"class {place}" for place in range(11)]
    said = [truth[0], *(["nothing"] * 10)]
    (row,) = measure_background_answers(details_of({("net", REMOVED): said}, truth), {"net": 100})
    low, high = stats.binomtest(1, 11).proportion_ci(0.95, method="exact")
    assert (row.accuracy.ci_low, row.accuracy.ci_high) == pytest.approx((100 * low, 100 * high))
    assert not row.above_chance
