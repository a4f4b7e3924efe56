"""Who may pass a picture on: licences from the source to the manifest, and what --redistributable-only leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from counterfoil.benchmark.frozen_benchmark import open_benchmark
from counterfoil.benchmark.licences import is_redistributable
from counterfoil.builder import build_pictures
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.run_config import RunConfig
from counterfoil.sources.folder import FolderSource
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.parquet import read_table
from counterfoil.store.workspace import Workspace
from freeze_workspaces import (
    build_workspace,
    contents,
    frozen,
    keep_mined,
    without_provenance,
    write_licences,
    write_workspace,
)  # fmt: skip
from planted import write_photos

LICENCES = {"crimson/000.png": "CC BY 4.0", "emerald/001.png": "CC-BY-ND-2.0", "azure/002.png": "cc0"}  # violet: none


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return write_workspace(tmp_path_factory.mktemp("licences"), licences=LICENCES)


@pytest.mark.parametrize(
    "licence",
    ["CC0", "CC0-1.0", "cc-by-4.0", "CC BY-SA 3.0", "CC BY-NC-SA 2.0", "Public Domain", "MIT", "Apache-2.0",
     "BSD-3-Clause", "ODbL-1.0", "CC BY 3.0 Unported", "https://creativecommons.org/licenses/by-sa/2.5/",
     "http://creativecommons.org/publicdomain/zero/1.0/", "CDLA-Permissive-2.0"],
)  # fmt: skip
def test_free_licences_are_known_by_every_spelling(licence: str) -> None:
    assert is_redistributable([licence])


@pytest.mark.parametrize(
    "licence",
    ["", "unknown", "all rights reserved", "CC BY-ND 4.0", "CC-BY-NC-ND-4.0", "no CC BY 4.0 here", "proprietary",
     "https://creativecommons.org/licenses/by-nd/2.0/", "ImageNet photos, rights with their owners", "summit"],
)  # fmt: skip
def test_all_others_count_as_forbidden(licence: str) -> None:
    assert not is_redistributable([licence])
    assert not is_redistributable(["MIT", licence])


def test_nothing_said_is_no_permission() -> None:
    assert not is_redistributable([])


def test_licence_and_origin_of_photo_and_donor_stand_in_the_manifest(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "set")
    table = read_table(tmp_path / "set" / "manifest.parquet")
    for row, sample in enumerate(table["sample_id"]):
        lenders = [sample, *([table["donor_id"][row]] if table["donor_id"][row] else [])]
        expected = dict.fromkeys(LICENCES.get(name, "unknown") for name in lenders)
        assert table["licence"][row] == " + ".join(expected)
        assert ("photo book" in table["origin"][row]) == any(name in LICENCES for name in lenders)
    assert any(" + " in licence for licence in table["licence"])


def test_only_what_may_be_passed_on_goes_in_and_the_rest_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "set"
    arguments = ["freeze", str(workspace.folder), "--name", "free", "--version", "1.0.0", "--out", str(out)]
    done = CliRunner().invoke(commands, [*arguments, "--redistributable-only"], catch_exceptions=False)
    there = open_benchmark(out).pictures
    assert {one.variant.sample_id for one in there} == {"crimson/000.png", "azure/002.png"}
    donors = {one.variant.donor_id for one in there if one.variant.donor_id}
    assert donors <= {"crimson/000.png", "azure/002.png"}
    count = len(workspace.pictures) - len(there)
    assert f"left out: {count} pictures, whose licence forbids passing on or is not known" in done.output


def test_an_original_comes_along_only_with_a_picture_made_of_it(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, licences=LICENCES)
    swapped = {
        one.variant.sample_id: one.variant for one in workspace.pictures if one.variant.edit == "background-swap"
    }
    free = [name for name, licence in LICENCES.items() if is_redistributable([licence])]
    served = {name for name in free if swapped[name].donor_id in free} | {"crimson/000.png"}
    assert served < set(free)
    small = [one.variant.id for one in workspace.pictures
             if one.variant.edit == "size" and one.variant.sample_id == "crimson/000.png"]  # fmt: skip
    keep_mined(workspace, [*(variant.id for variant in swapped.values()), *small])
    frozen(workspace, tmp_path / "set", redistributable_only=True)
    assert {one.variant.sample_id for one in open_benchmark(tmp_path / "set").pictures} == served


def test_a_licence_for_the_rest_can_be_given(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "set", licence="CC-BY-4.0", redistributable_only=True)
    samples = {one.variant.sample_id for one in open_benchmark(tmp_path / "set").pictures}
    assert samples == {"crimson/000.png", "azure/002.png", "violet/003.png"}


def test_nothing_that_may_be_passed_on_is_said(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, photos=2)
    with pytest.raises(UserError, match=r"licence forbids .*; --licence says the licence of photos"):
        frozen(workspace, tmp_path / "set", redistributable_only=True)


def test_a_workspace_is_frozen_alike_with_its_photos_and_without_them(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, licences=LICENCES)
    frozen(workspace, tmp_path / "there")
    shutil.rmtree(tmp_path / "images")
    shutil.rmtree(tmp_path / "masks")
    frozen(Workspace(workspace.folder), tmp_path / "gone")
    assert contents(tmp_path / "gone") == contents(tmp_path / "there")
    table = read_table(tmp_path / "gone" / "manifest.parquet")
    both = {"CC BY 4.0", "CC-BY-ND-2.0", "cc0", "unknown"}
    assert {part for licence in table["licence"] for part in licence.split(" + ")} == both


def test_a_donor_whose_rows_quality_control_removed_keeps_its_licence(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, licences=LICENCES)
    swapped = next(one for one in workspace.pictures if one.variant.donor_id in LICENCES)
    donor = str(swapped.variant.donor_id)
    for one in workspace.pictures:
        if one.variant.sample_id == donor:
            (workspace.folder / one.file).write_bytes(b"no picture")
    assert CliRunner().invoke(commands, ["quality", str(workspace.folder)]).exit_code == 0
    left = Workspace(workspace.folder)
    assert donor not in {one.variant.sample_id for one in left.pictures}
    frozen(left, tmp_path / "set")
    table = read_table(tmp_path / "set" / "manifest.parquet")
    assert LICENCES[donor] in dict(zip(table["id"], table["licence"], strict=True))[swapped.variant.id]


def test_licences_that_are_named_later_come_in_when_the_workspace_is_built_again(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, photos=2)
    assert set(frozen(workspace, tmp_path / "before").record.licences) == {"unknown"}
    write_licences(tmp_path / "images", {"crimson/000.png": "CC0", "emerald/001.png": "CC0"})
    assert set(frozen(build_workspace(tmp_path), tmp_path / "after").record.licences) == {"CC0"}


def test_of_an_older_workspace_photos_that_are_gone_or_changed_have_no_known_licence(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, photos=2, licences={"crimson/000.png": "CC0", "emerald/001.png": "CC0"})
    workspace = without_provenance(workspace)
    assert set(frozen(workspace, tmp_path / "there").record.licences) == {"CC0"}
    (tmp_path / "images" / "crimson" / "000.png").write_bytes((tmp_path / "masks/crimson/000.png").read_bytes())
    record = frozen(workspace, tmp_path / "changed").record
    assert set(record.licences) >= {"CC0", "unknown"}
    (tmp_path / "images").rename(tmp_path / "elsewhere")
    assert set(frozen(workspace, tmp_path / "gone").record.licences) == {"unknown"}


def test_no_path_of_the_machine_stands_in_a_benchmark(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 2)
    edit = f"{{edit: background-folder, settings: {{folder: {images}}}}}"
    recipe = f"about: x\nworking_size: 64\njudge_fills: false\nedits:\n  - edit: control\n  - {edit}\n"
    (tmp_path / "recipe.yaml").write_text(recipe)
    build_pictures(
        RunConfig(source=open_source(images, masks), models=(), recipe=str(tmp_path / "recipe.yaml")),
        tmp_path / "workspace",
    )
    frozen(Workspace(tmp_path / "workspace"), tmp_path / "set", licence="MIT")
    table = read_table(tmp_path / "set" / "manifest.parquet")
    assert set(table["licence"]) == {"MIT", "MIT + unknown"}
    assert '"folder": "images"' in " ".join(table["settings"])
    told = " ".join(path.read_bytes().decode("latin-1") for path in (tmp_path / "set").glob("*.*"))
    assert str(tmp_path) not in told + " ".join(table["settings"])


def test_a_folder_tells_licence_and_origin_of_its_photos(workspace: Workspace) -> None:
    samples, _ = FolderSource(workspace.folder.parent / "images").samples()
    assert {sample.id: sample.licence for sample in samples} == {**LICENCES, "violet/003.png": ""}
    assert samples[1].origin == "photo book, crimson/000.png"


def test_licences_without_their_columns_are_refused(tmp_path: Path) -> None:
    workspace = without_provenance(write_workspace(tmp_path, photos=2))
    write_licences(tmp_path / "images", {})
    (tmp_path / "images" / "licences.csv").write_text("photo,terms\ncrimson/000.png,MIT\n")
    with pytest.raises(UserError, match="found no file"):
        frozen(workspace, tmp_path / "set")
    with pytest.raises(UserError, match="found no file"):
        build_workspace(tmp_path)
