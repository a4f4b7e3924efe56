"""What changed between two versions, and the step of the version that it asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from counterfoil.benchmark.diff import BenchmarkDiff, compare_versions, read_version
from counterfoil.builder import build_pictures
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.run_config import RunConfig
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.workspace import Workspace
from freeze_workspaces import (
    build_workspace,
    frozen,
    ids_of,
    keep_mined,
    keep_verdicts,
    write_licences,
    write_workspace,
)
from planted import write_photos


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return write_workspace(tmp_path, photos=2)


def between(folder: Path) -> BenchmarkDiff:
    return compare_versions(read_version(folder / "old"), read_version(folder / "new"))


def said(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(commands, ["diff", str(folder / "old"), str(folder / "new"), *options])
    assert done.exit_code == 0
    return done.output


def test_the_same_twice_has_no_difference(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "old")
    frozen(workspace, tmp_path / "new")
    assert between(tmp_path).step == "none"
    assert "the same pictures" in said(tmp_path)


def test_added_pictures_are_a_minor_step_and_removed_ones_a_major(workspace: Workspace, tmp_path: Path) -> None:
    small = ids_of(workspace, "size")
    keep_mined(workspace, small[:2])
    frozen(workspace, tmp_path / "old")
    keep_mined(workspace, small[:3])
    frozen(workspace, tmp_path / "new", "1.1.0")
    found = between(tmp_path)
    assert (found.step, found.step_made, len(found.removed)) == ("minor", "minor", 0)
    assert len([name for name in found.added if "size" in name]) == 1
    (tmp_path / "old").rename(tmp_path / "kept")
    (tmp_path / "new").rename(tmp_path / "old")
    (tmp_path / "kept").rename(tmp_path / "new")
    assert between(tmp_path).step == "major"
    assert "removed: " in said(tmp_path)


def test_a_version_that_goes_back_is_no_step(workspace: Workspace, tmp_path: Path) -> None:
    small = ids_of(workspace, "size")
    keep_mined(workspace, small[:2])
    frozen(workspace, tmp_path / "old", "9.0.0")
    keep_mined(workspace, small[:3])
    frozen(workspace, tmp_path / "new", "1.10.0")
    assert "version 9.0.0 -> 1.10.0 goes back: a version that is higher by a minor step is due" in said(tmp_path)
    (tmp_path / "old").rename(tmp_path / "kept")
    frozen(workspace, tmp_path / "old", "1.9.0")
    assert not between(tmp_path).goes_back  # as numbers, not as text


def test_lost_verdicts_are_a_major_step(workspace: Workspace, tmp_path: Path) -> None:
    names = [one.variant.id for one in workspace.pictures]
    keep_verdicts(workspace, dict.fromkeys(names, True))
    frozen(workspace, tmp_path / "old", verified=True)
    keep_verdicts(workspace, dict.fromkeys([name for name in names if name not in ids_of(workspace, "control")], True))
    frozen(workspace, tmp_path / "new", "1.0.1")
    found = between(tmp_path)
    assert found.step == "major"
    assert {change.aspects for change in found.changed} == {("verdict",)}
    assert {(change.was, change.now) for change in found.changed} == {("confirmed", "unasked")}
    words = said(tmp_path)
    assert "confirmed -> unasked" in words
    assert "lost: 2 pictures that people had confirmed are no longer confirmed" in words
    assert "a major one is due, since people no longer confirm what they confirmed before" in words


def test_new_verdicts_are_a_patch(workspace: Workspace, tmp_path: Path) -> None:
    names = [one.variant.id for one in workspace.pictures]
    keep_verdicts(workspace, dict.fromkeys([name for name in names if name not in ids_of(workspace, "control")], True))
    frozen(workspace, tmp_path / "old", verified=True)
    keep_verdicts(workspace, dict.fromkeys(names, True))
    frozen(workspace, tmp_path / "new", "1.0.1")
    assert between(tmp_path).step == "patch"
    assert "lost" not in said(tmp_path)


def test_other_pixels_and_seeds_are_found_under_the_same_name(tmp_path: Path) -> None:
    edits = "edits:\n  - edit: control\n  - {edit: position, settings: {rate: 0.05}}\n"
    recipe = f"about: random\nworking_size: 96\njudge_fills: false\n{edits}"
    (tmp_path / "recipe.yaml").write_text(recipe)
    source = open_source(*write_photos(tmp_path, 2))
    for seed, name in enumerate(("old", "new")):
        job = RunConfig(source=source, models=(), recipe=str(tmp_path / "recipe.yaml"), seed=seed)
        build_pictures(job, tmp_path / f"{name}-workspace")
        frozen(Workspace(tmp_path / f"{name}-workspace"), tmp_path / name, f"1.0.{seed}")
    found = between(tmp_path)
    assert (found.added, found.removed, found.step) == ((), (), "major")
    moved = {change.picture: change.aspects for change in found.changed if "position" in change.picture}
    assert set(moved.values()) == {("pixels", "settings")}
    assert len(moved) == 2
    assert "is too small a step" in said(tmp_path)


def test_labels_scoring_and_licences_are_compared(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "old")
    write_licences(tmp_path / "images", {"crimson/000.png": "CC0"})
    frozen(build_workspace(tmp_path), tmp_path / "new", "1.0.1", scoring="subset")
    found = between(tmp_path)
    assert found.terms == ("scoring",)
    assert found.step == "major"
    assert {change.aspects for change in found.changed} == {("provenance",)}
    assert "version 1.0.0 -> 1.0.1 is too small a step: a major one is due" in said(tmp_path)


def test_what_changed_for_many_pictures_is_named_once_with_old_and_new_value(
    workspace: Workspace, tmp_path: Path
) -> None:
    pictures = frozen(workspace, tmp_path / "old").record.counts.pictures
    frozen(workspace, tmp_path / "new", "1.0.1", licence="CC-BY-SA-4.0", previous=tmp_path / "old")
    assert said(tmp_path).splitlines()[1:] == [
        f"changed: {pictures} pictures",
        f"  licence unknown -> CC-BY-SA-4.0: {pictures} pictures",
        "version 1.0.0 -> 1.0.1 is a patch step, as is due: pictures and labels are the same",
    ]
    assert "  - licence unknown -> CC-BY-SA-4.0" in (tmp_path / "new" / "CHANGELOG.md").read_text()
    moved = json.loads(said(tmp_path, "--json"))["changed"][0]["moved"]
    assert moved == [["licence", "unknown", "CC-BY-SA-4.0"]]


def test_a_change_of_one_picture_alone_is_named_with_it(workspace: Workspace, tmp_path: Path) -> None:
    keep_mined(workspace, ids_of(workspace, "size")[:1])
    frozen(workspace, tmp_path / "old", originals=False)
    write_licences(tmp_path / "images", {"crimson/000.png": "CC0"})
    frozen(build_workspace(tmp_path), tmp_path / "new", "1.0.1", originals=False)
    name = between(tmp_path).changed[0].picture
    line = f"  {name} (provenance: licence unknown -> CC0, origin none -> photo book, crimson/000.png)"
    assert line in said(tmp_path).splitlines()


def test_new_classes_change_the_rule_only_where_a_subset_competes(workspace: Workspace, tmp_path: Path) -> None:
    first, *_, last = ids_of(workspace, "size")
    for scoring, step in (("all", "minor"), ("subset", "major")):
        keep_mined(workspace, [first])
        frozen(workspace, tmp_path / scoring / "old", scoring=scoring)
        keep_mined(workspace, [first, last])
        frozen(workspace, tmp_path / scoring / "new", "1.1.0", scoring=scoring)
        assert between(tmp_path / scoring).step == step


def test_another_layout_changes_no_picture(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "old")
    frozen(workspace, tmp_path / "new", layout="parquet")
    assert between(tmp_path).terms == ("layout",)
    assert not between(tmp_path).changed


def test_json_names_every_picture(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "old", originals=False)
    frozen(workspace, tmp_path / "new", "1.1.0")
    told = json.loads(said(tmp_path, "--json"))
    assert told["step"] == "minor"
    assert told["added"] == sorted(f"{sample}: {edit} none" for sample in ("crimson/000.png", "emerald/001.png")
                                   for edit in ("control", "original"))  # fmt: skip


def test_the_changelog_grows_from_version_to_version(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "old", originals=False)
    frozen(workspace, tmp_path / "new", "1.1.0", previous=tmp_path / "old")
    lines = (tmp_path / "new" / "CHANGELOG.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# Changelog", "## 1.1.0", "## 1.0.0"]
    assert "- added: 4 pictures" in lines
    assert "First version." in lines


def test_a_changed_version_is_not_compared(workspace: Workspace, tmp_path: Path) -> None:
    for name in ("old", "new"):
        frozen(workspace, tmp_path / name)
    path = tmp_path / "new" / "manifest.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(UserError, match="it was changed"):
        between(tmp_path)
