"""Accuracies of pictures without originals, against statsmodels and cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from answer_rows import Answer, collect
from counterfoil.statistics.accuracy import clustered_wilson, group_accuracies
from counterfoil.statistics.answers import Condition, pool_by_attribute

BRICKS, FELT = Condition("texture", "painted", "bricks"), Condition("texture", "painted", "felt")
BEACH, ORIGINAL = Condition("background", "scene", "beach"), Condition("original", "original", "none")


@pytest.mark.parametrize(("right", "n"), [(0, 7), (7, 7), (1, 1), (13, 40), (199, 200)])
def test_pictures_of_photos_of_their_own_have_wilsons_interval(right: int, n: int) -> None:
    found = clustered_wilson(np.arange(n) < right, np.arange(n))
    assert found == pytest.approx((right / n, *proportion_confint(right, n, method="wilson"), n))


def test_a_picture_that_is_there_three_times_tells_nothing_new() -> None:
    right = np.arange(30) < 11
    once = clustered_wilson(right, np.arange(30))
    thrice = clustered_wilson(np.tile(right, 3), np.tile(np.arange(30), 3))
    assert thrice[:3] == pytest.approx(once[:3])
    assert thrice.n == 90


def test_all_right_on_few_photos_is_as_wide_as_the_photos_are_few() -> None:
    found = clustered_wilson(np.ones(50, bool), np.arange(50) // 10)
    assert found[:3] == pytest.approx((1.0, *proportion_confint(5, 5, method="wilson")))


def test_the_interval_never_gets_narrower_than_that_of_independent_pictures() -> None:
    right = np.tile([True, False], 20)
    found = clustered_wilson(right, np.arange(40) // 2)  # every photo is half right: no variance between photos
    assert found[:3] == pytest.approx((0.5, *proportion_confint(20, 40, method="wilson")))


def test_the_interval_covers_the_truth_where_photos_differ() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        rates = rng.beta(1.2, 1.2, 60)  # mean 0.5
        right = rng.random((60, 5)) < rates[:, None]
        found = clustered_wilson(right.ravel(), np.repeat(np.arange(60), 5))
        inside += found.ci_low <= 0.5 <= found.ci_high
    assert 0.92 <= inside / 400 <= 0.98


def test_the_interval_covers_the_truth_where_photos_are_few_and_uneven() -> None:
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(400):
        rates = rng.beta(0.7, 1.63, 6)  # mean 0.3, pictures of a photo much alike
        photo = np.repeat(np.arange(6), rng.integers(1, 44, 6))
        found = clustered_wilson(rng.random(len(photo)) < rates[photo], photo)
        inside += found.ci_low <= 0.3004 <= found.ci_high
    assert inside / 400 > 0.9


def test_pictures_of_a_single_photo_tell_no_more_than_one_picture() -> None:
    found = clustered_wilson(np.arange(22) < 11, np.zeros(22, np.intp))
    assert found.ci_low < 0.1
    assert found.ci_high > 0.9


def test_all_right_counts_a_photo_of_many_pictures_once() -> None:
    found = clustered_wilson(np.ones(102, bool), np.repeat([0, 1, 2], [100, 1, 1]))
    alone = proportion_confint(1, 1, method="wilson")[0]
    assert found.ci_low == pytest.approx(alone, abs=0.02)  # two pictures more are two photos more, and hardly weigh


def test_nothing_scored_is_no_number() -> None:
    found = clustered_wilson(np.zeros(0, bool), np.zeros(0, np.intp))
    assert found.n == 0
    assert all(math.isnan(value) for value in found[:3])


def answer(model: str, sample: int, condition: Condition, right: bool, outcome: str = "scored") -> Answer:
    return Answer(model, f"photo {sample}", condition, right, outcome)  # type: ignore[arg-type]


def test_groups_go_from_all_to_single_levels_and_leave_references_apart() -> None:
    rows = [
        answer("a", number, condition, number < 3)
        for condition in (ORIGINAL, BRICKS, FELT, BEACH)
        for number in range(4)
    ]
    answers = collect(rows)
    found = group_accuracies(answers, np.ones(len(rows), bool))
    assert [(row.attribute, row.edit, row.level, row.top1.n, row.photos) for row in found] == [
        ("all", "all", "all", 12, 4),
        ("original", "original", "none", 4, 4),
        ("texture", "painted", "all", 8, 4),
        ("texture", "painted", "bricks", 4, 4),
        ("texture", "painted", "felt", 4, 4),
        ("background", "scene", "beach", 4, 4),
    ]
    assert {row.top1.value for row in found} == {75.0}
    assert {row.top5.value for row in found} == {100.0}


def test_a_filled_hole_is_not_pooled_with_the_control() -> None:
    control, hole = Condition("control", "control", "none"), Condition("control", "fill-control", "beside")
    rows = [answer("a", number, kind, kind == control) for kind in (ORIGINAL, control, hole) for number in range(4)]
    answers = collect(rows)
    table = group_accuracies(answers, np.ones(len(rows), bool))
    assert [(row.edit, row.top1.value) for row in table if row.attribute == "control"] == [
        ("control", 100.0),
        ("fill-control", 0.0),
    ]
    pooled = pool_by_attribute(answers)
    assert [row for row in pooled.conditions if row.attribute == "control"] == [
        Condition("control", "all", ""),
        Condition("control", "fill-control", ""),
    ]


def test_where_there_are_only_originals_they_are_the_whole() -> None:
    answers = collect([answer("a", number, ORIGINAL, number == 0) for number in range(4)])
    overall = group_accuracies(answers, answers.correct)[0]
    assert (overall.attribute, overall.top1.n, overall.top1.value) == ("all", 4, 25.0)


def test_what_was_not_scored_counts_nowhere() -> None:
    rows = [answer("a", 0, BRICKS, True), answer("a", 1, BRICKS, False, "refused"), answer("a", 2, BRICKS, False)]
    overall = group_accuracies(collect(rows), np.ones(3, bool))[0]
    assert (overall.top1.n, overall.top1.value) == (2, 50.0)


def test_models_share_a_letter_unless_their_pictures_tell_them_apart() -> None:
    right = {"good": 38, "same": 37, "bad": 12}
    rows = [answer(model, number, BRICKS, number < many) for model, many in right.items() for number in range(40)]
    answers = collect(rows)
    letters = {row.model: row.letters for row in group_accuracies(answers, answers.correct) if row.overall}
    assert letters["good"] == letters["same"]
    assert not set(letters["bad"]) & set(letters["good"])
    (alone, *_) = group_accuracies(collect(rows[:40]), np.ones(40, bool))
    assert alone.letters == ""


def test_a_model_that_leaves_hard_pictures_unanswered_shares_the_letter_of_one_that_answers_alike() -> None:
    rows = [
        answer(model, number, condition, condition == BRICKS, "scored" if keeps or condition == BRICKS else "refused")
        for model, keeps in (("all", True), ("some", False))
        for condition in (BRICKS, FELT)
        for number in range(40)
    ]
    answers = collect(rows)
    found = {row.model: row for row in group_accuracies(answers, answers.correct) if row.overall}
    assert (found["all"].top1.value, found["some"].top1.value) == (50.0, 100.0)
    assert found["all"].letters == found["some"].letters == "a"


def test_models_without_a_common_picture_are_not_told_apart() -> None:
    rows = [answer("a", number, BRICKS, True) for number in range(40)]
    rows += [answer("b", number, FELT, False) for number in range(40)]
    answers = collect(rows)
    assert [row.letters for row in group_accuracies(answers, answers.correct) if row.overall] == ["a", "a"]
