from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from answer_rows import CONTROL, ORIGINAL, SMALL, SWAP, Answer, answers_of, collect, details_of
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.calibration import margin_changes
from counterfoil.statistics.confusion import (
    donor_confusion,
    error_consistency,
    find_confusions,
    list_clear_confusions,
    position_map,
    worst_classes,
    worst_photos,
)
from counterfoil.statistics.drops import measure_drops
from counterfoil.study.predictions import answers_from_tables, details_from_tables
from counterfoil.types import Attribute

TEXTURE = Condition("texture", "texture", "other")


def seeded() -> np.random.Generator:
    return np.random.default_rng(11)


def prediction_table(n: int = 4) -> dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]]:
    """A prediction table as the store gives it: n photos, original and swapped."""
    texts = {
        "variant_id": [f"v{i}" for i in range(2 * n)], "sample_id": [f"cat/{i % n}" for i in range(2 * n)],
        "label": ["cat"] * 2 * n, "attribute": ["original"] * n + ["background"] * n,
        "edit": ["original"] * n + ["background-swap"] * n, "level": ["none"] * n + ["other"] * n,
        "outcome": ["scored"] * (2 * n - 1) + ["error"], "rank_1": ["cat"] * n + ["dog"] * (n - 1) + [""],
    }  # fmt: skip
    numbers = {
        "replicate": [0] * 2 * n, "object_share": [20.0] * 2 * n, "correct": [True] * n + [False] * n,
        "true_score": [0.7] * n + [0.2] * n, "score_1": [0.7] * n + [0.5] * n, "score_2": [0.1] * n + [0.2] * n,
    }  # fmt: skip
    return {name: np.array(column, object) for name, column in texts.items()} | {
        name: np.array(column) for name, column in numbers.items()
    }


def test_answers_from_tables_are_those_collected_row_by_row() -> None:
    table = prediction_table()
    rows = [
        Answer("net", table["sample_id"][i], Condition(table["attribute"][i], table["edit"][i], table["level"][i]),
               bool(table["correct"][i]), table["outcome"][i], 20.0)
        for i in range(8)
    ]  # fmt: skip
    assert answers_from_tables({"net": table}).conditions == collect(rows).conditions
    assert repr(measure_drops(answers_from_tables({"net": table}))) == repr(measure_drops(collect(rows)))


def test_details_from_tables_know_labels_scores_donors_and_centres() -> None:
    details = details_from_tables(
        {"a": prediction_table(), "b": prediction_table()}, donors={"v4": "dog"}, centres={"v5": (0.25, 0.75)}
    )
    assert details.labels == ("cat", "dog")
    assert details.answer.tolist() == [0, 0, 0, 0, 1, 1, 1, -1] * 2
    assert details.other_score[[0, 4]].tolist() == [pytest.approx(0.1), pytest.approx(0.5)]
    assert details.donor.tolist() == ([-1] * 4 + [1] + [-1] * 3) * 2
    assert details.centre[5].tolist() == [0.25, 0.75]
    assert details.answers.models == ("a", "b")


def test_confusions_are_ranked_by_fishers_exact_test_against_chance() -> None:
    truth = ["cat"] * 20 + ["dog"] * 20 + ["fox"] * 20
    after = ["hat"] * 9 + ["cat"] * 11 + ["hat"] + ["cup"] * 6 + ["dog"] * 13 + ["hat"] * 2 + ["cup"] * 5 + ["fox"] * 13
    details = details_of({("net", ORIGINAL): truth, ("net", SWAP): after}, truth)
    rows = find_confusions(details, "net", "background")
    first = rows[0]
    assert (first.label, first.answer, first.photos) == ("cat", "hat", 9)
    assert first.expected == pytest.approx(9 * 12 / 23)
    reference = stats.fisher_exact([[9, 0], [3, 11]], alternative="greater").pvalue
    assert first.p_value == pytest.approx(reference)
    assert first.p_bh >= first.p_value
    assert sum(row.photos for row in rows) == 23


def test_confusions_of_thousands_of_photos_are_those_of_fishers_exact_test() -> None:
    truth = ["cat"] * 1500 + ["dog"] * 1500
    after = ["hat"] * 790 + ["cup"] * 710 + ["hat"] * 730 + ["cup"] * 770
    details = details_of({("net", ORIGINAL): truth, ("net", SWAP): after}, truth)
    first, second, *_ = find_confusions(details, "net", "background")
    reference = stats.fisher_exact([[790, 730], [710, 770]], alternative="greater").pvalue
    assert {(first.label, first.answer), (second.label, second.answer)} == {("cat", "hat"), ("dog", "cup")}
    assert [first.p_value, second.p_value] == pytest.approx([reference, reference], rel=1e-6)


