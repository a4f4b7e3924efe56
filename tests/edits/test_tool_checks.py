"""Pictures made again with another fill or another mask, to see how much of a drop is the tool's doing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import counterfoil as cf
from counterfoil.builder import build_pictures
from counterfoil.edits.donors import Donors
from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.fill_choice import Fills
from counterfoil.edits.registry import EDITS, edit_named
from counterfoil.edits.subject import Subject, Tools, change_mask
from counterfoil.edits.variant_plan import PlannedEdit, ToolChecks, VariantPlans, choose_checked_photos
from counterfoil.errors import Unusable
from counterfoil.recipes.edit_recipe import Recipe, Step
from counterfoil.run_config import RunConfig
from counterfoil.sources.source_loaders import open_source
from counterfoil.statistics.answers import Condition
from counterfoil.store.parquet import read_table
from counterfoil.types import TOOL_CHECKS, EditLevel, Picture, Sample
from planted import write_photos


def sample(number: int) -> Sample:
    return Sample(id=f"a/{number}", label="a", image=f"{number}.png", mask=None, digest=f"{number:064d}")


def plan(*edits: tuple[str, dict[str, object]], main: tuple[EditLevel, ...] = ()) -> VariantPlans:
    steps = [PlannedEdit(edit_named(name, settings), 1, 384, 0) for name, settings in edits]
    checks = ToolChecks(photos=frozenset({"a/1"}), main=frozenset(main))
    return VariantPlans(steps, Donors([sample(1), sample(2)]), checks)


def test_rows_that_show_a_fill_are_doubled_and_the_main_edits_get_other_masks() -> None:
    plans = plan(("size", {"rate": 0.1}), ("size", {"rate": 0.05}), ("jpeg", {}), main=(EditLevel("size", "0.05"),))
    doubles = [v for v in plans.plan(sample(1)).variants if v.attribute in TOOL_CHECKS]
    assert [(v.attribute, v.edit, v.level) for v in doubles] == [
        ("second-fill", "size", "0.1"),
        ("second-fill", "size", "0.05"),
        ("grown-mask", "size", "0.05"),
        ("shrunk-mask", "size", "0.05"),
    ]


def test_a_double_differs_from_its_picture_in_id_and_attribute_alone() -> None:
    variants = plan(("object-removed", {})).plan(sample(1)).variants
    (double,) = [v for v in variants if v.attribute == "second-fill"]
    (picture,) = [v for v in variants if v.attribute == "presence"]
    assert double.id != picture.id
    assert replace(double, id=picture.id, attribute="presence") == picture


def test_photos_that_are_not_chosen_have_no_doubles() -> None:
    assert not [v for v in plan(("object-removed", {})).plan(sample(2)).variants if v.attribute in TOOL_CHECKS]


def test_the_chosen_photos_do_not_depend_on_the_order() -> None:
    samples = [sample(number) for number in range(30)]
    chosen = choose_checked_photos(samples, 10)
    assert len(chosen) == 10
    assert choose_checked_photos(samples[::-1], 10) == chosen


def test_the_count_of_checks_is_no_part_of_a_recipes_digest() -> None:
    one, other = (Recipe(name="r", tool_checks=count, edits=(Step(edit="size"),)) for count in (0, 100))
    assert one.digest == other.digest


def speckled(side: int = 96) -> Picture:
    rng = np.random.default_rng(0)
    alpha = np.zeros((side, side), np.uint8)
    alpha[30:60, 34:66] = 255
    return Picture(rng.integers(0, 256, (side, side, 3), dtype=np.uint8), alpha)


def test_the_second_fill_differs_inside_the_hole_alone_and_keeps_the_object() -> None:
    subject = Subject(speckled())
    first, second = subject.visible_background, subject.with_second_fill.visible_background
    changed = (first != second).any(axis=2)
    assert changed[30:60, 34:66].mean() > 0.5
    assert not changed[:20].any()
    assert (subject.cutout.image == subject.with_second_fill.cutout.image).all()


def large_object(side: int = 96) -> Picture:
    """A ring over more of the picture than can be filled; inside it a donor's hole is seen."""
    alpha = np.zeros((side, side), np.uint8)
    alpha[6:90, 6:90] = 255
    alpha[26:64, 30:70] = 0
    return Picture(speckled(side).image, alpha)


