"""The faults of a fill, each on a case made to have it, beside a case without it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from counterfoil.edits.fill import fill_visible_hole
from counterfoil.edits.fill_quality import (
    MOST,
    FilledHole,
    FillQuality,
    measure_appearance,
    measure_disagreement,
    measure_fill,
    measure_novelty,
)
from counterfoil.edits.patch_match import OpenPicture
from counterfoil.edits.smooth_fill import fill_smoothly

Bytes = NDArray[np.uint8]


def grass() -> Bytes:
    return np.repeat(data.grass()[:192, :192, None], 3, axis=2)


def hole_of(shape: tuple[int, ...], size: int = 80) -> NDArray[np.bool_]:
    hole = np.zeros(shape[:2], bool)
    top, left = (shape[0] - size) // 2, (shape[1] - size) // 2
    hole[top : top + size, left : left + size] = True
    return hole


def test_a_real_background_has_no_fault() -> None:
    quality = measure_fill(FilledHole(grass(), hole_of((192, 192))))
    assert quality.fault < 0.9
    assert quality.reason == ""


def test_a_brighter_patch_has_a_seam_all_around() -> None:
    image, hole = grass() // 2 + 40, hole_of((192, 192))
    brighter = np.where(hole[..., None], np.clip(image.astype(int) + 110, 0, 255), image).astype(np.uint8)
    assert measure_fill(FilledHole(brighter, hole)).seam > 0.6
    assert measure_fill(FilledHole(image, hole)).seam < 0.05


def test_a_smear_has_not_the_texture_of_its_surroundings() -> None:
    image, hole = grass(), hole_of((192, 192))
    smear, patches = (
        measure_fill(FilledHole(filled, hole))
        for filled in (fill_smoothly(image, hole), fill_visible_hole(OpenPicture(image, hole)))
    )
    assert smear.texture > 1 > 2 * patches.texture
    assert smear.fault > 1 > patches.fault
    assert "lines of the photo end" in smear.reason
    assert "texture" in smear._replace(line_ends=0).reason
    assert patches.reason == ""


def test_an_object_beside_the_hole_is_no_texture_of_its_surroundings() -> None:
    image = np.full((192, 192, 3), 120, np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (192, 40, 3), dtype=np.uint8)
    image[:, :40] = image[:, 152:] = noise
    hole, beside = hole_of((192, 192), 100), np.zeros((192, 192), bool)
    beside[:, :40] = beside[:, 152:] = True
    assert measure_fill(FilledHole(image, hole)).texture > 0.65
    assert measure_fill(FilledHole(image, hole, beside)).texture < 0.5


def test_tiles_are_repeated_details() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(60, 200, (192, 192, 3), dtype=np.uint8)
    image = np.repeat(np.repeat(image[::4, ::4], 4, axis=0), 4, axis=1)
    hole = hole_of((192, 192), 96)
    tiled = image.copy()
    tiled[48:144, 48:144] = np.tile(image[:24, :24], (4, 4, 1))
    assert measure_fill(FilledHole(tiled, hole)).repetition > 0.8
    assert measure_fill(FilledHole(image, hole)).repetition < 0.1


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
    beside = np.zeros((100, 100), np.float32)
    beside[45:55, 71:75] = 1  # a rest of the object at the rim
    assert measure_appearance(beside, hole) == pytest.approx(40 / 1600)
    salience[45:55, :] = 1  # a fence across the picture
    assert measure_appearance(salience, hole) < 0.15


def test_a_hole_too_large_is_refused_with_its_share() -> None:
    quality = FillQuality(seam=0, repetition=0, texture=0, novelty=0, appearance=0, hole_share=0.7)
    assert quality.reason == "the hole covers 70% of the picture, at most 65% can be filled"


def test_the_reason_names_the_worst_fault() -> None:
    quality = FillQuality(seam=0.01, repetition=0.1, texture=0.1, novelty=0.2, appearance=0.0, hole_share=0.2)
    assert "20.0% of it has colours" in quality.reason
    assert quality.fault == pytest.approx(0.2 / MOST.novelty)


def test_faults_that_are_small_each_are_too_much_together() -> None:
    good = FillQuality(seam=0.02, repetition=0.1, texture=0.3, novelty=0, appearance=0, hole_share=0.3)
    worse = {"seam": 0.04, "texture": 0.7, "strangeness": 0.8, "disagreement": 6.0}
    assert all(good._replace(**{name: value}).reason == "" for name, value in worse.items())
    assert good._replace(**worse).reason.startswith("no fill is good enough: ")


def test_a_fill_with_nothing_before_it_must_be_better() -> None:
    good = FillQuality(seam=0.02, repetition=0.1, texture=0.3, novelty=0, appearance=0, hole_share=0.3)
    doubtful, bad = good._replace(seam=0.056), good._replace(seam=0.14)
    assert good.bare_reason == ""
    assert doubtful.reason == ""
    assert doubtful.bare_reason == "no fill is good enough: 6% of its rim is a visible edge"
    assert bad.bare_reason == bad.reason != ""


def test_something_that_the_photo_has_nowhere_is_strange() -> None:
    image, hole = grass(), hole_of((192, 192))
    rings = image.copy()
    rows, columns = np.mgrid[:192, :192]
    rings[hole] = ((np.hypot(rows - 96, columns - 96) % 24 < 12) * 200 + 25)[hole][:, None]
    assert measure_fill(FilledHole(rings, hole)).strangeness > 1.3 * measure_fill(FilledHole(image, hole)).strangeness


def test_two_fills_disagree_about_what_is_there_not_about_its_details() -> None:
    image, hole = grass(), hole_of((192, 192))
    other_grass, sky = image.copy(), image.copy()
    other_grass[hole] = np.roll(image, 90, axis=1)[hole]
    sky[hole] = (120, 160, 230)
    close, far = (measure_disagreement(image, other, hole) for other in (other_grass, sky))
    assert close < 17 < 40 < far  # where they differ most, not on average
    assert measure_fill(FilledHole(image, hole, None, (other_grass, sky))).disagreement == close
