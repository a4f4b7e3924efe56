"""Backgrounds in other colours against colorsys, Pillow and the formulae."""

from __future__ import annotations

import colorsys

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, cat, cup

RNG = np.random.default_rng


def outside(name: str, picture: Picture, seed: int = 0, **settings: object) -> tuple[NDArray[np.uint8], ...]:
    """The edited pixels off the object, and what was behind it there."""
    made = edit_named(name, settings)(picture, RNG(seed))
    off = made.alpha == 0
    return made.image[off], Subject(picture).background[off]


def hues_of(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Hue in OpenCV's steps of two degrees, of every seventh pixel that has enough colour for one."""
    coloured = pixels[np.ptp(pixels.astype(int), axis=1) > 60][::7]  # as many as the standard library turns quickly
    return np.array([colorsys.rgb_to_hsv(*(pixel / 255))[0] * 180 for pixel in coloured])


@pytest.mark.parametrize(("hue", "low", "high"), [("red", -30.0, 30.0), ("green", 30.0, 90.0), ("blue", 90.0, 150.0)])
def test_the_background_takes_one_hue_of_the_range(hue: str, low: float, high: float) -> None:
    found = []
    for seed in range(12):
        hues = hues_of(outside("background-hue", cup(), seed, hue=hue)[0])
        signed = (hues + 90) % 180 - 90 if hue == "red" else hues
        assert np.ptp(signed) < 4  # eight bits per channel hold no hue exactly
        found.append(float(np.median(signed)))
    assert min(found) >= low - 1
    assert max(found) <= high
    assert np.ptp(found) > 0.5 * (high - low)


def test_a_new_hue_keeps_saturation_and_value() -> None:
    made, before = outside("background-hue", cup(), hue="blue")
    for ours, theirs in zip(made[::97], before[::97], strict=True):
        _, saturation, value = colorsys.rgb_to_hsv(*(theirs / 255))
        assert colorsys.rgb_to_hsv(*(ours / 255))[2] == pytest.approx(value, abs=0.01)
        assert abs(colorsys.rgb_to_hsv(*(ours / 255))[1] - saturation) * value < 0.03


@pytest.mark.parametrize("channels", [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]])  # brown, and hues all round
def test_a_rainbow_turns_all_hues_by_one_step_within_half_the_circle(channels: list[int]) -> None:
    steps, picture = [], Picture(np.ascontiguousarray(cup().image[..., channels]), cup().alpha)
    for seed in range(12):
        made, before = outside("background-rainbow", picture, seed)
        strong = (np.ptp(made.astype(int), axis=1) > 60) & (np.ptp(before.astype(int), axis=1) > 60)
        step = (hues_of(made[strong]) - hues_of(before[strong]) + 10) % 180 - 10
        assert np.ptp(step) < 5
        steps.append(float(np.median(step)))
    assert min(steps) >= -1
    assert max(steps) <= 91
    assert np.ptp(steps) > 45


def test_a_rainbow_per_pixel_has_many_steps() -> None:
    made, before = outside("background-rainbow", cup(), per_pixel=True)
    strong = (np.ptp(made.astype(int), axis=1) > 60) & (np.ptp(before.astype(int), axis=1) > 60)
    step = (hues_of(made[strong]) - hues_of(before[strong]) + 10) % 180 - 10
    assert step.mean() == pytest.approx(45, abs=2)
    assert step.std() == pytest.approx(90 / 12**0.5, abs=2)


def test_a_gray_background_is_pillows_luma() -> None:
    made, before = outside("background-grayscale", cat())
    luma = np.array(Image.fromarray(before[None]).convert("L"))[0]
    assert (np.ptp(made, axis=1) == 0).all()
    assert np.abs(made[:, 0].astype(int) - luma).max() <= 1


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.5, 3.0])
def test_brightness_multiplies(factor: float) -> None:
    made, before = outside("background-brightness", cat(), factor=factor)
    assert np.abs(made - np.minimum(before * factor, 255)).max() <= 0.5


def test_the_published_brightness_is_its_formula() -> None:
    picture = cat()
    behind = Subject(picture).background.astype(float)
    made = edit_named("background-brightness", {"factor": "ximagenet-12"})(picture, RNG(0))
    padded = np.pad(behind, ((4, 4), (4, 4), (0, 0)), "reflect")
    mean = np.mean([padded[i : i + 150, j : j + 225] for i in range(9) for j in range(9)], axis=0)
    expected = np.minimum(1.5 * behind + 0.9 * mean + 1.9, 255)
    assert np.abs(made.image - expected)[made.alpha == 0].max() <= 1  # the mean is rounded before it is added


@pytest.mark.parametrize("factor", [0.0, 0.3, 2.0])
def test_contrast_is_about_the_mean_of_the_background(factor: float) -> None:
    picture = cat()
    mean = Subject(picture).background.mean(axis=(0, 1))
    made, before = outside("background-contrast", picture, factor=factor)
    assert np.abs(made - np.clip((before - mean) * factor + mean, 0, 255)).max() <= 0.51


@pytest.mark.parametrize("name", ["background-hue", "background-rainbow", "background-grayscale"])
def test_a_background_without_colour_says_so(name: str) -> None:
    picture = blob_on_grass()
    gray = np.asarray(cv2.cvtColor(cv2.cvtColor(picture.image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB), np.uint8)
    with pytest.raises(Unusable, match="no colour to change"):
        edit_named(name, {})(Picture(gray, picture.alpha), RNG(0))


@pytest.mark.parametrize(
    ("name", "settings"), [("background-brightness", {"factor": -1.0}), ("background-contrast", {"factor": -0.1})]
)
def test_a_negative_factor_is_refused(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="factor: expected 0 or more"):
        edit_named(name, settings)
