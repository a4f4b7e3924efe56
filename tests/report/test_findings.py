from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from counterfoil.report.drop_findings import DropTable, describe_drops, summarize_attribute
from counterfoil.report.headline import write_headline
from counterfoil.report.model_comparison import compare_models
from counterfoil.report.words import describe_change
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.background_answers import BackgroundAnswer
from counterfoil.study.runs import open_runs
from counterfoil.types import Attribute, Drop
from run_folders import breaks_on, write_run
from verdict_rows import drop_row as row
from verdict_rows import judge_rows


def texts(drops: list[Drop], kind: str, ties: Sequence[Attribute] = ()) -> list[str]:
    table = DropTable(drops=drops, verdicts=judge_rows(drops, ties))
    return [finding.text for finding in describe_drops(table) if finding.kind == kind]


def test_a_models_sentence_tells_its_accuracy_then_what_costs_most_with_the_interval_of_the_verdict() -> None:
    drops = [row("background", "background-swap", 31.3, 8.9), row("position", "position", 10.5, level="random")]
    (sentence,) = texts(drops, "weakest")
    assert sentence.startswith("net is right on 80.0 % of unedited photos. Its largest clear loss is 31.3 points [22.4")
    assert sentence.endswith("when the background changes.")
    assert texts(drops, "costly") == ["net also clearly loses to: position 10.5 [2.5, 18.5]."]


def test_attributes_that_cannot_be_told_apart_are_named_or_counted() -> None:
    drops = [row("size", "size", 25.0, level="0.05"), row("background", "background-swap", 20.0)]
    (sentence, *_) = texts(drops, "weakest", ["background"])
    assert sentence.endswith("when the object is small. Background, also clear, may cost as much.")
    others: list[Attribute] = ["position", "direction", "colour", "blur"]
    many = [row("background", "background-swap", 30.0), *(row(name, "edit", 29.0) for name in others)]
    assert texts(many, "weakest", others)[0].endswith("Four other clear losses may be as large.")


def test_an_edit_that_is_not_the_main_one_is_named() -> None:
    drops = [row("direction", "direction", 2.0), row("direction", "flip", 30.0, level="upside-down")]
    assert texts(drops, "weakest")[0].endswith("when the object is turned (turning the object upside down).")


@pytest.mark.parametrize("attribute", ["shape", "texture", "material", "presence", "combination", "control"])
def test_silhouettes_surfaces_and_removed_objects_never_lead(attribute: Attribute) -> None:
    drops = [row(attribute, "edit", 70.0), row("background", "background-swap", 20.0)]
    assert "when the background changes" in texts(drops, "weakest")[0]
    (alone,) = texts([row(attribute, "edit", 70.0), row("background", "background-swap", 2.0)], "weakest")
    assert "no attribute clearly costs it points" in alone
    assert "70.0" not in alone


def test_surface_edits_are_told_apart_from_the_others() -> None:
    drops = [row("shape", "silhouette", 80.0), row("background", "background-swap", 30.0)]
    assert texts(drops, "costly") == ["Edits that replace the object's own look cost net: shape 80.0 [72.0, 88.0]."]


def test_what_may_cost_nothing_is_told_with_what_the_photos_can_miss() -> None:
    drops = [row("background", "background-swap", 30.0), row("direction", "direction", 2.0, level="random", n=40)]
    assert texts(drops, "unclear") == ["Direction may cost nothing."]
    table = DropTable(drops=drops, verdicts=judge_rows(drops), detectable_drops={("net", "direction", "random"): 12.4})
    (unclear,) = [finding.text for finding in describe_drops(table) if finding.kind == "unclear"]
    assert unclear == "Direction may cost nothing; 40 photos can miss a loss of 12 points."


def test_photos_of_one_attribute_are_not_said_to_be_those_of_all() -> None:
    drops = [
        row("corruption", "corruption-fog", 40.0, level="3"),
        row("direction", "direction", 2.0, level="random", n=10),
        row("blur", "object-blur", 3.0, level="15/3", n=62),
    ]
    missed = {("net", "direction", "random"): 98.2, ("net", "object-blur", "15/3"): 29.1}
    table = DropTable(drops=drops, verdicts=judge_rows(drops), detectable_drops=missed)
    (unclear,) = [finding.text for finding in describe_drops(table) if finding.kind == "unclear"]
    assert unclear == (
        "Blur and direction may cost nothing; what can be missed is a loss of 29 points (blur, 62 photos) to 98"
        " (direction, 10 photos)."
    )


def test_a_corruption_is_named() -> None:
    """Fog says nothing of the other fourteen."""
    drops = [row("corruption", "corruption-fog", 40.0, level="3")]
    assert texts(drops, "weakest")[0].endswith("when the picture is corrupted (fog, severity 3).")
    assert summarize_attribute(drops).startswith("Corruption (fog, severity 3) costs 40.0 points")


def test_where_nothing_is_clear_the_largest_loss_is_told_as_such() -> None:
    assert texts([row("background", "background-swap", 5.0)], "weakest") == [
        "net is right on 80.0 % of unedited photos; no attribute clearly costs it points; the largest loss, 5.0 points"
        " [−3.0, 13.0], is when the background changes."
    ]


