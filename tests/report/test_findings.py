from __future__ import annotations

import math

import pytest

from counterfoil.report.drop_findings import describe_drops
from counterfoil.report.words import describe_change
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.contrasts import Contrast
from counterfoil.types import Attribute, Drop


def row(
    attribute: Attribute,
    edit: str,
    drop: float,
    half: float = 8.0,
    *,
    model: str = "net",
    level: str = "",
    n: int = 64,
    p: float | None = None,
) -> Drop:
    p = (0.001 if abs(drop) > half else 0.5) if p is None else p
    return Drop(
        model=model,
        attribute=attribute,
        edit=edit,
        level=level,
        n=n,
        accuracy_original=80,
        accuracy_control=80,
        accuracy=80 - drop,
        drop=drop,
        ci_low=drop - half,
        ci_high=drop + half,
        drop_vs_control=drop,
        p_value=0.001 if abs(drop) > half else 0.5,
        drop_vs_reference=drop,
        reference_low=drop - half,
        reference_high=drop + half,
        p_adjusted=p,
    )


def texts(drops: list[Drop], kind: str) -> list[str]:
    return [finding.text for finding in describe_drops(drops) if finding.kind == kind]


def test_the_costliest_attribute_leads_and_no_other_is_near_where_its_interval_stands_alone() -> None:
    drops = [
        row("control", "control", 0.0),
        row("background", "background-swap", 31.3, 8.9),
        row("background", "background-plain", 12.0),
        row("position", "position", 10.5, level="random"),
    ]
    assert texts(drops, "weakest") == ["Background costs net most: swapping it, 31.3 points [22.4, 40.2] (n = 64)."]
    assert texts(drops, "costly") == ["Also significant, each at its costliest edit: position 10.5 points [2.5, 18.5]."]


def test_the_order_is_left_open_where_intervals_overlap() -> None:
    drops = [row("background", "background-swap", 20.0), row("size", "size", 25.0, level="0.05")]
    assert texts(drops, "weakest") == [
        "Size costs net most: the object at 5 % of the picture, 25.0 points [17.0, 33.0] (n = 64); "
        "background may cost as much."
    ]


def test_a_wide_interval_that_is_not_significant_still_leaves_the_order_open() -> None:
    drops = [row("background", "background-swap", 20.0, 5.0), row("direction", "direction", 12.0, 13.0)]
    assert "direction may cost as much" in texts(drops, "weakest")[0]


def test_what_is_not_significant_is_said_as_such() -> None:
    drops = [row("background", "background-swap", 30.0), row("direction", "direction", 2.0, level="random", n=40)]
    assert texts(drops, "unclear") == [
        "Not significant: direction. With n = 40 this does not prove that they cost nothing."
    ]


def test_an_interval_without_zero_is_not_enough_where_the_adjusted_p_is_large() -> None:
    drops = [row("background", "background-swap", 10.0, p=0.2)]
    assert texts(drops, "weakest") == [
        "No attribute costs net a significant number of points; the largest drop measured, not significant after "
        "the correction for many tests and for the tool, is background: swapping it, 10.0 points [2.0, 18.0] (n = 64)."
    ]


def test_an_edit_that_helps_is_told_as_a_gain_and_never_as_a_cost() -> None:
    drops = [row("size", "size", -12.0, level="full")]
    assert texts(drops, "improved") == [
        "Accuracy rises through size (12.0 points [4.0, 20.0], the object at full size)."
    ]
    assert texts(drops, "weakest")[0].startswith("No attribute costs net")


def test_the_tools_own_cost_is_said_plainly_and_noise_is_neither_cost_nor_gain() -> None:
    way = "Control, the object cut out and pasted back: "
    assert texts([row("control", "control", 1.5, 2.5)], "control") == [
        f"{way}no significant change, drop 1.5 points [−1.0, 4.0]."
    ]
    assert texts([row("control", "control", -1.5, 2.5)], "control") == [
        f"{way}no significant change, drop −1.5 points [−4.0, 1.0]."
    ]
    against = "by itself, so read the other drops against it."
    assert texts([row("control", "control", 6.0, 2.0)], "control") == [f"{way}costs 6.0 points [4.0, 8.0] {against}"]
    assert texts([row("control", "control", -6.0, 2.0)], "control") == [
        f"{way}raises accuracy by 6.0 points [4.0, 8.0] {against}"
    ]


def test_a_removed_object_is_a_diagnostic_and_never_the_weakest_attribute() -> None:
    drops = [row("presence", "object-removed", 70.0), row("background", "background-swap", 20.0)]
    assert "without the object (object-removed) still right on 10.0 % (n = 64)" in texts(drops, "presence")[0]
    assert texts(drops, "weakest")[0].startswith("Background costs net most")
    assert texts(drops, "costly") == []


