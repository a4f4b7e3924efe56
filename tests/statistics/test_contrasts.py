from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from answer_rows import CONTROL, ORIGINAL, SAME, SMALL, SWAP, Answer, answers_of, collect
from counterfoil.errors import UserError
from counterfoil.report.drop_findings import differ_significantly
from counterfoil.statistics.answers import Answers, Condition, pool_conditions
from counterfoil.statistics.contrasts import (
    Contrast,
    compact_letters,
    compare_accuracies,
    compare_drops,
    contrast_attribute_drops,
    rank_models,
    rank_rows,
)


def test_letters_worked_by_hand() -> None:
    # The first differs from the third and fourth, the second from the fourth: the textbook's a, ab, bc, c.
    assert compact_letters(4, {(0, 2), (0, 3), (1, 3)}) == ["a", "ab", "bc", "c"]
    assert compact_letters(3, set()) == ["a", "a", "a"]
    assert compact_letters(3, {(0, 1), (0, 2), (1, 2)}) == ["a", "b", "c"]
    assert compact_letters(1, set()) == ["a"]
    assert compact_letters(0, set()) == []


@pytest.mark.parametrize("seed", range(20))
def test_two_share_a_letter_exactly_where_they_do_not_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(7), 2))
    different = {pair for pair in pairs if rng.random() < 0.5}
    letters = compact_letters(7, different)
    assert {pair for pair in pairs if not set(letters[pair[0]]) & set(letters[pair[1]])} == different


def test_every_group_has_one_character_however_many_there_are() -> None:
    letters = compact_letters(80, set(itertools.combinations(range(80), 2)))
    assert len(set(letters)) == 80
    assert all(len(letter) == 1 for letter in letters)


def test_models_that_cannot_be_told_apart_share_a_letter() -> None:
    rng = np.random.default_rng(3)
    correct = {}
    for model, rate in (("weak", 0.5), ("strong", 0.95), ("stronger", 0.96)):
        correct[model, ORIGINAL] = [1.0] * 300
        correct[model, SWAP] = (rng.random(300) < rate).astype(float).tolist()
    ranked = rank_models(answers_of(correct), "background")
    assert [(row.name, row.letters) for row in ranked] == [("stronger", "a"), ("strong", "a"), ("weak", "b")]
    assert ranked[2].drop == pytest.approx(50, abs=8)


def test_a_row_without_answers_is_not_ranked() -> None:
    losses = np.array([[np.nan, np.nan], [0.0, 1.0]])
    assert [(row.name, row.n, row.drop) for row in rank_rows(["none", "some"], losses)] == [("some", 2, 50.0)]


def test_difference_of_drops_worked_by_hand() -> None:
    answers = answers_of(
        {
            ("a", ORIGINAL): [1, 1, 1, 1, 1],
            ("a", SWAP): [0, 0, 0, 1, np.nan],
            ("b", ORIGINAL): [1, 1, 0, 1, 1],
            ("b", SWAP): [1, 0, 0, 1, 0],
        }
    )
    (row,) = compare_drops(answers, "a", "b")
    assert (row.first, row.second, row.condition, row.n) == ("a", "b", SWAP, 4)  # the fifth has no answer of a
    assert (row.value_first, row.value_second, row.difference) == pytest.approx((75, 25, 50))
    assert row.ci_low < 50 < row.ci_high
    assert row.p_adjusted == pytest.approx(min(1, 12 * row.p_value))
    mirrored = compare_drops(answers, "b", "a")[0]
    assert (mirrored.ci_low, mirrored.ci_high) == pytest.approx((-row.ci_high, -row.ci_low))


def test_difference_of_accuracies_includes_the_original_and_is_adjusted_over_all_rows() -> None:
    answers = answers_of(
        {
            ("a", ORIGINAL): [1] * 20,
            ("a", SWAP): [1] * 20,
            ("b", ORIGINAL): [1] * 20,
            ("b", SWAP): [0] * 12 + [1] * 8,
        }
    )
    original, swap = compare_accuracies(answers, "a", "b")
    assert (original.difference, original.p_value) == (0, 1)
    assert swap.difference == pytest.approx(60)
    assert swap.p_adjusted == pytest.approx(min(1, 12 * swap.p_value))
    assert original.p_adjusted == pytest.approx(original.p_value)  # the unedited photos are a family of their own
    assert swap.ci_low > 0


