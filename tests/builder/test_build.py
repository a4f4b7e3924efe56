"""Variants as files, and one of them made again."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import counterfoil as cf
from counterfoil.cli import commands
from counterfoil.store.parquet import read_table, write_table
from counterfoil.store.prediction_tables import MANIFEST_COLUMNS
from counterfoil.store.sealed_record import read_sealed
from planted import write_photos

RECIPE = """
working_size: 256
judge_fills: false
edits:
  - edit: control
  - edit: background-swap
  - {edit: size, levels: {rate: [full, 0.1, 0.08, 0.05]}}
  - {edit: position, settings: {rate: 0.05}}
  - {edit: direction, settings: {rate: 0.05}}
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    images, masks = write_photos(folder, 6)
    (folder / "recipe.yaml").write_text(RECIPE)
    arguments = ["build", "--images", str(images), "--masks", str(masks), "--out", str(folder / "workspace")]
    done = CliRunner().invoke(commands, [*arguments, "--recipe", str(folder / "recipe.yaml")], catch_exceptions=False)
    assert done.exit_code == 0
    return folder / "workspace"


def test_build_writes_the_pictures_of_the_manifest(workspace: Path) -> None:
    table = read_table(workspace / "variants.parquet")
    files = list((workspace / "pictures").rglob("*.png"))
    assert len(files) == len(table["id"]) == 6 * 9
    hashes = {hashlib.sha256(np.asarray(Image.open(path)).tobytes()).hexdigest() for path in files}
    assert hashes == set(table["sha256"])
    assert (workspace / "pictures" / "size" / "0.05" / "crimson").is_dir()


def test_rebuild_writes_the_same_picture_again(workspace: Path, tmp_path: Path) -> None:
    table = read_table(workspace / "variants.parquet")
    for row in range(0, len(table["id"]), 7):
        target = tmp_path / "again.png"
        arguments = ["rebuild", str(workspace), table["id"][row], "--out", str(target)]
        assert CliRunner().invoke(commands, arguments, catch_exceptions=False).exit_code == 0
        assert hashlib.sha256(np.asarray(Image.open(target)).tobytes()).hexdigest() == table["sha256"][row]


def test_an_unknown_variant_or_folder_is_named(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(cf.UserError, match="got 'nothing'"):
        cf.rebuild(workspace, "nothing")
    with pytest.raises(cf.UserError, match=r"no variants\.parquet"):
        cf.rebuild(tmp_path, "nothing")


def test_lost_pictures_are_made_again_and_stale_ones_removed(workspace: Path) -> None:
    pictures = sorted((workspace / "pictures").rglob("*.png"))
    before = {path: path.read_bytes() for path in pictures}
    pictures[0].unlink()
    (pictures[1].parent / "stale.png").write_bytes(b"")
    folder = workspace.parent
    arguments = ["build", "--images", str(folder / "images"), "--masks", str(folder / "masks"), "--out", str(workspace)]
    arguments += ["--recipe", str(folder / "recipe.yaml")]
    assert CliRunner().invoke(commands, arguments, catch_exceptions=False).exit_code == 0
    assert {path: path.read_bytes() for path in (workspace / "pictures").rglob("*.png")} == before


def test_rebuild_says_that_another_version_of_the_edit_made_the_picture(workspace: Path, tmp_path: Path) -> None:
    table = read_table(workspace / "variants.parquet")
    row = list(table["edit"]).index("size")
    old = {name: list(column) for name, column in table.items()}
    old["sha256"][row], old["version"][row] = "0" * 64, 0
    shutil.copy(workspace / "run.json", tmp_path)
    write_table(tmp_path / "variants.parquet", MANIFEST_COLUMNS, old)
    with pytest.raises(cf.UserError, match="made by version 0 of the edit 'size', and this Counterfoil has version"):
        cf.rebuild(tmp_path, table["id"][row])


def change_row(workspace: Path, folder: Path, row_of: str, **values: object) -> str:
    """A copy of a workspace's tables with other values in the first row of an edit; its variant's id."""
    table = read_table(workspace / "variants.parquet")
    row = list(table["edit"]).index(row_of)
    changed = {name: list(column) for name, column in table.items()}
    for name, value in values.items():
        changed[name][row] = value
    shutil.copy(workspace / "run.json", folder)
    write_table(folder / "variants.parquet", MANIFEST_COLUMNS, changed)
    return str(table["id"][row])


def test_rebuild_says_in_one_line_why_a_picture_cannot_be_made_any_more(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "scenes").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "scenes" / "other.png")
    gone = {"folder": str(tmp_path / "scenes"), "file": "gone.png", "sha256": "0" * 64}
    variant = change_row(workspace, tmp_path, "control", edit="background-folder", settings=json.dumps(gone))
    with pytest.raises(cf.UserError, match=f"expected a picture for {variant}, .*got none: .*cannot be read"):
        cf.rebuild(tmp_path, variant)