def test_two_attributes_at_once_are_never_the_weakest_one() -> None:
    drops = [row("combination", "combine", 70.0), row("background", "background-swap", 20.0)]
    assert texts(drops, "weakest")[0].startswith("Background costs net most")
    assert texts(drops, "costly") == []


def test_models_are_not_compared_where_no_photos_were_paired() -> None:
    drops = [row("background", "background-swap", drop, model=name) for name, drop in (("a", 30.0), ("b", 5.0))]
    assert texts(drops, "models") == []


def test_one_model_is_compared_with_nothing() -> None:
    assert texts([row("position", "position", 9.0)], "models") == []


def test_nothing_is_said_about_rows_of_too_few_photos() -> None:
    drops = [row("background", "background-swap", 60.0, n=9), row("position", "position", 1.0)]
    assert all("background" not in finding.text for finding in describe_drops(drops))
    assert texts(drops, "data") == [
        "Too few photos: 1 of 2 rows of the table rest on fewer than 10 photos; nothing is said about them."
    ]


def test_a_table_of_mostly_few_photos_is_called_thin_and_never_a_sign_that_nothing_costs() -> None:
    scattered = [row("background", "background-swap", 90.0, n=9, level=str(place)) for place in range(21)]
    measured = [row("shape", "silhouette", 90.0, 30.0, n=10, level="white", p=0.09), row("position", "position", 1.0)]
    (thin,) = [finding for finding in describe_drops([*scattered, *measured]) if finding.kind == "weakest"]
    assert thin.text == (
        "The table of drops is too thin to say which attribute costs net most: 21 of its 23 rows rest on fewer than 10 "
        "photos; the largest drop measured, not significant after the correction for many tests and for the tool, is "
        "shape: a black silhouette on white, 90.0 points [60.0, 120.0] (n = 10)."
    )
    (enough,) = texts([*scattered[:1], *measured], "weakest")
    assert enough.startswith("No attribute costs net a significant number of points")


def test_too_few_photos_everywhere_is_all_that_is_said() -> None:
    (finding,) = describe_drops([row("background", "background-swap", 60.0, n=4)])
    assert finding.text == "Too few photos: at most 4 were scored before and after an edit, and 10 are the least."


def test_no_data_says_so() -> None:
    nothing = Drop("net", "background", "background-swap", "", 0, *[math.nan] * 8)
    for drops in ([], [nothing]):
        (finding,) = describe_drops(drops)
        assert finding.text.startswith("No data")


def test_an_edit_of_a_stranger_is_called_by_its_name() -> None:
    drops = [row("corruption", "fog", 30.0, level="3")]
    assert texts(drops, "weakest")[0].startswith("Corruption costs net most: fog (3), 30.0 points")


def contrast(difference: float, half: float, *, p: float = 0.001, n: int = 64) -> Contrast:
    condition = Condition("background", "background-swap", "")
    low, high = difference - half, difference + half
    return Contrast(
        first="a",
        second="b",
        condition=condition,
        n=n,
        value_first=30.0,
        value_second=30.0 - difference,
        difference=difference,
        ci_low=low,
        ci_high=high,
        p_value=p,
        p_adjusted=p,
    )


TWO_MODELS = [
    row("background", "background-swap", 30.0, model="a"),
    row("background", "background-swap", 26.9, model="b"),
]


def texts_of_two_models(contrasts: list[Contrast], kind: str) -> list[str]:
    return [finding.text for finding in describe_drops(TWO_MODELS, contrasts) if finding.kind == kind]


def test_a_better_model_is_named_beside_the_weakest_attribute_though_the_intervals_overlap() -> None:
    weakest = texts_of_two_models([contrast(3.1, 2.1)], "weakest")
    assert weakest[0] == (
        "Background costs a most: swapping it, 30.0 points [22.0, 38.0] (n = 64); b is 3.1 points better [1.0, 5.2]."
    )
    assert "better" not in weakest[1]


def test_models_are_compared_photo_by_photo_whichever_stands_first() -> None:
    assert texts_of_two_models([contrast(3.1, 2.1)], "models") == [
        "Background (swapping it): b loses 3.1 points less than a [1.0, 5.2], paired by photo (n = 64)."
    ]
    assert texts_of_two_models([contrast(-3.1, 2.1)], "models") == [
        "Background (swapping it): a loses 3.1 points less than b [1.0, 5.2], paired by photo (n = 64)."
    ]


def test_a_difference_inside_the_noise_ranks_nobody() -> None:
    for noise in (contrast(3.1, 4.0), contrast(3.1, 2.1, p=0.2), contrast(3.1, 2.1, n=9)):
        (sentence,) = texts_of_two_models([noise], "models")
        assert sentence.startswith("Photo by photo, no single edit was shown")
        assert all("better" not in line for line in texts_of_two_models([noise], "weakest"))