def test_a_swapped_background_is_filled_again_though_the_objects_own_hole_cannot_be() -> None:
    tools = Tools(fills=Fills(judged=True))
    subject, donor = Subject(large_object(), tools=tools), Subject(speckled())
    with pytest.raises(Unusable):
        _ = subject.visible_background
    edit, rng = edit_named("background-swap", {}), np.random.default_rng(0)
    first = edit.apply(subject, rng, Supplied(donors=[donor]))
    again = Supplied(donors=[donor.with_second_fill])
    assert (edit.apply(subject.with_second_fill, rng, again).image != first.image).any()
    assert edit.find_shown_fill(subject.with_second_fill, rng, again) == ("exemplar, other sources", donor.hole.mean())


def test_a_hole_that_cannot_be_filled_once_is_not_filled_twice() -> None:
    subject = Subject(large_object(), tools=Tools(fills=Fills(judged=True)))
    with pytest.raises(Unusable):
        _ = subject.with_second_fill.visible_background


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("background-swap", "position", "of the donor"),
        ("position", "background-swap", "of the donor"),
        ("position", "second-object", "of the photo"),
        ("second-object", "position", "nothing"),
    ],
)
def test_a_combination_tells_the_fill_that_is_seen_where_it_is_known(first: str, second: str, told: str) -> None:
    subject, donor = Subject(speckled()), Subject(speckled(128))
    edit = edit_named("combine-donor", {"edits": [{"edit": first}, {"edit": second}]})
    shares = {"of the donor": donor.hole.mean(), "of the photo": subject.hole.mean()}
    shown = edit.find_shown_fill(subject, np.random.default_rng(0), Supplied(donors=[donor]))
    assert (None if shown is None else shown.hole_share) == shares.get(told)


def test_a_mask_grows_and_shrinks_by_two_percent_of_the_objects_side() -> None:
    alpha = np.zeros((400, 400), np.uint8)
    alpha[100:300, 100:300] = 255  # a side of 200: 4 pixels
    assert [int(change_mask(alpha, share)[200].astype(bool).sum()) for share in (0.02, -0.02)] == [208, 192]


def test_a_mask_too_thin_to_shrink_is_refused() -> None:
    alpha = np.zeros((50, 50), np.uint8)
    alpha[20, 10:40] = 255
    with pytest.raises(Unusable, match="too thin"):
        change_mask(alpha, -0.02)


@pytest.mark.parametrize("name", ["jpeg", "resize", "corruption-fog"])
def test_changes_of_the_whole_picture_use_no_mask(name: str) -> None:
    edit = EDITS[name]()
    assert not edit.uses_mask
    assert not edit.shows_fill


def test_an_edit_that_pastes_the_object_over_its_hole_shows_no_fill() -> None:
    assert not edit_named("control", {}).shows_fill
    assert not edit_named("size", {"rate": "full"}).shows_fill
    assert edit_named("combine", json.loads('{"edits": [{"edit": "background-blur"}, {"edit": "flip"}]}')).shows_fill


def test_a_run_keeps_its_doubles_out_of_every_table_but_the_checked_one(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "tool_checks: 2\njudge_fills: false\nedits: [{edit: control}, {edit: size, settings: {rate: 0.05}}]\n"
    )
    result = cf.run(images, ["python:planted:honest"], masks=masks, recipe=str(recipe), out=tmp_path / "out")
    attributes = {condition.attribute for condition in result.answers.conditions}
    assert attributes == {"original", "control", "size"}
    assert {drop.attribute for drop in result.drops} == {"control", "size"}
    checked = result.study.checked_answers
    double = checked.conditions.index(Condition("second-fill", "size", "0.05"))
    assert np.isfinite(checked.rates[0, double]).sum() == 2
    assert {c.attribute for c in checked.conditions} == attributes | TOOL_CHECKS
    assert result.study.run.tool_checks == 2


def test_a_build_makes_no_doubles(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 2)
    recipe = tmp_path / "r.yaml"
    recipe.write_text("tool_checks: 2\njudge_fills: false\nedits: [{edit: object-removed}]\n")
    build_pictures(RunConfig(source=open_source(images, masks), models=(), recipe=str(recipe)), tmp_path / "out")
    assert set(read_table(tmp_path / "out" / "variants.parquet")["attribute"]) == {"original", "presence"}