def test_an_edit_that_helps_is_told_as_a_gain_and_never_as_a_cost() -> None:
    drops = [row("size", "size", -12.0, level="full")]
    assert texts(drops, "improved") == ["net gains from the object at full size (12.0 points [4.0, 20.0])."]
    assert "no attribute clearly costs it points" in texts(drops, "weakest")[0]


def test_the_tools_own_cost_is_told_only_where_it_is_clear() -> None:
    assert texts([row("control", "control", 1.5, 2.5)], "control") == []
    rest = "with nothing changed; a loss under an edit that cuts the object out is clear only beyond it."
    assert texts([row("control", "control", 6.0, 2.0)], "control") == [
        f"Editing alone (control) costs 6.0 points [4.0, 8.0] {rest}"
    ]
    assert texts([row("control", "fill-control", -6.0, 2.0)], "control") == [
        "A hole of the object's shape, filled elsewhere in the background (fill-control), adds 6.0 points [4.0, 8.0]"
        " with the object untouched; a loss under an edit that shows the fill is clear only beyond it."
    ]
    (theirs,) = texts([row("control", "control", 6.0, 2.0, level="rec")], "control")
    assert theirs.startswith("The collection's own control (rec) costs 6.0 points")


def test_a_removed_object_is_told_as_what_is_right_without_it() -> None:
    assert texts([row("presence", "object-removed", 70.0)], "presence") == [
        "Without the object net is right on 10 % of 64 photos."
    ]


def test_nothing_is_said_about_rows_of_too_few_photos() -> None:
    drops = [row("background", "background-swap", 60.0, n=9), row("position", "position", 1.0)]
    findings = describe_drops(DropTable(drops=drops, verdicts=judge_rows(drops)))
    assert all("background" not in finding.text for finding in findings)
    assert texts(drops, "data") == ["1 of 2 rows of the table have fewer than 10 photos; nothing is said about them."]


def test_a_table_of_mostly_few_photos_is_never_a_sign_that_nothing_costs() -> None:
    scattered = [row("background", "background-swap", 90.0, n=9, level=str(place)) for place in range(21)]
    (thin,) = texts([*scattered, row("position", "position", 1.0)], "weakest")
    assert thin.endswith("too few to say what costs it most: 21 of 22 edits were scored on fewer than 10.")


def test_too_few_photos_everywhere_is_all_that_is_said() -> None:
    assert texts([row("background", "background-swap", 60.0, n=4)], "data") == [
        "Too few photos: at most 4 were scored before and after an edit, and at least 10 are needed."
    ]
    nothing = Drop("net", "background", "background-swap", "", 0, *[math.nan] * 8)
    for drops in ([], [nothing]):
        assert texts(drops, "data")[0].startswith("No data")


def test_an_attribute_of_a_stranger_is_called_by_its_name() -> None:
    assert texts([row("weather", "fog", 30.0, level="3")], "weakest")[0].endswith(
        "30.0 points [22.0, 38.0], to weather."
    )


def test_an_attributes_sentence_covers_all_models_and_names_those_it_may_spare() -> None:
    both = [row("position", "position", drop, model=model) for model, drop in (("A", 12.0), ("B", 10.0))]
    assert summarize_attribute(both[:1]) == "Moving the object costs 12.0 points [4.0, 20.0]."
    assert summarize_attribute(both) == "Moving the object costs 10.0 to 12.0 points."
    third = row("position", "position", 3.0, model="C")
    assert summarize_attribute([*both, third]) == (
        "Moving the object costs A and B 10.0 to 12.0 points. For C it may cost nothing."
    )
    assert summarize_attribute([third]) == "Moving the object may cost nothing, and at most 11.0 points."


def edited(model: str, percent: float, letters: str) -> GroupAccuracy:
    rate = Estimate(percent, percent - 2, percent + 2, 400)
    return GroupAccuracy(model, "all", "all", "all", 40, rate, rate, letters)


def contrast(difference: float, half: float, *, attribute: Attribute = "size", n: int = 64) -> Contrast:
    p = 0.001 if abs(difference) > half else 0.5
    return Contrast(
        first="A",
        second="B",
        condition=Condition(attribute, "all", ""),
        n=n,
        value_first=30.0,
        value_second=30.0 - difference,
        difference=difference,
        ci_low=difference - half,
        ci_high=difference + half,
        p_value=p,
        p_adjusted=p,
        adjusted_low=difference - half,
        adjusted_high=difference + half,
    )


def compared(rows: list[GroupAccuracy], differences: list[Contrast]) -> list[str]:
    return [finding.text for finding in compare_models(rows, differences)]