def test_brackets_do_not_stand_in_brackets() -> None:
    fog = Condition("corruption", "fog", "3")
    apart = Contrast(
        first="a",
        second="b",
        condition=fog,
        n=64,
        value_first=30.0,
        value_second=20.0,
        difference=10.0,
        ci_low=5.0,
        ci_high=15.0,
        p_value=0.001,
        p_adjusted=0.001,
    )
    assert texts_of_two_models([apart], "models")[0].startswith("Corruption (fog, 3): b loses 10.0 points less than a")


def test_the_page_has_one_line_per_attribute_and_the_terminal_a_short_sentence() -> None:
    drops = [
        row("background", "background-swap", 60.0),
        row("direction", "flip", 20.0, level="upside-down"),
        row("colour", "object-grayscale", 19.0, level="gray"),
    ]
    (costly,) = [finding for finding in describe_drops(drops) if finding.kind == "costly"]
    assert costly.text == f"{costly.heading}: direction 20.0 points [12.0, 28.0]; colour 19.0 points [11.0, 27.0]."
    assert costly.lines == (
        ("direction", "20.0 points [12.0, 28.0], turning the object upside down"),
        ("colour", "19.0 points [11.0, 27.0], the object without colour"),
    )


def test_attributes_that_only_the_correction_holds_back_are_told_apart() -> None:
    drops = [
        row("background", "background-swap", 40.0),
        row("direction", "flip", 21.0, 12.0, p=0.3),
        row("position", "position", 2.0),
    ]
    (unclear,) = texts(drops, "unclear")
    assert unclear.startswith(
        "Not significant: position. Not significant after the correction for many tests and for the tool: direction. "
    )
    control = row("control", "control", 6.0, 2.0, p=0.3)
    assert texts([control], "control")[0].endswith(
        "no significant change after the correction for many tests and for the tool, drop 6.0 points [4.0, 8.0]."
    )


def test_edits_that_replace_the_objects_surface_come_after_the_others() -> None:
    drops = [
        row("shape", "silhouette", 80.0, level="white"),
        row("background", "background-swap", 30.0),
        row("position", "position", 12.0),
    ]
    assert texts(drops, "weakest") == [
        "Background costs net most: swapping it, 30.0 points [22.0, 38.0] (n = 64); "
        "surface edits, which replace the object's own look, apart."
    ]
    others, surface = texts(drops, "costly")
    assert others.endswith("position 12.0 points [4.0, 20.0].")
    assert surface.endswith("itself: shape 80.0 points [72.0, 88.0].")


def test_a_surface_edit_leads_where_nothing_else_costs_anything() -> None:
    drops = [row("texture", "texture", 80.0, level="random"), row("position", "position", 2.0)]
    assert texts(drops, "weakest") == [
        "Texture costs net most: another texture on it, 80.0 points [72.0, 88.0] (n = 64)."
    ]


def test_an_archives_own_control_is_not_called_this_tools() -> None:
    (sentence,) = texts([row("control", "control", 1.5, 2.5, level="rec")], "control")
    assert sentence.startswith("The collection's own control (rec), made by its authors with nothing changed: no")


def test_many_overlapping_attributes_are_counted_not_named() -> None:
    others = [row(name, "edit", 29.0) for name in ("size", "position", "direction", "colour")]
    (sentence,) = texts([row("background", "background-swap", 30.0), *others], "weakest")
    assert sentence.endswith("(n = 64); 4 other attributes may cost as much.")


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
        ("direction", "30@0.1", "turning the object (30@0.1)"),
        ("flip", "left-right", "mirroring the object"),
        ("position-grid", "2/3,1/3@0.1", "moving the object to row 2 of 3, column 1 of 3"),
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


def test_what_could_have_gone_unseen_is_told_beside_what_is_not_significant() -> None:
    drops = [row("background", "background-swap", 30.0), row("direction", "direction", 2.0, level="random", n=40)]
    findings = describe_drops(drops, detectable_drops={("net", "direction", "random"): 12.4})
    (unclear,) = [finding.text for finding in findings if finding.kind == "unclear"]
    assert unclear == (
        "Not significant: direction. With n = 40 a drop of 12 points would go unseen in one run of five."
    )


def test_under_a_models_name_its_lead_is_short_and_what_qualifies_it_stands_apart() -> None:
    drops = [
        row("background", "background-swap", 30.0, model="a"),
        row("size", "size", 28.0, level="0.05", model="a"),
        row("shape", "silhouette", 80.0, level="white", model="a"),
    ]
    (lead,) = [finding for finding in describe_drops(drops, [contrast(3.1, 2.1)]) if finding.kind == "weakest"]
    assert lead.brief == "Background costs most: swapping it, 30.0 points [22.0, 38.0]."
    assert lead.qualification == (
        "Size may cost as much; b is 3.1 points better [1.0, 5.2]; "
        "surface edits, which replace the object's own look, apart."
    )
