"""The object's colours and focus against the formulas, colorsys and scikit-image."""

from __future__ import annotations

import colorsys

import cv2
import numpy as np
import pytest
from scipy.ndimage import convolve1d
from skimage.color import hsv2rgb, rgb2hsv

from counterfoil.edits.registry import edit_named
from counterfoil.edits.scene import relight
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, cup, edited, ellipse


def made(name: str, settings: dict[str, object], picture: Picture, seed: int = 0) -> Picture:
    return edited(edit_named(name, settings), picture, seed)


@pytest.mark.parametrize("shift", [30, 120, -75.5])
def test_a_hue_shift_agrees_with_scikit_image(shift: float) -> None:
    picture = cup()
    edited = made("object-hue", {"shift": shift}, picture)
    inside = edited.alpha == 255
    hsv = rgb2hsv(picture.image[inside][None])
    hsv[..., 0] = (hsv[..., 0] + shift / 360) % 1
    expected = np.rint(hsv2rgb(hsv)[0] * 255)
    assert np.abs(edited.image[inside] - expected).max() <= 1


def test_a_soft_edge_mixes_the_new_colour_with_the_old_background() -> None:
    alpha = np.asarray(cv2.GaussianBlur(ellipse((160, 160), (80, 80), (45, 40)), (0, 0), 1.5), np.uint8)
    share = alpha[..., None] / 255
    image = np.rint(share * (200, 40, 40) + (1 - share) * (20, 30, 90)).astype(np.uint8)
    edited = made("object-hue", {"shift": 120}, Picture(image, alpha))
    green = np.array(colorsys.hsv_to_rgb(1 / 3, 0.8, 200 / 255)) * 255
    expected = share * green + (1 - share) * (20, 30, 90)
    edge = (edited.alpha > 0) & (edited.alpha < 255)
    assert edge.sum() > 500
    assert np.abs(edited.image - expected)[edge].mean() < 0.1 * np.abs(image - expected)[edge].mean()


def test_a_random_hue_is_a_whole_angle_drawn_from_the_seed() -> None:
    picture = blob_on_grass()
    angle = int(np.random.default_rng(5).integers(1, 360))
    drawn, fixed = made("object-hue", {}, picture, 5), made("object-hue", {"shift": angle}, picture)
    np.testing.assert_array_equal(drawn.image, fixed.image)


@pytest.mark.parametrize("picture", PICTURES)
def test_a_gray_object_has_the_luma_of_bt_601(picture: str) -> None:
    given = PICTURES[picture]()
    edited = made("object-grayscale", {}, given)
    inside = edited.alpha == 255
    expected = given.image[inside] @ np.array([0.299, 0.587, 0.114])
    assert np.abs(edited.image[inside] - expected[:, None]).max() <= 1


@pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.7])
def test_brightness_multiplies_the_objects_levels(factor: float) -> None:
    picture = cup()
    edited = made("object-brightness", {"factor": factor}, picture)
    inside = edited.alpha == 255
    expected = np.clip(np.rint(picture.image[inside] * factor), 0, 255)
    np.testing.assert_array_equal(edited.image[inside], expected)


def test_brightness_of_one_changes_nothing_at_all() -> None:
    picture = PICTURES["cat"]()
    np.testing.assert_array_equal(made("object-brightness", {"factor": 1.0}, picture).image, picture.image)


def _gaussian(image: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.float64]:
    """15 x 15 at sigma 3, mirrored at the border, straight from the formula."""
    weights = np.exp(-(np.arange(-7, 8) ** 2) / (2 * 3.0**2))
    weights /= weights.sum()
    for axis in (0, 1):
        image = convolve1d(image, weights, axis=axis, mode="mirror")
    return image


def test_the_faithful_blur_is_ximagenet_12s_gaussian_where_the_mask_is_set() -> None:
    picture = blob_on_grass()
    edited = made("object-blur", {"faithful": True}, picture)
    blurred = _gaussian(picture.image.astype(np.float64))
    expected = np.where(picture.alpha[..., None] >= 128, blurred, picture.image)
    assert np.abs(edited.image - expected).max() <= 1


def test_the_blur_has_the_same_gaussian_deep_inside_and_takes_no_background_at_the_rim() -> None:
    picture = blob_on_grass()
    edited = made("object-blur", {}, picture)
    deep = cv2.erode(edited.alpha, np.ones((17, 17), np.uint8)) == 255
    assert deep.sum() > 200
    assert np.abs(edited.image - _gaussian(picture.image.astype(np.float64)))[deep].max() <= 1.5
    rim = (edited.alpha == 255) & (cv2.erode(edited.alpha, np.ones((7, 7), np.uint8)) < 255)
    orange = edited.image[rim].astype(int)
    assert (orange[:, 0] - orange[:, 1] > 50).all()  # the object is orange, the grass green


def test_an_object_takes_half_of_the_change_in_light_and_only_where_it_is_asked_for() -> None:
    picture = blob_on_grass()
    outside = picture.image[cv2.dilate(picture.alpha, np.ones((9, 9), np.uint8)) == 0]
    darker = (picture.image * 0.64).astype(np.uint8)
    blended, exact = relight(Subject(picture), darker).draw(), Subject(picture).on_background(darker)
    inside = blended.alpha == 255
    gain = ((outside.mean() * 0.64 + 8) / (outside.mean() + 8)) ** 0.5
    expected = 255 * (picture.image[inside] / 255) ** (1 - np.log2(gain))  # mid-grey is multiplied, white stays
    assert np.abs(blended.image[inside] - expected).mean() < 2
    np.testing.assert_array_equal(exact.image[inside], picture.image[inside])
    above = np.arange(len(picture.alpha))[:, None] < 60  # a contact shadow lies below
    away = (blended.alpha == 0) & above
    np.testing.assert_array_equal(blended.image[away], darker[away])


@pytest.mark.parametrize(
    ("name", "settings"),
    [("object-brightness", {"factor": -1}), ("object-blur", {"kernel": 4}), ("object-blur", {"sigma": 0})],
)
def test_settings_that_mean_nothing_are_refused(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="expected"):
        edit_named(name, settings)