def test_models_are_compared_by_what_they_get_right_on_edited_photos_then_by_attribute() -> None:
    three = [edited("A", 63.5, "b"), edited("B", 70.6, "a"), edited("C", 68.2, "a")]
    assert compared(three, [contrast(3.1, 4.0)]) == [
        "On edited photos B (70.6 % right) and C (68.2 %) are clearly ahead of A (63.5 % right); "
        "no single attribute was shown to tell them apart."
    ]
    (sentence,) = compared(three[:2], [contrast(6.9, 5.6)])
    assert sentence.endswith("; B loses 6.9 points less than A [1.3, 12.5] to size.")
    (turned,) = compared(three[:2], [contrast(-6.9, 5.6)])
    assert turned.endswith("; A loses 6.9 points less than B [1.3, 12.5] to size.")


def test_models_that_cannot_be_told_apart_are_not_ranked() -> None:
    tied = [edited("A", 63.5, "a"), edited("B", 64.6, "a")]
    assert compared(tied, [])[0].startswith("On edited photos B (64.6 % right) and A (63.5 %) cannot be told apart")
    between = [edited("A", 63.5, "b"), edited("B", 70.6, "a"), edited("C", 68.2, "ab")]
    assert (
        "B (70.6 % right) is clearly ahead of A (63.5 % right), and C (68.2 % right) cannot" in compared(between, [])[0]
    )


def test_surface_edits_and_few_photos_tell_no_models_apart() -> None:
    tied = [edited("A", 63.5, "a"), edited("B", 64.6, "a")]
    for row_ in (contrast(20.0, 5.0, attribute="shape"), contrast(20.0, 5.0, n=9)):
        assert compared(tied, [row_])[0].endswith("no single attribute was shown to tell them apart.")


def test_the_largest_of_many_differences_is_corrected_for_the_pairs_that_it_was_chosen_from() -> None:
    tied = [edited("A", 63.5, "a"), edited("B", 64.6, "a")]
    apart = contrast(12.0, 9.0)._replace(p_adjusted=0.02)
    others = [contrast(1.0, 9.0)._replace(first=name, p_adjusted=0.8) for name in ("C", "D", "E")]
    assert compared(tied, [apart, others[0]])[0].endswith("; B loses 12.0 points less than A [3.0, 21.0] to size.")
    assert compared(tied, [apart, *others])[0].endswith("; no single attribute was shown to tell them apart.")


def test_one_model_is_compared_with_nothing() -> None:
    assert compared([edited("A", 63.5, "")], []) == []


def test_another_model_changes_no_word_about_the_first(tmp_path: Path) -> None:
    first = {"A": breaks_on({"background-swap": 14, "size:0.05": 12})}
    both = {**first, "B": breaks_on({"original": 4, "background-swap": 38, "size": 36, "control": 20})}
    about = [
        [finding for finding in write_headline(open_runs([write_run(tmp_path / name, models)])) if finding.model == "A"]
        for name, models in (("one", first), ("two", both))
    ]
    assert about[0] == about[1]
    assert "Its largest clear loss is 35.0 points" in about[0][0].text


@pytest.mark.parametrize(
    ("edit", "level", "words"),
    [
        ("size", "0.05", "the object at 5 % of the picture"),
        ("size", "tiny", "the object at size tiny"),
        ("occlusion", "0.25", "covering 25 % of the object"),
        ("material", "wood", "the object made of wood"),
        ("direction", "-45..45", "turning the object by up to 45°"),
        ("direction", "75", "turning the object by 75°"),
        ("direction", "random", "turning the object"),
        ("direction", "30@0.1", "turning the object by 30°, at 10 % of the picture"),
        ("position", "random@0.05", "moving the object, at 5 % of the picture"),
        ("flip", "left-right", "mirroring the object"),
        ("position-grid", "2/3,1/3@0.1", "moving the object to row 2 of 3, column 1 of 3, at 10 % of the picture"),
        ("position-grid", "odd", "moving the object (odd)"),
        ("tilt", "40/0", "tilting the object (yaw 40°, pitch 0°)"),
        ("background-blur", "15/3", "blurring it (kernel 15, sigma 3)"),
        ("corruption-gaussian-noise", "3", "gaussian noise (severity 3)"),
        ("silhouette", "white", "a black silhouette on white"),
        ("texture", "random", "another texture on it"),
        ("stranger", "7", "stranger (7)"),
    ],
)
def test_levels_are_told_in_words(edit: str, level: str, words: str) -> None:
    assert describe_change(edit, level) == words


@pytest.mark.parametrize(
    ("low", "end"),
    [
        (4.0, "right on 10 % [4.0, 20.0] of 64 photos, from what is left of the picture; guessing gives 2.5 %."),
        (
            1.0,
            "10 % [1.0, 20.0] of 64 photos, which is not shown to be more than guessing; guessing gives 2.5 %.",
        ),
    ],
)
def test_right_without_the_object_is_said_only_above_guessing(low: float, end: str) -> None:
    drops = [row("presence", "object-removed", 70.0)]
    answer = BackgroundAnswer("net", Condition("presence", "object-removed", ""), Estimate(10.0, low, 20.0, 64), 2.5)
    table = DropTable(drops=drops, verdicts=judge_rows(drops), background_answers=[answer])
    (text,) = [finding.text for finding in describe_drops(table) if finding.kind == "presence"]
    assert text.endswith(end)