def test_rebuild_says_that_the_network_of_the_run_is_not_there(workspace: Path, tmp_path: Path) -> None:
    for edit, said in (
        ("size", "MI-GAN where it did best.*npm.*COUNTERFOIL_MIGAN"),
        ("control", "a file that the edit"),
    ):
        levels = {"level": "0.05", "settings": '{"rate": 0.05}'} if edit == "size" else {}
        variant = change_row(workspace, tmp_path, edit, sha256="0" * 64, **levels)
        record = read_sealed(tmp_path / "run.json")
        (tmp_path / "run.json").write_text(json.dumps({**record, "fills": "exemplar or MI-GAN, judged"}))
        with pytest.raises(cf.UserError, match=said):
            cf.rebuild(tmp_path, variant)


def test_replicates_with_the_same_pixels_count_once_and_the_others_say_so(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 2)
    (tmp_path / "recipe.yaml").write_text("edits: [{edit: control, replicates: 3}]")
    out = tmp_path / "workspace"
    arguments = ["build", "--images", str(images), "--masks", str(masks), "--out", str(out)]
    CliRunner().invoke(commands, [*arguments, "--recipe", str(tmp_path / "recipe.yaml")], catch_exceptions=False)
    assert sorted(read_table(out / "variants.parquet")["edit"]) == ["control", "control", "original", "original"]
    skipped = (out / "skipped.csv").read_text()
    assert skipped.count("replicate 2 has the same pixels") == skipped.count("replicate 3 has the same pixels") == 2


def test_labels_that_a_model_does_not_know_are_all_named_before_anything_is_built(tmp_path: Path) -> None:
    images, _ = write_photos(tmp_path, 4)
    for old, new in (("crimson", "crimsn"), ("azure", "azur")):
        (images / old).rename(images / new)
    arguments = ["build", "--images", str(images), "--out", str(tmp_path / "out"), "--model", "python:planted:honest"]
    refused = CliRunner().invoke(commands, arguments)
    assert isinstance(refused.exception, cf.UserError)
    assert "'azur' (nearest 'azure'), 'crimsn' (nearest 'crimson')" in str(refused.exception)
    assert not (tmp_path / "out").exists()


def test_a_picture_that_could_be_made_without_a_fill_is_built_where_no_fill_can_be_made(tmp_path: Path) -> None:
    for kind, pixels in (
        ("images", np.full((120, 160, 3), 90, np.uint8)),
        ("masks", np.full((120, 160), 255, np.uint8)),
    ):
        (tmp_path / kind / "box").mkdir(parents=True)
        pixels[:4, :4] = 0  # hardly any background: nothing to fill a hole from
        for number in range(2):
            pixels[60, 80] = 100 + number  # no duplicates
            Image.fromarray(pixels).save(tmp_path / kind / "box" / f"{number}.png")
    (tmp_path / "recipe.yaml").write_text("edits: [{edit: size, settings: {rate: 0.9999}}]")
    arguments = ["build", "--images", str(tmp_path / "images"), "--masks", str(tmp_path / "masks")]
    arguments += ["--recipe", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    table = read_table(tmp_path / "out" / "variants.parquet")
    assert "size" in set(table["edit"])