def test_a_model_that_is_not_there_is_named() -> None:
    answers = answers_of({("a", ORIGINAL): [1], ("a", SWAP): [1]})
    with pytest.raises(UserError, match="expected one of the models a, got c"):
        compare_drops(answers, "a", "c")


def test_models_are_compared_over_the_pictures_that_both_answered() -> None:
    hard, easy = SWAP, SMALL
    rows = [Answer(model, str(photo), easy, True) for model in ("a", "b") for photo in range(20)]
    rows += [Answer("a", str(photo), hard, False) for photo in range(20)]
    rows += [Answer("b", str(photo), hard, False, outcome="refused") for photo in range(20)]
    (row,) = compare_accuracies(pool_conditions(collect(rows)), "a", "b")
    assert (row.value_first, row.value_second, row.difference) == (100, 100, 0)


def test_models_are_ranked_over_the_pictures_that_both_answered() -> None:
    # Every photo has an easy and a hard picture of its background; "silent" leaves the hard one unanswered.
    rows = []
    for model in ("plain", "silent"):
        for photo in map(str, range(40)):
            rows += [Answer(model, photo, ORIGINAL, True), Answer(model, photo, SAME, True)]
            rows.append(Answer(model, photo, SWAP, False, "refused" if model == "silent" else "scored"))
    ranked = rank_models(collect(rows), "background")
    assert [(row.name, row.drop, row.letters) for row in ranked] == [("silent", 0, "a"), ("plain", 50, "a")]


HOLE = Condition("control", "fill-control", "beside")


def lose(photos: int, **lost: dict[Condition, range]) -> Answers:
    """Each model's answers: right on all photos but those that it loses under a condition."""
    rows = [
        Answer(model, str(photo), condition, photo not in own)
        for model, by_condition in lost.items()
        for condition, own in {ORIGINAL: range(0), CONTROL: range(0), **by_condition}.items()
        for photo in range(photos)
    ]
    return collect(rows)


def contrast_size(answers: Answers) -> Contrast:
    return next(row for row in contrast_attribute_drops(answers, [("a", "b")]) if row.condition.attribute == "size")


def test_a_model_that_minds_the_fill_is_not_said_to_lose_more_to_the_attribute() -> None:
    minds = {HOLE: range(30), SMALL: range(40)}
    row = contrast_size(lose(120, a={HOLE: range(0), SMALL: range(10)}, b=minds))
    assert (row.difference, row.p_adjusted < 1e-4) == (-25.0, True)
    assert row.ci_high < 0 < row.adjusted_high  # against the references it differs, beyond the filled hole it does not
    assert not differ_significantly(row)
    assert [rank.letters for rank in rank_models(lose(120, a={HOLE: range(0), SMALL: range(10)}, b=minds), "size")] == [
        "a", "a",
    ]  # fmt: skip


def test_a_model_that_loses_more_beyond_the_fill_is_said_to() -> None:
    answers = lose(120, a={HOLE: range(4), SMALL: range(10)}, b={HOLE: range(6), SMALL: range(50)})
    assert differ_significantly(contrast_size(answers))
    assert [rank.letters for rank in rank_models(answers, "size")] == ["a", "b"]


def test_a_difference_that_hangs_on_the_fill_that_was_chosen_is_not_told() -> None:
    again = Condition("second-fill", SMALL.edit, SMALL.level)
    answers = lose(120, a={SMALL: range(10)}, b={SMALL: range(40)})
    assert differ_significantly(contrast_size(answers))
    doubled = lose(120, a={SMALL: range(10), again: range(10)}, b={SMALL: range(40), again: range(10)})
    assert contrast_size(doubled).difference == contrast_size(answers).difference
    assert not differ_significantly(contrast_size(doubled))


def test_pictures_that_only_one_model_answered_do_not_count_in_the_controls_either() -> None:
    rows = {HOLE: range(30), SMALL: range(40)}
    answers = lose(120, a={HOLE: range(0), SMALL: range(10)}, b=rows)
    extra = answers.samples.index("119")
    silent = (answers.model == 1) & (answers.sample == extra)
    assert contrast_size(replace(answers, scored=answers.scored & ~silent)).n == 119