def test_a_confusion_that_the_original_had_already_is_not_created() -> None:
    truth = ["cat", "cat"]
    details = details_of({("net", ORIGINAL): ["hat", "cat"], ("net", SWAP): ["hat", "hat"]}, truth)
    (row,) = find_confusions(details, "net", "background")
    assert row.photos == 1
    assert find_confusions(details, "net", "size") == []


def test_confusions_are_corrected_for_all_attributes_of_a_model() -> None:
    truth = [*["cat"] * 10, *["dog"] * 10, *["fox"] * 10, *["owl"] * 10]
    # Under the swap cats are taken for dogs and foxes for owls; small objects are taken for anything.
    swapped = [*["dog"] * 5, *truth[5:16], *["fox", "owl"] * 2, *truth[20:26], *["owl"] * 4, *truth[30:]]
    small = [name for own in range(4) for name in (["cat", "dog", "fox", "owl"] * 4)[own : own + 10]]
    said = {("net", ORIGINAL): truth, ("net", SWAP): swapped, ("net", SMALL): small}
    details = details_of(said, truth)
    alone = list_clear_confusions(details, "net", ["background"])
    assert [(row.label, row.answer, row.photos) for _, row in alone] == [("cat", "dog", 5), ("fox", "owl", 4)]
    assert list_clear_confusions(details, "net", ["background", "size"]) == []


def test_background_confusion_finds_a_model_that_names_the_background() -> None:
    rng = seeded()
    classes = np.array(["ape", "bee", "cat", "dog"])
    truth = np.repeat(classes, 30)
    lender = np.array([rng.choice(classes[classes != label]) for label in truth])
    blind = np.array([rng.choice(classes[classes != label]) for label in truth])
    details = details_of(
        {
            ("follows", ORIGINAL): truth.tolist(), ("follows", SWAP): lender.tolist(),
            ("ignores", ORIGINAL): truth.tolist(), ("ignores", SWAP): blind.tolist(),
        },
        truth.tolist(),
        lenders={SWAP: lender.tolist()},
    )  # fmt: skip
    follows, ignores = (donor_confusion(details, model, "background") for model in ("follows", "ignores"))
    assert (follows.share.value, follows.share.n, follows.before) == (100, 120, 0)
    assert follows.p_value < 1e-10
    assert follows.chance == pytest.approx(100 / 3, abs=8)
    assert ignores.share.ci_low < ignores.chance < ignores.share.ci_high
    assert ignores.p_value > 0.05
    assert math.isnan(donor_confusion(details, "follows", "texture").share.value)


def test_chance_of_naming_the_lender_is_the_poisson_binomial_one() -> None:
    truth, lender = ["cat"] * 6, ["dog", "dog", "dog", "dog", "fox", "fox"]
    said = ["dog", "fox", "dog", "dog", "fox", "dog"]
    details = details_of({("net", ORIGINAL): truth, ("net", TEXTURE): said}, truth, lenders={TEXTURE: lender})
    row = donor_confusion(details, "net", "texture")
    assert row.share.value == pytest.approx(100 * 4 / 6)
    chances = [4 / 6 if answer == "dog" else 2 / 6 for answer in said]
    assert row.chance == pytest.approx(100 * np.mean(chances))
    rng = seeded()
    simulated = (rng.random((200_000, 6)) < chances).sum(axis=1) >= 4
    assert row.p_value == pytest.approx(simulated.mean(), abs=0.005)


def test_classes_and_photos_that_break_most_come_first() -> None:
    truth = ["cat", "cat", "dog", "dog"]
    details = details_of(
        {
            ("net", ORIGINAL): truth,
            ("net", CONTROL): ["hat"] * 4,  # the control is no attribute
            ("net", SWAP): ["hat", "hat", "dog", "dog"],
            ("net", SMALL): ["hat", "cat", "dog", "hat"],
        },
        truth,
    )
    classes = worst_classes(details, "net")
    assert [(row.label, row.drop.value, row.drop.n) for row in classes] == [("cat", 75, 2), ("dog", 25, 2)]
    photos = worst_photos(details.answers, limit=2)
    assert [(row.sample_id, row.wrong, row.answers) for row in photos] == [("cat/0", 100, 2), ("cat/1", 50, 2)]


def test_photos_whose_original_is_wrong_do_not_break() -> None:
    assert worst_photos(answers_of({("net", ORIGINAL): [0], ("net", SWAP): [0]})) == []


def test_position_map_counts_by_the_objects_centre() -> None:
    table = prediction_table()
    table["correct"][4] = True
    centres = {"v4": (0.1, 0.2), "v5": (0.9, 0.1), "v6": (1.0, 1.0), "v7": (0.5, 0.5)}
    found = position_map(details_from_tables({"net": table}, centres=centres), "net", cells=2)
    assert found.n.tolist() == [[1, 1], [0, 1]]  # v7 was not scored
    assert found.accuracy[0].tolist() == [100, 0]
    assert math.isnan(found.accuracy[1, 0])


