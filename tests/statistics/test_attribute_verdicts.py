from __future__ import annotations

from collections.abc import Sequence

from answer_rows import CONTROL, ORIGINAL, SAME, SMALL, SWAP, TURN, answers_of
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.attribute_verdicts import AttributeVerdict, judge_attributes
from counterfoil.statistics.drops import measure_drops
from counterfoil.types import EditLevel

HOLE = Condition("control", "fill-control", "beside")
FOG = Condition("corruption", "corruption-fog", "3")
TEXTURE = Condition("texture", "texture", "fur")
PHOTOS = 60


def right(*lost: range) -> list[float]:
    """All photos right but those that are lost."""
    return [0.0 if any(photo in part for part in lost) else 1.0 for photo in range(PHOTOS)]


def judge(answers: Answers, **main: EditLevel) -> dict[str, AttributeVerdict]:
    return {own.attribute: own for own in judge_attributes(answers, measure_drops(answers), main)}


def test_the_main_edit_represents_its_attribute_where_it_costs() -> None:
    answers = answers_of({("net", ORIGINAL): right(), ("net", SWAP): right(range(20)), ("net", SAME): right(range(30))})
    (verdict,) = judge(answers, background=EditLevel("background-swap", "other")).values()
    assert (verdict.representative.level, verdict.main.level, verdict.costs) == ("other", "other", True)


def test_the_largest_costly_edit_represents_it_where_the_main_one_does_not_cost() -> None:
    answers = answers_of({("net", ORIGINAL): right(), ("net", SWAP): right(range(1)), ("net", SAME): right(range(30))})
    (verdict,) = judge(answers, background=EditLevel("background-swap", "other")).values()
    assert (verdict.representative.level, verdict.main.level, verdict.costs) == ("same", "other", True)


def test_an_attribute_without_cost_is_represented_by_its_main_edit() -> None:
    answers = answers_of({("net", ORIGINAL): right(), ("net", SWAP): right(range(1)), ("net", SAME): right(range(2))})
    (verdict,) = judge(answers, background=EditLevel("background-swap", "other")).values()
    assert (verdict.representative.level, verdict.costs, verdict.is_costliest) == ("other", False, False)


def test_the_costliest_is_told_apart_photo_by_photo_and_surface_edits_do_not_lead() -> None:
    answers = answers_of({
        ("net", ORIGINAL): right(),
        ("net", SWAP): right(range(30)),
        ("net", SMALL): right(range(28)),  # the same photos, two fewer
        ("net", TURN): right(range(12)),
        ("net", TEXTURE): right(range(60)),
    })  # fmt: skip
    verdicts = judge(answers)
    assert [name for name, own in verdicts.items() if own.is_costliest] == ["background"]
    assert [name for name, own in verdicts.items() if own.ties_costliest] == ["size"]
    assert verdicts["direction"].costs
    assert (verdicts["texture"].costs, verdicts["texture"].family) == (True, "surface")


def test_a_larger_loss_that_a_control_may_explain_is_not_told_apart_from_a_smaller_one_without_traces() -> None:
    lost = {ORIGINAL: range(0), CONTROL: range(2), HOLE: range(18), SMALL: range(34), FOG: range(40, 58)}
    table = {("net", condition): right(own) for condition, own in lost.items()}
    verdicts = judge(answers_of(table))
    assert verdicts["size"].is_costliest
    assert verdicts["corruption"].costs
    assert verdicts["corruption"].ties_costliest  # size may cost 16 photos beyond the hole
    clean = {place: own for place, own in table.items() if place[1] != HOLE}
    assert not judge(answers_of(clean))["corruption"].ties_costliest


def test_the_costliest_of_many_is_told_apart_with_a_correction_for_all_pairs_that_it_was_chosen_from() -> None:
    # Comparing the one that was chosen by its loss with each other one alone called 17 % of tables of equal ones apart.
    names = (
        "background",
        "size",
        "position",
        "direction",
        "colour",
        "blur",
        "occlusion",
        "text",
        "second-object",
        "light",
        "corruption",
    )
    many = {Condition(name, f"my-{name}", "1"): range(28) for name in names}
    first, last = Condition("background", "my-background", "1"), Condition("corruption", "my-corruption", "1")
    lost = {**many, first: range(30), last: range(20)}  # ten photos apart: p = 0.0011

    def tied(kept: Sequence[Condition]) -> bool:
        table = {("net", condition): right(lost[condition]) for condition in kept}
        verdicts = judge(answers_of({("net", ORIGINAL): right(), **table}))
        assert verdicts["background"].is_costliest
        return verdicts["corruption"].ties_costliest

    assert not tied([first, last])
    assert tied(list(lost))
