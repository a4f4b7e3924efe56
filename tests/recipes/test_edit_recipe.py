"""Recipes: what they stand for, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import counterfoil
from counterfoil.edits.registry import edit_named
from counterfoil.errors import UserError
from counterfoil.recipes.edit_recipe import Recipe, Step, list_recipes, load_recipe
from counterfoil.run_config import check_references


def written(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def variants(recipe: Recipe) -> list[tuple[str, str]]:
    return [
        (step.edit, edit_named(step.edit, settings).level)
        for step in recipe.edits
        if step.needs in (None, "surrogate")
        for settings in step.all_settings
    ]


@pytest.mark.parametrize("name", list_recipes())
def test_no_two_steps_of_a_recipe_share_a_row_of_the_table(name: str) -> None:
    found = variants(load_recipe(name))
    assert len(found) == len(set(found))


def test_the_default_makes_about_30_pictures_and_everything_uses_every_edit() -> None:
    from counterfoil.edits.registry import OURS

    assert 25 <= len(variants(load_recipe("attributes"))) <= 32
    # What a diffusion model paints takes seconds a picture and has a recipe of its own.
    used = {edit for name in ("everything", "painted") for edit, _ in variants(load_recipe(name))}
    assert set(OURS) - used <= {"background-folder", "combine", "combine-donor", "background-worst"}  # need an input


def test_imagenet_c_has_fifteen_corruptions_at_five_severities() -> None:
    found = [edit for edit, _ in variants(load_recipe("imagenet-c")) if edit.startswith("corruption-")]
    assert len(found) == 75
    assert len(set(found)) == 15


def test_levels_stand_for_one_step_each(tmp_path: Path) -> None:
    text = "edits:\n - {edit: direction, settings: {rate: 0.1}, levels: {angle: [10, 20]}}\n"
    (step,) = load_recipe(written(tmp_path, text)).edits
    assert step.all_settings == [{"rate": 0.1, "angle": 10}, {"rate": 0.1, "angle": 20}]


def test_the_name_of_an_edit_alone_is_a_step(tmp_path: Path) -> None:
    alone, keyed = (load_recipe(written(tmp_path, f"edits: [{step}]")) for step in ("size", "{edit: size}"))
    assert alone.digest == keyed.digest


def test_the_digest_changes_with_what_changes_a_picture_and_not_with_the_words(tmp_path: Path) -> None:
    base = load_recipe(written(tmp_path, "about: a\nedits: [{edit: control}]"))
    words = load_recipe(written(tmp_path, "about: b\nedits: [{edit: control}]"))
    size = load_recipe(written(tmp_path, "working_size: 100\nedits: [{edit: control}]"))
    assert base.digest == words.digest != size.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("edits: []", "at least 1 item"),
        (
            "edit: []",
            "unknown key 'edit'; expected name, about, working_size, tool_checks, judge_fills, allow_cut,"
            " refine_cutouts, edits",
        ),
        ("- control", "holds no keys"),
        ("a: [", "expected a recipe in YAML"),
        ("edits: [{edit: size, setting: {}}]", "unknown key 'edits.0.setting'; expected edit, settings, levels"),
        ("working_size: big\nedits: [{edit: control}]", "'working_size'"),
        ("edits: [{edit: size, levels: {rate: [1], faithful: [true]}}]", "levels takes one setting"),
        ("edits: [{edit: size, replicates: 0}]", "'edits.0.replicates'"),
        ("edits: [3]", "'edits.0': expected the name of an edit, or the keys edit, settings, levels"),
    ],
)
def test_a_wrong_recipe_says_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        load_recipe(written(tmp_path, text))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", list_recipes())
def test_every_shipped_recipe_contains_what_its_edits_are_compared_with(name: str) -> None:
    steps = [step for step in load_recipe(name).edits if step.needs != "painter"]
    check_references(name, [edit_named(step.edit, settings) for step in steps for settings in step.all_settings])


def test_a_step_that_needs_a_painter_is_listed_as_skipped_and_the_others_are_made() -> None:
    image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
    image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
    steps = (Step(edit="background-plain"), Step(edit="painted-background", needs="painter"))
    recipe = Recipe(name="test", about="", working_size=64, judge_fills=False, edits=(Step(edit="control"), *steps))
    result = counterfoil.run([(image, "red", mask)], {"reddest": lambda images: ["red"] * len(images)}, recipe=recipe)
    assert {drop.edit for drop in result.drops} == {"control", "background-plain"}
    assert [row.edit for row in result.skipped] == ["painted-background"]
    assert result.plan.run.main_edits["background"].edit == "background-plain"


def test_our_recipes_refine_cut_outs_and_those_of_papers_do_not() -> None:
    refined = {name for name in list_recipes() if load_recipe(name).refine_cutouts}
    assert refined == {"attributes", "everything", "repair", "repair-fitting"}


def test_a_recipe_that_leaves_cut_outs_as_they_are_keeps_the_digest_of_before_there_was_a_choice(
    tmp_path: Path,
) -> None:
    digests = []
    for line in ("", "refine_cutouts: false\n", "refine_cutouts: true\n"):
        file = tmp_path / "own.yaml"
        file.write_text(f"{line}edits: [control]\n", encoding="utf-8")
        digests.append(load_recipe(str(file)).digest)
    assert digests[0] == digests[1] != digests[2]
