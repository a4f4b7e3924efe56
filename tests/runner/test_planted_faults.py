"""The whole pipeline must find exactly the faults that were planted, and call everything else not significant."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import counterfoil as cf
from counterfoil.run_result import Result
from counterfoil.statistics.drops import is_significant
from counterfoil.store.parquet import read_table
from locations import DATA

FAULTS: dict[str, set[tuple[str, str]]] = {
    "honest": {("object-removed", "removed")},
    "answers_by_background": {("background-swap", "other"), ("background-plain", "random")},
    "fails_on_small_objects": {("size", "0.05"), ("object-removed", "removed")},
    "blind_on_the_left": {("position", "random"), ("object-removed", "removed")},
    "fails_on_turned_objects": {("direction", "-45..45"), ("object-removed", "removed")},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    from planted import write_photos

    folder = tmp_path_factory.mktemp("planted")
    images, masks = write_photos(folder, 48)
    models = [f"python:planted:{name}" for name in FAULTS]
    recipe = str(DATA / "geometry.yaml")
    return cf.run(images, models, masks=masks, recipe=recipe, out=folder / "out", workers=2)


@pytest.mark.parametrize("name", FAULTS)
def test_exactly_the_planted_faults_are_found(result: Result, name: str) -> None:
    rows = [row for row in result.drops if row.model == f"python:planted:{name}"]
    assert {row.accuracy_original for row in rows} == {100.0}
    assert {row.n for row in rows} == {48}
    assert {(row.edit, row.level) for row in rows if is_significant(row) and row.drop > 0} == FAULTS[name]


def test_the_headline_names_the_planted_fault(result: Result) -> None:
    (line,) = [line for line in result.headline if "blind_on_the_left" in line and "Its largest clear loss is" in line]
    assert "when the object is moved" in line


def test_one_manifest_line_rebuilds_its_picture_to_the_bit(result: Result) -> None:
    table = read_table(result.folder / "variants.parquet")
    for row in np.random.default_rng(0).choice(len(table["id"]), 25, replace=False):
        picture = cf.rebuild(result.folder, table["id"][row])
        assert hashlib.sha256(picture.image.tobytes()).hexdigest() == table["sha256"][row]


def test_a_photo_that_changed_since_cannot_be_rebuilt(result: Result, tmp_path: Path) -> None:
    table = read_table(result.folder / "variants.parquet")
    photo = result.folder.parent / "images" / table["image"][5]
    before = photo.read_bytes()
    try:
        photo.write_bytes(before + b"\0")
        with pytest.raises(cf.UserError, match="have changed"):
            cf.rebuild(result.folder, table["id"][5])
    finally:
        photo.write_bytes(before)
