"""Fitting on mined pictures: which of them a fit may use, and that a repair uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from counterfoil.builder import build_pictures
from counterfoil.errors import UserError
from counterfoil.labels.label_space import infer_label_space
from counterfoil.recipes.edit_recipe import Recipe, Step
from counterfoil.remedies.mined_pictures import MinedPictures, MinedReader
from counterfoil.remedies.photo_parts import PhotoParts, hash_photos
from counterfoil.remedies.repair_config import RepairConfig
from counterfoil.remedies.repairer import execute_repair
from counterfoil.run_config import RunConfig
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.workspace import Workspace
from counterfoil.types import MiningResult, Sample
from planted import write_photos
from repairable import write_small_object_network

MINED = Recipe(
    name="mined",
    judge_fills=False,
    edits=(Step(edit="background-swap"), Step(edit="size", settings={"rate": 0.03})),
)
CLEAN = Recipe(name="clean", judge_fills=False, edits=(Step(edit="control"),))
JUDGED = Recipe(name="judged", judge_fills=False, edits=(Step(edit="size", settings={"rate": 0.05}),))
PHOTOS = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos in `images` and `masks`, and a workspace of pictures of all of them, of which mining kept some."""
    folder = tmp_path_factory.mktemp("mined")
    images, masks = write_photos(folder, PHOTOS)
    build_pictures(RunConfig(source=open_source(images, masks), models=(), recipe=MINED), folder / "workspace")
    workspace = Workspace(folder / "workspace")
    edited = [one.variant.id for one in workspace.pictures if one.variant.edit in ("size", "background-swap")]
    mined = MiningResult(tuple(edited[:-4]), "the first of them", {"some model": "0" * 64}, workspace.digest)
    workspace.keep_mined(mined)
    return folder


def read_mined(folder: Path, parts: list[list[Sample]], into: Path) -> MinedPictures:
    source = open_source(folder / "images", folder / "masks")
    samples = [sample for part in parts for sample in part]
    hashed = hash_photos(source, samples, 1)
    return MinedReader(
        address=str(folder / "workspace"), parts=PhotoParts(parts=tuple(map(tuple, parts))), hashed=hashed,
        space=infer_label_space(samples, ()), folder=into,
    ).read()  # fmt: skip


def test_a_picture_is_used_only_where_its_photo_and_its_donor_are_fitted_on(folder: Path, tmp_path: Path) -> None:
    samples, _ = open_source(folder / "images", folder / "masks").samples()
    parts = [list(samples[start::3]) for start in range(3)]
    mined = read_mined(folder, parts, tmp_path)
    part_of = {sample.id: place for place, part in enumerate(parts) for sample in part}
    variants = {one.variant.id: one.variant for one in Workspace(folder / "workspace").pictures}
    for picture in mined.pictures:
        variant = variants[picture.name]
        owners = {part_of[name] for name in (variant.sample_id, variant.donor_id) if name is not None}
        assert owners <= picture.parts
    usable = mined.usable([0, 1])
    assert 0 < len(usable) < len(mined.pictures)
    assert all(2 not in picture.parts for picture in usable)
    assert len(mined.usable([0, 1, 2])) == len(mined.pictures)
    assert mined.left_out["not kept by mining"] == 4


def test_pictures_of_other_photos_may_always_be_used(folder: Path, tmp_path: Path) -> None:
    samples, _ = open_source(folder / "images", folder / "masks").samples()
    few = [list(samples[place : place + 1]) for place in range(3)]  # the other photos are in no part
    mined = read_mined(folder, few, tmp_path / "pictures")
    assert any(not picture.parts for picture in mined.pictures)
    assert mined.usable([]) == [picture for picture in mined.pictures if not picture.parts]


def test_a_last_layer_is_fitted_on_mined_pictures_too(folder: Path, tmp_path: Path) -> None:
    address = write_small_object_network(tmp_path / "network.onnx")
    config = RepairConfig(
        source=open_source(folder / "images", folder / "masks"), model=address, method="last-layer", recipe=JUDGED,
        fitting_recipe=CLEAN, allow_loss=20.0, elsewhere=open_source(folder / "images", folder / "masks"), workers=1,
        pictures=str(folder / "workspace"),
    )  # fmt: skip
    result = execute_repair(config, tmp_path / "out")
    record = json.loads((tmp_path / "out" / "repair.json").read_text())
    assert record["pictures"]["pictures"] > PHOTOS
    assert record["pictures"]["of_judged_photos"] == record["pictures"]["pictures"]
    (size,) = [row for row in result.attributes if row.attribute == "size"]
    assert size.drop.after < size.drop.before - 30  # clean photos alone would teach it nothing about small objects
    assert "pictures that mining or people kept" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_what_cannot_be_fitted_on_is_said_in_one_line(folder: Path, tmp_path: Path) -> None:
    source = open_source(folder / "images", folder / "masks")
    with pytest.raises(UserError, match="last-layer or train with --pictures, got 'zoom'"):
        RepairConfig(source=source, model="onnx:none", method="zoom", pictures="somewhere")
    assert RepairConfig(source=source, model="onnx:none", pictures="somewhere").methods == ("last-layer", "train")
    alien = [Sample(id=f"x/{n}", label="unknown", image="", mask=None, digest=str(n)) for n in range(3)]
    samples, _ = source.samples()
    hashed = hash_photos(source, samples[:3], 1)
    reader = MinedReader(
        address=str(folder / "workspace"), parts=PhotoParts(parts=tuple((sample,) for sample in alien)), hashed=hashed,
        space=infer_label_space(alien, ()), folder=tmp_path,
    )  # fmt: skip
    with pytest.raises(UserError, match=r"found none: 4 not kept by mining, .* of another class"):
        reader.read()
