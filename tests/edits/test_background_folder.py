"""Backgrounds from a folder and from the pool of textures: chosen by content, made again from the settings alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterfoil.edits.background import BackgroundAdditive
from counterfoil.edits.background_folder import BackgroundFolder
from counterfoil.edits.cutout import cover
from counterfoil.edits.registry import edit_named, settings_of
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from edit_pictures import blob_on_grass, cat

RNG = np.random.default_rng


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(6):
        pixels = RNG(i).integers(0, 256, (60, 80, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"scene{i}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def test_the_object_stands_before_the_chosen_picture(folder: Path) -> None:
    edit = BackgroundFolder(str(folder)).choose(7)
    scene = np.array(Image.open(folder / str(edit.file)))
    made = edit(cat(), RNG(0))
    np.testing.assert_array_equal(made.image[made.alpha == 0], cover(scene, (150, 225))[made.alpha == 0])


def test_the_settings_of_a_chosen_edit_make_the_picture_again(folder: Path) -> None:
    edit = BackgroundFolder(str(folder), fit="tile").choose(7)
    again = edit_named("background-folder", settings_of(edit))
    np.testing.assert_array_equal(again(cat(), RNG(3)).image, edit(cat(), RNG(3)).image)


def test_seeds_spread_over_the_folder_and_a_new_picture_changes_few_choices(folder: Path) -> None:
    edit = BackgroundFolder(str(folder))
    before = [edit.choose(seed).file for seed in range(200)]
    assert set(before) == {f"scene{i}.png" for i in range(6)}
    Image.fromarray(RNG(9).integers(0, 256, (60, 80, 3), np.uint8)).save(folder / "new.png")
    after = [edit.choose(seed).file for seed in range(200)]
    assert all(new in (old, "new.png") for old, new in zip(before, after, strict=True))
    assert 0 < after.count("new.png") < 70


def test_a_name_does_not_decide_but_the_content(folder: Path) -> None:
    edit = BackgroundFolder(str(folder))
    before = [edit.choose(seed).sha256 for seed in range(50)]
    for path in sorted(folder.glob("*.png")):
        path.rename(folder / f"x{9 - int(path.stem[-1])}.png")
    assert [edit.choose(seed).sha256 for seed in range(50)] == before


def test_a_tile_is_the_picture_at_its_own_size(folder: Path) -> None:
    edit = BackgroundFolder(str(folder), fit="tile").choose(1)
    scene = np.array(Image.open(folder / str(edit.file)))
    made = edit(cat(), RNG(0))
    seen = {tuple(pixel) for pixel in scene.reshape(-1, 3).tolist()}
    assert {tuple(pixel) for pixel in made.image[made.alpha == 0].tolist()} <= seen


def test_a_picture_that_changed_since_is_not_used(folder: Path) -> None:
    edit = BackgroundFolder(str(folder)).choose(7)
    Image.new("RGB", (80, 60)).save(folder / str(edit.file))
    with pytest.raises(Unusable, match="has changed since it was chosen"):
        edit(cat(), RNG(0))
    (folder / str(edit.file)).unlink()
    with pytest.raises(Unusable, match="cannot be read"):
        edit(cat(), RNG(0))


def test_a_file_that_is_no_picture_says_so(tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"no picture at all")
    with pytest.raises(Unusable, match=r"broken\.jpg is no picture"):
        BackgroundFolder(str(tmp_path))(cat(), RNG(0))


def test_a_folder_without_pictures_is_refused_at_the_door(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found none"):
        edit_named("background-folder", {"folder": str(tmp_path)})
    with pytest.raises(UserError, match="expected a folder of pictures"):
        edit_named("background-folder", {"folder": str(tmp_path / "nowhere")})


def test_half_a_choice_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="expected both or none"):
        edit_named("background-folder", {"folder": str(folder), "file": "scene1.png"})


def test_a_texture_keeps_the_mean_colour_of_the_background() -> None:
    picture = cat()
    before = Subject(picture).background.mean(axis=(0, 1))
    made = edit_named("background-texture", {"texture": "brick"})(picture, RNG(0))
    np.testing.assert_allclose(made.image[made.alpha == 0].mean(axis=0), before, atol=25)
    other = edit_named("background-texture", {"texture": "brick", "keep_colour": False})(picture, RNG(0))
    assert (other.image[other.alpha == 0] != made.image[made.alpha == 0]).any()


def test_an_additive_background_is_a_saturating_sum() -> None:
    picture, donor = cat(), blob_on_grass((100, 100))
    made = BackgroundAdditive()(picture, RNG(0), donor)
    cut = Subject(picture).cutout
    alone = np.rint(cut.image * (cut.alpha[..., None] / 255))
    lent = cover(Subject(donor).visible_background, (150, 225)).astype(float)
    assert np.abs(made.image - np.minimum(alone + lent, 255)).max() <= 1
