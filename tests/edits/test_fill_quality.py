"""The faults of a fill, each on a case made to have it, beside a case without it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from counterfoil.edits.fill import fill_hole, fill_smoothly
from counterfoil.edits.fill_quality import (
    MOST,
    FillQuality,
    measure_appearance,
    measure_fill,
    measure_novelty,
)

Bytes = NDArray[np.uint8]


def grass() -> Bytes:
    return np.repeat(data.grass()[:192, :192, None], 3, axis=2)


def hole_of(shape: tuple[int, ...], size: int = 80) -> NDArray[np.bool_]:
    hole = np.zeros(shape[:2], bool)
    top, left = (shape[0] - size) // 2, (shape[1] - size) // 2
    hole[top : top + size, left : left + size] = True
    return hole


def test_a_real_background_has_no_fault() -> None:
    quality = measure_fill(grass(), hole_of((192, 192)))
    assert quality.fault < 0.5
    assert quality.reason == ""


def test_a_brighter_patch_has_a_seam_all_around() -> None:
    image, hole = grass() // 2 + 40, hole_of((192, 192))
    brighter = np.where(hole[..., None], np.clip(image.astype(int) + 110, 0, 255), image).astype(np.uint8)
    assert measure_fill(brighter, hole).seam > 0.6
    assert measure_fill(image, hole).seam < 0.05


def test_a_smear_has_not_the_texture_of_its_surroundings() -> None:
    image, hole = grass(), hole_of((192, 192))
    smear, patches = (measure_fill(fill(image, hole), hole) for fill in (fill_smoothly, fill_hole))
    assert smear.texture > MOST.texture > patches.texture
    assert "texture" in smear.reason


def test_an_object_beside_the_hole_is_no_texture_of_its_surroundings() -> None:
    image = np.full((192, 192, 3), 120, np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (192, 40, 3), dtype=np.uint8)
    image[:, :40] = image[:, 152:] = noise
    hole, beside = hole_of((192, 192), 100), np.zeros((192, 192), bool)
    beside[:, :40] = beside[:, 152:] = True
    assert measure_fill(image, hole).texture > MOST.texture
    assert measure_fill(image, hole, ignore=beside).texture < 0.5


def test_tiles_are_repeated_details() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(60, 200, (192, 192, 3), dtype=np.uint8)
    image = np.repeat(np.repeat(image[::4, ::4], 4, axis=0), 4, axis=1)
    hole = hole_of((192, 192), 96)
    tiled = image.copy()
    tiled[48:144, 48:144] = np.tile(image[:24, :24], (4, 4, 1))
    assert measure_fill(tiled, hole).repetition > 0.8
    assert measure_fill(image, hole).repetition < 0.1


def test_colours_that_the_photo_lacks_are_new() -> None:
    image, hole = grass(), hole_of((192, 192))
    red = image.copy()
    red[90:110, 90:110] = (220, 20, 20)
    assert measure_novelty(image, hole) < 0.005
    assert 0.03 < measure_novelty(red, hole) < 0.1


def test_a_salient_thing_inside_the_hole_appeared_and_one_that_reaches_in_did_not() -> None:
    hole = hole_of((100, 100), 40)
    salience = np.zeros((100, 100), np.float32)
    salience[45:55, 45:55] = 1
    assert measure_appearance(salience, hole) == pytest.approx(100 / 1600)
    salience[45:55, :] = 1  # a fence across the picture
    assert measure_appearance(salience, hole) < 0.15


def test_a_hole_of_more_than_half_the_picture_is_refused_with_its_share() -> None:
    quality = FillQuality(seam=0, repetition=0, texture=0, novelty=0, appearance=0, hole_share=0.62)
    assert quality.reason == "the hole covers 62% of the picture, at most 50% can be filled"


def test_the_reason_names_the_worst_fault() -> None:
    quality = FillQuality(seam=0.1, repetition=0.1, texture=0.1, novelty=0.2, appearance=0.0, hole_share=0.2)
    assert "20.0% of it has colours" in quality.reason
    assert quality.fault == pytest.approx(0.2 / MOST.novelty)