def test_a_corner_that_only_small_objects_reach_is_not_called_worse_for_their_size() -> None:
    moved, small = Condition("position", "position", "random"), Condition("position", "position", "random@0.05")
    truth = ["cat"] * 40
    details = details_of({
        ("net", moved): ["cat"] * 36 + ["dog"] * 4,  # large objects stay in the middle
        ("net", small): (["cat"] * 5 + ["dog"] * 5) * 4,  # small ones are right half of the time, everywhere
    }, truth)  # fmt: skip
    across = np.concatenate([np.full(40, 0.75), np.where(np.arange(40) < 20, 0.25, 0.75)])
    details = replace(details, centre=np.stack([across, np.full(80, 0.25)], axis=1))
    left, right = position_map(details, "net", cells=2).accuracy[0]
    assert left == pytest.approx(right, abs=1e-9)


def test_error_consistency_is_cohens_kappa() -> None:
    rng = seeded()
    first = rng.random(200) < 0.8
    second = np.where(rng.random(200) < 0.5, first, rng.random(200) < 0.7)
    answers = answers_of({("a", SWAP): first.astype(float).tolist(), ("b", SWAP): second.astype(float).tolist()})
    (row,) = error_consistency(answers, seeded())
    both = np.mean(first == second)
    expected = first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean())
    assert (row.observed, row.expected) == pytest.approx((both, expected))
    assert row.kappa.value == pytest.approx((both - expected) / (1 - expected))
    assert row.kappa.ci_low < row.kappa.value < row.kappa.ci_high
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the second reference")
    assert row.kappa.value == pytest.approx(metrics.cohen_kappa_score(first, second))


def test_error_consistency_counts_only_what_both_answered_and_only_the_chosen_conditions() -> None:
    answers = answers_of(
        {("a", SWAP): [1, 0, 1, np.nan], ("b", SWAP): [1, 0, 0, 1], ("a", SMALL): [1], ("b", SMALL): [0]}
    )
    (row,) = error_consistency(answers, seeded(), conditions=[SWAP])
    assert (row.pictures, row.observed, row.kappa.n) == pytest.approx((3, 2 / 3, 3))
    (always,) = error_consistency(answers_of({("a", SWAP): [1, 1], ("b", SWAP): [1, 1]}), seeded())
    assert math.isnan(always.kappa.value)


def test_independent_models_have_no_error_consistency_though_both_find_the_same_edits_hard() -> None:
    rng = seeded()
    easy, hard = Condition("blur", "object-blur", "1"), Condition("blur", "object-blur", "9")
    answers = answers_of({
        (model, condition): (rng.random(400) < share).astype(float).tolist()
        for model in ("a", "b")
        for condition, share in ((easy, 0.95), (hard, 0.1))
    })  # fmt: skip
    (row,) = error_consistency(answers, seeded())
    assert abs(row.kappa.value) < 0.1
    assert row.kappa.ci_low < 0 < row.kappa.ci_high
    assert row.observed > 0.8  # pooled over both edits, kappa would be above 0.7


def test_error_consistency_is_the_mean_over_conditions_without_those_that_hold_no_failure() -> None:
    first, second = [1, 1, 0, 0, 1, 0], [1, 0, 0, 1, 1, 0]
    answers = answers_of({
        ("a", SWAP): first, ("b", SWAP): second,
        ("a", SMALL): first, ("b", SMALL): first,
        ("a", ORIGINAL): [1] * 6, ("b", ORIGINAL): [1] * 6,
    })  # fmt: skip
    (row,) = error_consistency(answers, seeded())
    (swap,) = error_consistency(answers, seeded(), conditions=[SWAP])
    assert row.kappa.value == pytest.approx((1 + swap.kappa.value) / 2)
    assert row.pictures == 18


def test_margin_change_worked_by_hand() -> None:
    truth = ["cat"] * 2
    details = details_of(
        {("net", ORIGINAL): truth, ("net", SWAP): ["cat", "dog"]},
        truth,
        scores={ORIGINAL: [(0.9, 0.1), (0.8, 0.1)], SWAP: [(0.6, 0.3), (0.7, 0.2)]},
    )
    (row,) = margin_changes(details)
    assert (row.before, row.after) == pytest.approx((75, -10))  # (80 + 70) / 2 and (30 - 50) / 2
    assert (row.loss.value, row.loss.n) == pytest.approx((85, 2))


@pytest.mark.parametrize("attribute", ["background", "texture"])
def test_nothing_answered_gives_no_numbers(attribute: Attribute) -> None:
    details = details_of({("net", ORIGINAL): ["cat"]}, ["cat"])
    assert find_confusions(details, "net", attribute) == []
    assert margin_changes(details) == []
