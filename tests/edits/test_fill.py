"""The fill on held-out pieces of known backgrounds, and photos too large to be worked on as they are."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.edits import cutout, matting
from counterfoil.edits.fill import fill_background, fill_hole, fill_visible_hole
from counterfoil.edits.patch_match import OpenPicture
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, ellipse, texture

Bytes = NDArray[np.uint8]


def hidden(real: Bytes, alpha: Bytes) -> Bytes:
    """The fill of a real background whose hole holds nothing."""
    return fill_background(np.where(alpha[..., None] > 0, np.uint8(0), real), alpha)


def test_a_horizon_goes_on_level_behind_an_object_that_reaches_below_it() -> None:
    gravel, sky = texture("gravel", 240), np.full((240, 240, 3), (200, 215, 235), np.uint8)
    real = np.where(np.arange(240)[:, None, None] < 110, sky, gravel // 2)
    alpha = ellipse((240, 240), (130, 120), (70, 45))
    filled = hidden(real.astype(np.uint8), alpha)
    light = filled.mean(axis=2) > 150
    horizon = light.argmin(axis=0)  # the first dark row of each column
    assert np.abs(horizon - 110).max() <= 12
    assert np.abs(horizon - 110).mean() <= 5


@pytest.mark.parametrize("name", ["grass", "gravel", "brick"])
def test_held_out_texture_is_nearer_in_its_gradients_than_inpainting(name: str) -> None:
    real = texture(name, 240)
    alpha = ellipse((240, 240), (120, 110), (50, 45))
    filled = hidden(real, alpha)
    hole = cv2.dilate(alpha, np.ones((11, 11), np.uint8))
    inside = alpha > 0
    truth, ours = (np.sort(_gradients(image)[inside]) for image in (real, filled))
    for method in (cv2.INPAINT_TELEA, cv2.INPAINT_NS):
        theirs = np.sort(_gradients(np.asarray(cv2.inpaint(real, hole, 5, method), np.uint8))[inside])
        assert np.abs(ours - truth).mean() < 0.5 * np.abs(theirs - truth).mean()


def _gradients(image: Bytes) -> NDArray[np.float64]:
    down, across = np.gradient(image.astype(np.float64).mean(axis=2))
    return np.asarray(np.hypot(down, across), np.float64)


def test_a_photo_too_large_for_its_own_size_is_cut_and_filled_on_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    small = blob_on_grass((160, 200))
    large = Picture(
        np.asarray(cv2.resize(small.image, (600, 480), interpolation=cv2.INTER_CUBIC), np.uint8),
        np.asarray(cv2.resize(small.alpha, (600, 480), interpolation=cv2.INTER_NEAREST), np.uint8),
    )
    whole_alpha, whole_fill = matting.estimate_alpha(*large), fill_background(large.image, Subject(large).alpha)
    monkeypatch.setattr("counterfoil.edits.matting.LARGEST", 100_000)
    monkeypatch.setattr("counterfoil.edits.matting.LARGEST", 100_000)
    alpha = matting.estimate_alpha(*large)
    assert np.abs(alpha.astype(int) - whole_alpha).mean() < 1
    filled = fill_background(large.image, alpha)
    outside = cv2.dilate(large.alpha, np.ones((41, 41), np.uint8)) == 0
    np.testing.assert_array_equal(filled[outside], large.image[outside])
    inside = large.alpha > 0
    assert np.abs(filled[inside].mean(axis=0) - whole_fill[inside].mean(axis=0)).max() < 8
    colours = matting.estimate_foreground(large.image, alpha)
    np.testing.assert_array_equal(colours[alpha == 255], large.image[alpha == 255])


def test_bands_change_no_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = blob_on_grass()
    names = ("control", "object-hue", "material")
    made = [edit_named(name, {})(picture, np.random.default_rng(1)) for name in names]
    monkeypatch.setattr(cutout, "BAND", 500)
    again = [edit_named(name, {})(picture, np.random.default_rng(1)) for name in names]
    for first, second in zip(made, again, strict=True):
        np.testing.assert_array_equal(first.image, second.image)


def test_an_object_too_large_to_be_moved_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutout, "LARGEST_MOVED", 1000)
    with pytest.raises(Unusable, match="can be moved: set a working size"):
        edit_named("position", {})(blob_on_grass(), np.random.default_rng(0))


def test_the_fill_is_made_once_for_all_edits_of_a_photo() -> None:
    subject = Subject(blob_on_grass())
    assert subject.background is subject.background
    np.testing.assert_array_equal(subject.background, Subject(subject.picture).background)


@pytest.mark.parametrize("side", [1, 2, 3, 5])
@pytest.mark.parametrize("visible", [False, True])
def test_a_hole_of_a_few_pixels_is_filled_too(side: int, visible: bool) -> None:
    image, hole = texture("grass", 120), np.zeros((120, 120), bool)
    hole[50 : 50 + side, 60 : 60 + side] = True
    holed = np.where(hole[..., None], np.uint8(255), image)
    filled = fill_visible_hole(OpenPicture(holed, hole)) if visible else fill_hole(holed, hole)
    np.testing.assert_array_equal(filled[~hole], image[~hole])
    assert filled[hole].max() < 255
