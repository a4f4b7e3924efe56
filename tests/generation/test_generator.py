"""Painting recipes: which pictures they ask for, the workspace they fill, and going on after kill -9."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from counterfoil.builder import rebuild
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.generation.prompt_plan import PlannedPrompt, PromptPlan, Selection
from counterfoil.labels.benchmark_classes import imagenet_d, load_label_space, ximagenet12
from counterfoil.published.catalogue import open_collection
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.recipes.prompt_recipe import list_prompt_recipes, load_prompt_recipe
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import read_skipped
from counterfoil.store.workspace import Workspace
from counterfoil.types import MiningResult
from locations import HELPERS
from painted import drawn
from planted import write_photos

SMALL = ["--categories", "backpack,umbrella", "--values", "beach,striped,wood,fire"]


def orders(selection: Selection, seed: int = 0) -> list[PlannedPrompt]:
    plan = PromptPlan(load_prompt_recipe("imagenet-d"), imagenet_d(), selection, {"painter": "p"}, "", seed)
    return plan.plan_prompts()


def paint(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["paint", *arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("painted") / "workspace"
    arguments = ["--recipe", "imagenet-d", "--painter", "python:painted:words", "--out", str(folder), *SMALL]
    assert paint(*arguments, "--per-pair", "2").exit_code == 0
    return folder


def test_merge_names_the_command_that_joins_painted_shards(workspace: Path) -> None:
    with pytest.raises(UserError, match="the command that painted it, without --shard, joins its shards"):
        CliRunner().invoke(commands, ["merge", str(workspace)], catch_exceptions=False, standalone_mode=False)


def test_imagenet_d_has_every_category_with_every_nuisance() -> None:
    found = orders(Selection())
    by_attribute = {name: [one for one in found if one.variant.attribute == name] for name in
                    ("original", "background", "texture", "material")}  # fmt: skip
    assert {name: len(rows) for name, rows in by_attribute.items()} == {
        "original": 113, "background": 113 * 468, "texture": 113 * 47, "material": 113 * 32,
    }  # fmt: skip
    assert len({one.variant.id for one in found}) == len(found)
    words = [one.prompt for one in found if one.variant.sample_id == "alarm_clock/0"]
    assert words[:2] == ["a photo of an alarm clock", "an alarm clock in the street"]
    assert "an alarm clock made of wood" in words
    assert {"an alarm clock with an interlaced texture", "an alarm clock with a striped texture"} < set(words)


def test_every_picture_has_a_counterpart_from_its_own_seed() -> None:
    found = orders(Selection(categories=("backpack", "tv"), per_pair=3, limit=50))
    plain = {one.variant.sample_id: one.variant.seed for one in found if one.variant.attribute == "original"}
    assert len(set(plain.values())) == len(plain) == 6
    painted = [one.variant for one in found if one.variant.attribute != "original"]
    assert len(painted) == 50
    assert all(variant.seed == plain[variant.sample_id] for variant in painted)


def test_more_of_a_recipe_changes_no_picture_that_was_there() -> None:
    few = {one.variant.id for one in orders(Selection(categories=("backpack",), limit=20))}
    more = {one.variant.id for one in orders(Selection(categories=("backpack",), limit=40))}
    all_of_it = {one.variant.id for one in orders(Selection(categories=("backpack", "tv"), per_pair=2))}
    assert few < more < all_of_it
    assert not few & {one.variant.id for one in orders(Selection(categories=("backpack",)), seed=1)}


def test_a_workspace_holds_the_pictures_that_the_manifest_names(workspace: Path) -> None:
    found = Workspace(workspace)
    assert len(found.pictures) == 2 * 2 * (1 + 3)
    for stored in found.pictures:
        about = json.loads(stored.variant.settings)
        pixels = drawn(f"{about['prompt']}||{stored.variant.seed}", (48, 48))
        assert np.array_equal(found.read(stored), pixels)
        assert hashlib.sha256(pixels.tobytes()).hexdigest() == stored.sha256
        assert (about["painter"], about["revision"], about["steps"]) == ("python:painted:words", "words-1", 3)
    levels = {(one.variant.attribute, one.variant.edit, one.variant.level) for one in found.pictures}
    assert ("material", "prompt-material", "wood") in levels
    assert {one.variant.label for one in found.pictures} == {"backpack", "umbrella"}


def test_what_the_painter_refused_is_a_counted_row(workspace: Path) -> None:
    rows = read_skipped(workspace)
    assert [(row.edit, row.reason) for row in rows] == [("prompt-material", "held back")] * 4


def test_a_killed_painting_goes_on_and_ends_in_the_same_bytes(tmp_path: Path) -> None:
    path = os.pathsep.join([*sys.path, str(HELPERS)])
    command = [
        sys.executable, "-m", "counterfoil", "paint", "--recipe", "imagenet-d", "--painter", "python:painted:killed",
        *SMALL, "--batch-size", "2",
    ]  # fmt: skip

    def run(out: str, mark: Path) -> int:
        environment = {**os.environ, "PYTHONPATH": path, "COUNTERFOIL_TEST_MARK": str(mark)}
        done = subprocess.run([*command, "--out", str(tmp_path / out)], env=environment, capture_output=True)
        return done.returncode

    assert run("killed", tmp_path / "mark") == -9
    assert not (tmp_path / "killed" / "variants.parquet").exists()
    assert any((tmp_path / "killed" / "pictures").rglob("*.png"))
    assert run("killed", tmp_path / "mark") == 0
    assert run("whole", tmp_path / "mark") == 0

    def files(name: str) -> dict[str, bytes]:
        kept = [path for path in (tmp_path / name).rglob("*") if path.suffix in (".png", ".parquet", ".csv")]
        return {path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in kept}

    assert files("killed") == files("whole")


def test_a_lost_picture_is_painted_again_and_another_painter_is_refused(workspace: Path) -> None:
    picture = next((workspace / "pictures").rglob("*.png"))
    before = picture.read_bytes()
    picture.unlink()
    arguments = ["--recipe", "imagenet-d", "--out", str(workspace), *SMALL, "--per-pair", "2"]
    assert paint(*arguments, "--painter", "python:painted:words").exit_code == 0
    assert picture.read_bytes() == before
    with pytest.raises(UserError, match="another painter"):
        paint(*arguments, "--painter", "python:painted:killed")


def test_a_larger_limit_adds_to_a_workspace_and_paints_nothing_twice(tmp_path: Path) -> None:
    arguments = ["--recipe", "imagenet-d", "--painter", "python:painted:words", "--categories", "backpack,chair"]
    assert paint(*arguments, "--out", str(tmp_path), "--limit", "6").exit_code == 0
    first = {path: path.stat().st_mtime_ns for path in (tmp_path / "pictures").rglob("*.png")}
    few = {one.variant.id for one in Workspace(tmp_path).pictures}
    assert paint(*arguments, "--out", str(tmp_path), "--limit", "12").exit_code == 0
    assert few < {one.variant.id for one in Workspace(tmp_path).pictures}
    assert all(path.stat().st_mtime_ns == time for path, time in first.items())


def test_backgrounds_are_painted_around_the_objects_of_photos(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    recipe = tmp_path / "scenes.yaml"
    classes = tmp_path / "classes.json"
    classes.write_text(json.dumps(["crimson", "emerald", "azure", "violet"]))
    recipe.write_text(
        f"paints: backgrounds\nclasses: {classes}\nattributes:\n  - attribute: background\n"
        "    templates: {painted-background: 'a photo of {value}'}\n"
        "    values: {crimson: [a beach, a street], azure: [a forest]}\n"
    )
    out = tmp_path / "workspace"
    done = paint("--recipe", str(recipe), "--painter", "python:painted:words", "--images", str(images), "--masks",
                 str(masks), "--out", str(out), "--per-pair", "2")  # fmt: skip
    assert done.exit_code == 0
    found = Workspace(out)
    kinds = sorted((one.variant.label, one.variant.level, one.variant.replicate) for one in found.pictures)
    assert kinds == [
        ("azure", "a forest", 0), ("azure", "a forest", 1), ("azure", "none", 0), ("crimson", "a beach", 0),
        ("crimson", "a beach", 1), ("crimson", "a street", 0), ("crimson", "a street", 1), ("crimson", "none", 0),
    ]  # fmt: skip
    table = read_table(out / "variants.parquet")
    for stored, image, mask in zip(found.pictures, table["image"], table["mask"], strict=True):
        photo = np.asarray(Image.open(images / image).convert("RGB"))
        inside = np.asarray(Image.open(masks / mask).convert("L")) == 255
        assert np.array_equal(found.read(stored)[inside], photo[inside])
    pixels = {stored.sha256 for stored in found.pictures}
    assert len(pixels) == len(kinds)


def test_a_background_of_another_size_than_the_photo_is_refused(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    (tmp_path / "classes.json").write_text(json.dumps(["crimson", "emerald", "azure", "violet"]))
    recipe = tmp_path / "scenes.yaml"
    recipe.write_text(
        f"paints: backgrounds\nclasses: {tmp_path / 'classes.json'}\nattributes:\n"
        "  - {attribute: background, values: [beach], templates: {a: '{value}'}}\n"
    )
    with pytest.raises(
        UserError, match=r"shape \(\d+, \d+, 3\), that of the photo, .* dtype uint8 and shape \(9, 9, 3\)"
    ):
        paint("--recipe", str(recipe), "--painter", "python:painted:small", "--images", str(images), "--masks",
              str(masks), "--out", str(tmp_path / "out"))  # fmt: skip


def test_ximagenet_12_has_scenes_for_each_of_its_classes() -> None:
    (attribute,) = load_prompt_recipe("ximagenet-12-ai").attributes
    assert isinstance(attribute.values, dict)
    assert set(attribute.values) == set(ximagenet12().labels)
    assert all(len(set(scenes)) >= 3 for scenes in attribute.values.values())


@pytest.mark.parametrize("name", list_prompt_recipes())
def test_shipped_painting_recipes_ask_only_for_classes_there_are(name: str) -> None:
    painting = load_prompt_recipe(name)
    space = load_label_space(painting.classes)
    named = {label for one in painting.attributes if isinstance(one.values, dict) for label in one.values}
    assert named | set(painting.words) <= set(space.labels)


def test_the_stand_in_for_photos_changes_background_texture_and_material() -> None:
    used = {step.edit for step in load_recipe("imagenet-d-photo").edits}
    assert {"control", "background-swap", "painted-random", "background-texture", "texture", "material"} <= used


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("paints: pictures\nclasses: imagenet-d\nattributes: []", "at least 1 item"),
        ("paints: pictures\nclass: imagenet-d", "unknown key 'class'; expected name, about, paints, classes"),
        ("- a", "holds no keys"),
        ("a: [", "expected a painting recipe in YAML"),
        (
            "paints: pictures\nclasses: imagenet-d\nattributes: [{attribute: texture, values: [red],"
            " templates: {a: 'a {colour}'}}]",
            "has {colour}; expected category, a_category, value",
        ),
        (
            "paints: pictures\nclasses: imagenet-d\nattributes: [{attribute: texture, values: no.csv,"
            " templates: {a: '{value}'}}]",
            "expected a CSV file with the column 'value' for texture",
        ),
        (
            "paints: pictures\nclasses: imagenet-d\nattributes: [{attribute: texture,"
            " values: {unicorn: [red]}, templates: {a: '{value}'}}]",
            "expected a label of imagenet-d, got 'unicorn'",
        ),
        (
            "paints: pictures\nclasses: imagenet-d\nattributes: [{attribute: texture, values: [red],"
            " templates: {../../a: '{value}'}}]",
            "a template is named by letters, digits, '.', '+' and '-', got '../../a'",
        ),
        (
            "paints: pictures\nclasses: imagenet-d\nattributes: [{attribute: texture, values: [red],"
            " templates: {a: '{value!x}'}}]",
            "has {value}; expected category, a_category, value, a_value as they are",
        ),
        (
            "paints: pictures\nclasses: imagenet-d\nattributes: [{attribute: texture, values: [red, blue, red],"
            " templates: {a: '{value}'}}]",
            "expected each value of texture once, got 'red' twice",
        ),
        (
            "paints: pictures\nclasses: imagenet-d\nattributes: [{attribute: texture, values: [..],"
            " templates: {a: '{value}'}}]",
            "expected values of 1 to 200 bytes with a letter or digit for texture, got '..'",
        ),
        (
            "paints: backgrounds\nclasses: imagenet-d\nattributes: [{attribute: background, values: ['20', inf],"
            " templates: {a: 'lambda {value}'}}]",
            "expected numbers for the template 'lambda {value}', got 'inf'",
        ),
    ],
)
def test_a_wrong_prompt_file_says_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(text)
    with pytest.raises(UserError) as error:
        PromptPlan(load_prompt_recipe(str(recipe)), imagenet_d(), Selection(), {}, "", 0).check()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--categories", "backpak"], "the nearest are 'backpack'"),
        (["--attributes", "colour"], "expected an attribute of imagenet-d (background, texture, material)"),
        (["--values", "bech"], "expected a value of imagenet-d, got 'bech'"),
        (["--per-pair", "0"], "expected --per-pair of at least 1, got 0"),
        (["--size", "100"], "expected a size that is a multiple of 8, got 100"),
        (["--guidance", "nan"], "expected guidance of 0 or more"),
        (["--painter", "python:painted:nothing"], "expected a function 'nothing'"),
        (["--painter", "stable-diffusion"], "expected the address of a painter, got 'stable-diffusion'"),
        (["--recipe", "ximagenet-12-ai"], "expected --images"),
        (["--recipe", "imagenet-d-photo"], "expected --images"),
        (["--recipe", "imagnet-d"], "did you mean 'imagenet-d'?"),
        (["--recipe", "imagenet-d-photo", "--images", "."], "expected no --painter: imagenet-d-photo edits photos"),
        (["--painter", "python:painted:SIDE"], "expected a function 'SIDE' in module 'painted'"),
        (["--painter", "python:builtins:dict"], "a factory of an object with `paint(requests)`, got none"),
        (["--painter", "python:painted:empty", "--limit", "1"], "an array of dtype uint8 and shape (height, width, 3)"),
    ],
)
def test_what_cannot_be_painted_is_said_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    usual = ["--recipe", "imagenet-d", "--painter", "python:painted:words", "--out", str(tmp_path / "out")]
    with pytest.raises(UserError) as error:
        paint(*usual, *arguments)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_limit_of_a_recipe_of_edits_counts_photos(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    recipe = tmp_path / "grays.yaml"
    recipe.write_text("edits: [{edit: control}, {edit: grayscale}]")
    said = paint("--recipe", str(recipe), "--images", str(images), "--masks", str(masks), "--limit", "3",
                 "--out", str(tmp_path / "out"))  # fmt: skip
    assert f"pictures: 9 of 3 photos in {tmp_path / 'out' / 'pictures'}" in said.output
    assert "or photos, if it edits them" in " ".join(paint("--help").output.split())


@pytest.mark.parametrize("name", ["imagenet-d", "FILE"])
def test_building_from_a_recipe_that_paints_points_to_paint(tmp_path: Path, name: str) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("paints: pictures\nclasses: imagenet-d\nattributes: []")
    with pytest.raises(UserError, match=r"which asks a painter for pictures; `counterfoil paint --recipe"):
        load_recipe(str(recipe) if name == "FILE" else name)


def test_without_a_painter_its_address_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected --painter"):
        paint("--recipe", "imagenet-d", "--out", str(tmp_path / "out"))


def test_a_painted_workspace_speaks_the_classes_it_was_painted_for(workspace: Path) -> None:
    collection = open_collection(str(workspace))
    assert collection.space == imagenet_d()


def test_a_painted_picture_is_not_made_again(workspace: Path) -> None:
    variant = Workspace(workspace).pictures[0].variant
    with pytest.raises(UserError, match="painted"):
        rebuild(workspace, variant.id)


def test_painted_pictures_go_into_a_benchmark_with_their_prompts(workspace: Path, tmp_path: Path) -> None:
    store = Workspace(workspace)
    kept = [stored.variant.id for stored in store.pictures if stored.variant.attribute != "original"][:3]
    store.keep_mined(MiningResult(tuple(kept), "chosen by hand for a test", {"a": "0"}, store.digest))
    arguments = ["freeze", str(workspace), "--name", "painted", "--version", "1.0.0", "--out", str(tmp_path / "b")]
    done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    (workspace / "mined.json").unlink()
    assert done.exit_code == 0, done.output
    manifest = read_table(tmp_path / "b" / "manifest.parquet")
    chosen = [place for place, name in enumerate(manifest["id"]) if name in kept]
    assert len(chosen) == 3
    assert all(manifest["prompt"][place] and manifest["painter"][place] for place in chosen)
    assert open_collection(str(tmp_path / "b")).space is not None
