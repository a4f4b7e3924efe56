from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from answer_rows import Answer, answers_of, collect
from counterfoil.edits.registry import EDITS, crossed_by, edit_named, name_of, reference_of
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.attribute_verdicts import judge_attributes
from counterfoil.statistics.drops import is_significant, measure_drops
from counterfoil.statistics.interactions import measure_interactions
from counterfoil.types import EditLevel

ORIGINAL = Condition("original", "original", "")
BLUR = Condition("background", "background-blur", "15/3")
SMALL = Condition("size", "size", "0.05")
BOTH = Condition("combination", "combine", "background-blur 15/3 + size 0.05")
MOVED = Condition("position", "position", "random")
MOVED_SMALL = Condition("position", "position", "random@0.05")


def lost(*photos: range, of: int = 60) -> list[float]:
    return [0.0 if any(photo in part for part in photos) else 1.0 for photo in range(of)]


def test_two_edits_that_break_only_together_are_an_interaction_and_neither_attribute() -> None:
    answers = answers_of({
        ("net", ORIGINAL): lost(),
        ("net", BLUR): lost(range(2)),
        ("net", SMALL): lost(range(2, 4)),
        ("net", BOTH): lost(range(30)),
    })  # fmt: skip
    (row,) = measure_interactions(answers)
    assert (row.first, row.second) == (EditLevel("background-blur", "15/3"), EditLevel("size", "0.05"))
    assert (row.drop_first, row.drop_second, row.drop_both) == pytest.approx((100 / 30, 100 / 30, 50))
    assert row.excess == pytest.approx(50 - 200 / 30)
    excess = np.array(lost(range(4))) - np.array(lost(range(30)))
    assert row.p_value == pytest.approx(stats.ttest_1samp(excess, 0).pvalue)
    assert row.costs
    assert row.second_after_first == pytest.approx(50 - 100 / 30)
    drops = measure_drops(answers)
    verdicts = judge_attributes(answers, drops, {}, [row])
    assert [(own.attribute, own.costs) for own in verdicts] == [("background", False), ("size", False)]
    both = drops[-1]
    assert (both.reference, both.family) == ("background-blur 15/3 + size 0.05", "interaction")
    assert both.drop_vs_reference == pytest.approx(row.excess)
    assert (both.reference_low, both.reference_high) == pytest.approx((row.low, row.high))


def test_edits_whose_costs_add_up_are_no_interaction() -> None:
    answers = answers_of({
        ("net", ORIGINAL): lost(),
        ("net", BLUR): lost(range(15)),
        ("net", SMALL): lost(range(15, 30)),
        ("net", BOTH): lost(range(30)),
    })  # fmt: skip
    (row,) = measure_interactions(answers)
    assert row.excess == 0
    assert not row.is_significant
    assert not is_significant(measure_drops(answers)[-1])


def test_without_its_parts_a_combination_is_compared_with_the_original() -> None:
    answers = answers_of({("net", ORIGINAL): lost(), ("net", BLUR): lost(range(9)), ("net", BOTH): lost(range(30))})
    assert measure_interactions(answers) == []
    assert measure_drops(answers)[-1].reference == "original"


def small_and_left(answers: int, photos: int = 120) -> Answers:
    """A model that fails where the object is small and on the left; a tenth of the objects stand there."""
    rng = np.random.default_rng(answers)
    left = {ORIGINAL: 0.1, SMALL: 0.1, MOVED: 0.4, MOVED_SMALL: 0.4}
    return collect(
        Answer("net", str(photo), condition, bool(condition in (ORIGINAL, MOVED) or rng.random() > share))
        for condition, share in left.items()
        for photo in range(photos)
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_fault_of_small_objects_on_the_left_is_called_an_interaction_and_never_position(seed: int) -> None:
    answers = small_and_left(seed)
    interactions = measure_interactions(answers)
    assert [(row.condition, row.costs) for row in interactions] == [(MOVED_SMALL, True)]
    verdicts = {own.attribute: own for own in judge_attributes(answers, measure_drops(answers), {}, interactions)}
    assert not verdicts["position"].costs
    assert verdicts["position"].interactions == tuple(interactions)


def test_a_fault_of_size_is_not_called_position_where_small_objects_are_moved() -> None:
    answers = answers_of({
        ("net", ORIGINAL): lost(),
        ("net", SMALL): lost(range(30)),
        ("net", MOVED): lost(range(1)),
        ("net", MOVED_SMALL): lost(range(2, 31)),
    })  # fmt: skip
    drops = measure_drops(answers)
    verdicts = {own.attribute: own.costs for own in judge_attributes(answers, drops, {}, measure_interactions(answers))}
    assert verdicts == {"size": True, "position": False}
    assert drops[-1].drop > 40


def test_the_edits_that_a_recipe_must_contain_are_those_that_the_tables_name() -> None:
    settings: dict[str, list[dict[str, object]]] = {
        "position": [{"rate": 0.05}, {"rate": None}],
        "position-grid": [{"rate": 0.1, "row": 1, "column": 2}],
        "direction": [{"rate": 0.05}, {"angle": 30, "rate": 0.08}],
        "painted-complexity": [{"guidance": 0}, {"guidance": -20}, {"guidance": 20, "strength": 0.5, "size": 128}],
        "painted-adversarial": [{}, {"strength": 0.7}],
        "painted-random": [{}, {"size": 128}],
        "combine": [{}],
        "combine-donor": [{}],
    }
    for name in EDITS:
        for chosen in settings.get(name, []):
            edit = edit_named(name, chosen)
            beside = [EditLevel(row.edit, edit_named(row.edit, row.settings).level) for row in edit.required_edits]
            crossed, reference = crossed_by(name, edit.level), reference_of(name, edit.level)
            expected = list(crossed or ()) if edit.attribute == "combination" else [reference] if reference else []
            assert beside == expected, (name_of(edit), edit.level)
