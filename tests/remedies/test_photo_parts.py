"""The split of photos: no photo, copy or near-duplicate in two parts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterfoil.errors import UserError
from counterfoil.remedies.photo_parts import FOLDS, HashedPhoto, check_parts, hash_photos, read_parts, split_photos
from counterfoil.sources.source_loaders import open_source
from planted import LABELS, write_photos


@pytest.fixture(scope="module")
def hashed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, HashedPhoto]:
    images, masks = write_photos(tmp_path_factory.mktemp("parts"), 40)
    first = images / LABELS[0]
    copy = Image.open(first / "000.png").resize((300, 240))  # a smaller copy of another format under another name
    copy.save(first / "copy.jpg", quality=90)
    shutil.copy(masks / LABELS[0] / "000.png", masks / LABELS[0] / "copy.png")
    Image.open(masks / LABELS[0] / "copy.png").resize((300, 240)).save(masks / LABELS[0] / "copy.png")
    source = open_source(images, masks)
    return hash_photos(source, source.samples()[0], 1)


def test_near_duplicates_stay_in_one_part(hashed: dict[str, HashedPhoto]) -> None:
    parts = split_photos(hashed, 0)
    places = {sample.id: number for number, part in enumerate(parts.parts) for sample in part}
    copy, original = (
        next(name for name in places if name.startswith(f"{LABELS[0]}/{stem}")) for stem in ("copy", "000")
    )
    assert places[copy] == places[original]
    assert parts.alike >= 2
    check_parts(parts.parts, hashed)


def test_every_class_is_in_every_part_and_every_photo_in_one(hashed: dict[str, HashedPhoto]) -> None:
    parts = split_photos(hashed, 0)
    assert sorted(sample.id for sample in parts.samples) == sorted(hashed)
    assert all({sample.label for sample in part} == set(LABELS) for part in parts.parts)


def test_another_seed_gives_another_split_and_the_same_seed_the_same(hashed: dict[str, HashedPhoto]) -> None:
    assert split_photos(hashed, 0) == split_photos(hashed, 0)
    assert split_photos(hashed, 0) != split_photos(hashed, 1)


def test_each_part_is_judged_once_and_never_fitted_on_in_its_fold() -> None:
    assert sorted(fold.judging for fold in FOLDS) == [0, 1, 2]
    assert all(len(set(fold)) == 3 for fold in FOLDS)


def test_a_photo_in_two_parts_is_refused(hashed: dict[str, HashedPhoto], tmp_path: Path) -> None:
    parts = [[sample.id for sample in part] for part in split_photos(hashed, 0).parts]
    parts[0].append(parts[1][0])
    file = tmp_path / "parts.json"
    file.write_text(json.dumps({"parts": parts}))
    with pytest.raises(UserError, match="in one and itself in another"):
        read_parts(file, hashed)


def test_a_near_duplicate_in_another_part_is_refused(hashed: dict[str, HashedPhoto], tmp_path: Path) -> None:
    parts = [[sample.id for sample in part] for part in split_photos(hashed, 0).parts]
    copy = next(name for part in parts for name in part if name.startswith(f"{LABELS[0]}/copy"))
    home = next(number for number, part in enumerate(parts) if copy in part)
    parts[home].remove(copy)
    parts[(home + 1) % 3].append(copy)
    file = tmp_path / "parts.json"
    file.write_text(json.dumps({"parts": parts}))
    with pytest.raises(UserError, match="which looks the same"):
        read_parts(file, hashed)


def test_the_split_of_a_repair_can_be_used_again(hashed: dict[str, HashedPhoto], tmp_path: Path) -> None:
    parts = split_photos(hashed, 0)
    file = tmp_path / "repair.json"
    file.write_text(json.dumps({"parts": parts.record()}))
    assert read_parts(file, hashed).record() == parts.record()
    file.write_text(json.dumps({"parts": parts.record()[:2]}))
    with pytest.raises(UserError, match="expected 3 parts"):
        read_parts(file, hashed)


def test_a_file_without_a_split_is_said_in_one_line(hashed: dict[str, HashedPhoto], tmp_path: Path) -> None:
    path = tmp_path / "parts.json"
    with pytest.raises(UserError, match="which is no file"):
        read_parts(path, hashed)
    for content in ("{", "[]", '{"parts": 3}', '{"parts": [[["a"]], [], []]}'):
        path.write_text(content)
        with pytest.raises(UserError, match="which holds something else"):
            read_parts(path, hashed)
    names = sorted(hashed)
    path.write_text(json.dumps({"parts": [[*names[:10], names[0]], names[10:20], names[20:]]}))
    with pytest.raises(UserError, match="twice in one part"):
        read_parts(path, hashed)


def test_photos_that_cannot_be_read_are_skipped_with_their_reason(hashed: dict[str, HashedPhoto]) -> None:
    name, row = next(iter(hashed.items()))
    damaged = {**hashed, name: HashedPhoto(row.sample, None, "damaged")}
    parts = split_photos(damaged, 0)
    assert [(skipped.sample_id, skipped.reason) for skipped in parts.skipped] == [(name, "damaged")]
    assert np.all([sample.id != name for sample in parts.samples])
