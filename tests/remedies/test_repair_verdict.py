"""The rule by which a repair is called repaired, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.remedies.effects import (
    RateTable,
    RightRates,
    edited_change,
    measure_effects,
    measure_loss,
    unedited_change,
    unedited_loss,
)
from counterfoil.remedies.repair_verdict import (
    LossCheck,
    RepairOutcome,
    RepairVerdict,
    combine_verdicts,
    decide_repair,
    find_guessing,
)
from counterfoil.statistics.answers import Condition

PHOTOS = 400
CONDITIONS = (Condition("original", "original", "none"), Condition("size", "size", "0.05"))


def make_rates(original: float, edited: float) -> NDArray[np.float64]:
    """The first photos are right, the others wrong."""
    places = np.arange(PHOTOS)[:, None] / PHOTOS
    return np.asarray(places < np.array([[original, edited]]), np.float64)


def make_table(before: tuple[float, float], after: tuple[float, float], every: float = 0.0) -> RateTable:
    """Rates with only the photos' classes competing; with all, `every` less before."""
    old, new = make_rates(*before), make_rates(*after)
    lower = make_rates(before[0] - every, before[1] - every)
    return RateTable(
        photos=tuple(map(str, range(PHOTOS))), conditions=CONDITIONS, before=RightRates(lower, old),
        after=RightRates(new, new),
    )  # fmt: skip


def judge(table: RateTable, *losses: LossCheck) -> RepairVerdict:
    effects = [row for row in measure_effects(table) if not row.edit]
    fit = (edited_change(table, among=False), unedited_change(table, among=False))
    return decide_repair(effects, fit, [LossCheck("unedited photos", unedited_loss(table), 1.0), *losses])


def test_a_drop_is_counted_from_the_reference_that_the_edit_declares() -> None:
    conditions = (*CONDITIONS, Condition("position", "position", "random@0.05"),
                  Condition("position", "position", "random"))  # fmt: skip
    places = np.arange(PHOTOS)[:, None] / PHOTOS
    before = np.asarray(places < np.array([[0.9, 0.6, 0.5, 0.8]]), np.float64)
    after = np.asarray(places < np.array([[0.9, 0.8, 0.7, 0.8]]), np.float64)
    before[::2, 1] = np.nan  # the reference could not be made of every photo
    rates = (RightRates(before, before), RightRates(after, after))
    table = RateTable(photos=tuple(map(str, range(PHOTOS))), conditions=conditions, before=rates[0], after=rates[1])
    rows = {(row.attribute, row.level): row for row in measure_effects(table)}
    small, moved = rows["position", "random@0.05"], rows["position", "random"]
    assert (small.reference, small.drop.change.n) == ("size 0.05", PHOTOS // 2)
    assert small.drop.before == pytest.approx(10)  # size explains the other 30 points
    assert small.drop.change.value == pytest.approx(0)
    assert moved.reference == "original"
    assert moved.drop.before == pytest.approx(10)
    assert rows["position", ""].reference == "size 0.05, original"
    assert rows["size", ""].drop.change.value == pytest.approx(20)
    alone = RateTable(photos=table.photos, conditions=(conditions[0], conditions[2]),
                      before=RightRates(before[:, [0, 2]], before[:, [0, 2]]),
                      after=RightRates(after[:, [0, 2]], after[:, [0, 2]]))  # fmt: skip
    (row, _) = measure_effects(alone)
    assert row.reference == "original"
    assert row.drop.before == pytest.approx(40)  # the reference was not judged


@pytest.mark.parametrize(
    ("before", "after", "every", "outcome", "status"),
    [
        ((0.9, 0.6), (0.9, 0.8), 0.0, "repaired", 0),
        ((0.9, 0.6), (0.9, 0.6), 0.0, "no change", 1),
        ((0.9, 0.6), (0.9, 0.6), 0.2, "fits your classes better; robustness unchanged", 1),
        ((0.9, 0.6), (0.9, 0.4), 0.0, "worse", 1),
        ((0.9, 0.6), (0.8, 0.8), 0.0, "repaired at a cost", 1),
    ],
)
def test_the_verdict_is_that_of_the_rule(
    before: tuple[float, float], after: tuple[float, float], every: float, outcome: str, status: int
) -> None:
    verdict = judge(make_table(before, after, every))
    assert (verdict.outcome, verdict.status) == (outcome, status)


def test_too_few_photos_of_other_classes_leave_it_open_and_say_how_many_are_needed() -> None:
    few = np.ones(40)
    verdict = judge(make_table((0.9, 0.6), (0.9, 0.8)), LossCheck("other photos", measure_loss(few, few), 1.0))
    assert (verdict.outcome, verdict.status) == ("cannot tell", 3)
    assert "photos would show it" in verdict.reasons[-1]


def test_other_classes_without_a_photo_leave_it_open() -> None:
    missing = LossCheck("other photos", None, 1.0, "give --elsewhere DIR")
    verdict = judge(make_table((0.9, 0.6), (0.9, 0.8)), missing)
    assert verdict.status == 3
    assert "give --elsewhere DIR" in verdict.reasons[-1]


def test_a_model_that_guesses_is_not_judged() -> None:
    verdict = find_guessing(make_table((0.25, 0.2), (0.9, 0.9)), 4)
    assert verdict is not None
    assert verdict.status == 4
    assert find_guessing(make_table((0.9, 0.2), (0.9, 0.9)), 4) is None


@pytest.mark.parametrize(
    ("own", "choice", "chosen", "outcome"),
    [
        ("repaired", "no change", ("zoom", "zoom", "zoom"), "repaired"),  # one choice: nothing to combine
        ("repaired", "repaired", ("zoom", "crops", "zoom"), "repaired"),
        ("repaired", "no change", ("zoom", "crops", "zoom"), "cannot tell"),
        ("no change", "fits your classes better; robustness unchanged", ("last-layer", "zoom", "zoom"), "no change"),
    ],
)
def test_a_choice_that_differs_between_folds_must_repair_too(
    own: RepairOutcome, choice: RepairOutcome, chosen: tuple[str, ...], outcome: RepairOutcome
) -> None:
    first, second = (RepairVerdict(outcome=name, reasons=("size",)) for name in (own, choice))
    combined = combine_verdicts(first, second, chosen, "zoom")
    assert combined.outcome == outcome
    assert combined.reasons[0] == "size"
    assert (len(combined.reasons) == 2) == (len(set(chosen)) > 1)
