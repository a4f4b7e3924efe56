"""A training set of variants from photos that the judgement of a repair does not use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import counterfoil as cf
from command_line import counterfoil
from counterfoil.errors import UserError
from counterfoil.sources.judged_split import leave_out_judged
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.workspace import Workspace
from planted import write_photos


def write_split(folder: Path, images: Path, masks: Path) -> tuple[Path, list[list[str]]]:
    names = [sample.id for sample in open_source(images, masks).samples()[0]]
    parts = [names[start::3] for start in range(3)]
    path = folder / "repair.json"
    path.write_text(json.dumps({"parts": [dict.fromkeys(part, "digest") for part in parts]}))
    return path, parts


def test_build_leaves_out_what_a_fold_judges_as_photo_and_as_donor(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 9)
    split, parts = write_split(tmp_path, images, masks)
    recipe = tmp_path / "swap.yaml"
    recipe.write_text("judge_fills: false\nworking_size: 64\nedits: [{edit: background-swap}]")
    counterfoil("build", "--images", images, "--masks", masks, "--recipe", recipe, "--split", split, "--fold", 2,
                "--out", tmp_path / "set")  # fmt: skip
    variants = [stored.variant for stored in Workspace(tmp_path / "set").pictures]
    assert {variant.sample_id for variant in variants} == {*parts[0], *parts[2]}
    donors = {variant.donor_id for variant in variants if variant.donor_id}
    assert donors
    assert not donors & set(parts[1])


def test_python_builds_the_same_set_of_photos(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 6)
    split, parts = write_split(tmp_path, images, masks)
    workspace = cf.build(
        images, tmp_path / "set", masks=masks, edits=["object-grayscale"], split=split, fold=3, workers=1
    )
    assert {stored.variant.sample_id for stored in workspace.pictures} == {*parts[0], *parts[1]}


def test_a_split_that_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 6)
    split, parts = write_split(tmp_path, images, masks)
    source = open_source(images, masks)
    with pytest.raises(UserError, match="fold from 1 to 3, got 4"):
        leave_out_judged(source, split, 4)
    with pytest.raises(UserError, match="which is no file"):
        leave_out_judged(source, tmp_path / "none.json", 1)
    split.write_text("[]")
    with pytest.raises(UserError, match="JSON with `parts`"):
        leave_out_judged(source, split, 1)
    split.write_text(json.dumps({"parts": [parts[0], parts[1], ["gone.png"]]}))
    with pytest.raises(UserError, match=r"'gone\.png' is not among these"):
        leave_out_judged(source, split, 1)
