"""The fifteen corruptions: their statistics against imagecorruptions, their parts against plain implementations."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage, stats
from skimage import color

from corruption_statistics import NAMES, PHOTOS, SEVERITIES, draws_of, photo, statistics
from counterfoil.edits.corruptions import CORRUPTIONS
from counterfoil.edits.corruptions.corruption_layers import smear
from counterfoil.edits.corruptions.noise import ShotNoise
from counterfoil.edits.corruptions.optical_blur import (
    DEFOCUS,
    DefocusBlur,
    GlassBlur,
    MotionBlur,
    ZoomBlur,
    shuffle_sources,
)
from counterfoil.edits.corruptions.weather import FROST_LAYERS, draw_frost, draw_plasma
from counterfoil.edits.registry import edit_named
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from locations import DATA

RECORDED = json.loads((DATA / "corruptions.json").read_text())
RNG = np.random.default_rng
# How far ours may be from the recorded ones: the mean and the spread in levels, the five octaves in shares, each over
# and above four standard errors of the two means. Our frost is drawn and not photographed.
BOUNDS = (1.5, 1.0, *[0.05] * 5)
FROST_BOUNDS = (4.0, 3.0, *[0.2] * 5)


def corrupted(name: str, severity: int, image: NDArray[np.uint8], seed: int = 0) -> NDArray[np.uint8]:
    return CORRUPTIONS[f"corruption-{name.replace('_', '-')}"](severity).corrupt(image, RNG(seed))


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", NAMES)
def test_mean_spread_and_spectrum_agree_with_imagecorruptions(name: str, severity: int) -> None:
    edit, rng = CORRUPTIONS[f"corruption-{name.replace('_', '-')}"](severity), RNG(5)
    for picture in PHOTOS:
        image, recorded = photo(picture), RECORDED[f"{name}/{severity}/{picture}"]
        ours = statistics(lambda image=image: edit.corrupt(image, rng), -(-draws_of(name) // 4))  # type: ignore[misc]
        values, theirs = np.array(ours.values), np.array(recorded["values"])
        scale = np.array([1, 1, *theirs[2:]])
        allowed = np.array(FROST_BOUNDS if name == "frost" else BOUNDS) * scale
        allowed += 4 * np.hypot(ours.errors, recorded["errors"])
        np.testing.assert_array_less(np.abs(values - theirs), allowed)


@pytest.mark.parametrize("name", NAMES)
def test_a_higher_severity_changes_more(name: str) -> None:
    image = photo("chelsea")
    change = [
        np.mean([np.abs(corrupted(name, severity, image, seed).astype(int) - image).mean() for seed in range(4)])
        for severity in (1, 5)
    ]
    assert change[0] < change[1]


def test_gaussian_noise_has_its_spread() -> None:
    gray = np.full((300, 300, 3), 128, np.uint8)
    noise = corrupted("gaussian_noise", 1, gray).astype(float) - 128
    assert noise.mean() == pytest.approx(-0.5, abs=0.2)  # levels are cut off, as in the release
    assert noise.std() == pytest.approx(0.08 * 255, rel=0.01)
    assert abs(np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]) < 0.02


@pytest.mark.parametrize(("severity", "photons"), [(1, 60), (3, 12), (5, 3)])
@pytest.mark.parametrize("level", [0, 7, 100, 255])
def test_shot_noise_is_poisson(severity: int, photons: int, level: int) -> None:
    counted = ShotNoise(severity).corrupt(np.full((250, 250, 3), level, np.uint8), RNG(1))
    mean = level / 255 * photons
    chances = stats.poisson.pmf(np.arange(photons), mean)
    chances = np.append(chances, 1 - chances.sum())
    found = np.array([(counted == count * 255 // photons).sum() for count in range(photons + 1)])
    assert found.sum() == counted.size
    usual = chances * counted.size > 5
    misfit = ((found - chances * counted.size)[usual] ** 2 / (chances * counted.size)[usual]).sum()
    assert misfit < stats.chi2.ppf(0.9999, max(1, usual.sum() - 1))


def test_impulse_noise_strikes_its_share_half_black_half_white() -> None:
    struck = corrupted("impulse_noise", 4, np.full((300, 300, 3), 77, np.uint8))
    assert (struck == 0).mean() == pytest.approx(0.085, abs=0.003)
    assert (struck == 255).mean() == pytest.approx(0.085, abs=0.003)
    assert set(np.unique(struck)) == {0, 77, 255}


@pytest.mark.parametrize("step", [1, 2, 4])
def test_glass_takes_pixels_as_the_released_loop_does(step: int) -> None:
    rng = RNG(step)
    image = rng.integers(0, 256, (40, 33, 3), np.uint8)
    down, right = rng.integers(-step, step, (2, 40, 33), np.int8)
    looped = image.copy()
    for row in range(40 - step, step, -1):
        for column in range(33 - step, step, -1):
            other = row + down[row, column], column + right[row, column]
            looped[row, column], looped[other] = looped[other], looped[row, column]
    ours = image.reshape(-1, 3)[shuffle_sources(down, right, step)].reshape(image.shape)
    np.testing.assert_array_equal(ours, looped)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_defocus_is_a_disc_a_little_softened(severity: int) -> None:
    radius, size, sigma = DEFOCUS[severity - 1]
    reach = max(8, radius)
    down, across = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disc = (down**2 + across**2 <= radius**2).astype(float)
    bell = np.exp(-0.5 * (np.arange(size) - size // 2) ** 2 / sigma**2)
    kernel = ndimage.convolve(disc / disc.sum(), np.outer(bell, bell) / bell.sum() ** 2, mode="mirror")
    image = photo("chelsea")[:90, :70]
    expected = ndimage.convolve(image.astype(float), kernel[..., None], mode="mirror")
    assert np.abs(DefocusBlur(severity).corrupt(image, RNG(0)) - (expected - 0.5)).max() < 0.52


@pytest.mark.parametrize("angle", [-120.0, -45.0, 0.0, 13.7, 45.0])
def test_motion_is_a_sum_of_shifted_pictures(angle: float) -> None:
    image = photo("coffee").astype(np.float32)[:80, :90]
    weights = np.exp(-0.5 * (np.arange(21) / 4) ** 2)
    expected = np.zeros_like(image)
    for distance, weight in enumerate(weights / weights.sum()):
        steps = [-np.ceil(distance * part - 0.5) for part in (np.sin(np.radians(angle)), np.cos(np.radians(angle)))]
        expected += weight * ndimage.shift(image, (*steps, 0), order=0, mode="nearest")
    np.testing.assert_allclose(smear(image, 10, 4, angle), expected, atol=0.01)


def test_zoom_averages_enlargements() -> None:
    image = photo("astronaut").astype(np.float32)
    layers = [image, image]
    for factor in 1 + 0.02 * np.arange(1, 11):
        part = int(np.ceil(224 / factor))
        first = (224 - part) // 2
        middle = image[first : first + part, first : first + part]
        layers.append(ndimage.zoom(middle, (factor, factor, 1), order=1)[:224, :224])
    ours = ZoomBlur(3).corrupt(photo("astronaut"), RNG(0))
    assert np.abs(ours - (np.mean(layers, axis=0) - 0.5)).max() < 2


@pytest.mark.parametrize("severity", SEVERITIES)
def test_brightness_raises_the_value_of_hsv(severity: int) -> None:
    image = np.concatenate([photo("coffee"), np.zeros((4, 224, 3), np.uint8)])
    colours = color.rgb2hsv(image)
    colours[..., 2] = np.clip(colours[..., 2] + severity / 10, 0, 1)
    expected = color.hsv2rgb(colours) * 255
    assert np.abs(corrupted("brightness", severity, image) - (expected - 0.5)).max() < 0.52


@pytest.mark.parametrize(("severity", "left"), [(1, 0.4), (5, 0.05)])
def test_contrast_draws_each_channel_towards_its_mean(severity: int, left: float) -> None:
    image = photo("chelsea")
    mean = image.mean(axis=(0, 1))
    assert np.abs(corrupted("contrast", severity, image) - ((image - mean) * left + mean - 0.5)).max() < 0.52


def test_pixelate_shows_means_of_blocks() -> None:
    image = photo("chelsea")
    blocks = image.reshape(112, 2, 112, 2, 3).mean(axis=(1, 3))
    assert np.abs(corrupted("pixelate", 2, image) - blocks.repeat(2, axis=0).repeat(2, axis=1)).max() <= 1


@pytest.mark.parametrize(("severity", "quality"), [(1, 25), (3, 15), (5, 7)])
def test_jpeg_is_pillows(severity: int, quality: int) -> None:
    file = io.BytesIO()
    Image.fromarray(photo("coffee")).save(file, "JPEG", quality=quality)
    expected = np.array(Image.open(file)).astype(int)
    assert np.abs(corrupted("jpeg_compression", severity, photo("coffee")) - expected).mean() < 0.5


@pytest.mark.parametrize("side", [224, 900])  # the larger one gets its field on a coarser grid
def test_elastic_moves_pixels_as_far_as_smoothed_noise_does(side: int) -> None:
    ramp = np.repeat((np.arange(side) % 256).astype(np.uint8)[None, :, None], side, axis=0).repeat(3, axis=2)
    inside = (slice(20, -20), slice(20, 200))
    moved = corrupted("elastic_transform", 3, ramp)[inside].astype(int) - ramp[inside]
    assert abs(moved.mean()) < 0.4
    # Uniform noise in +-0.5 % of the height, smoothed by a Gaussian of 1 %, times 21.25.
    expected = 21.25 * 0.005 * side / 3**0.5 / (2 * np.pi**0.5 * 0.01 * side)
    assert moved.std() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("decay", [1.4, 2.0])
def test_fog_meets_itself_at_its_edges_and_fills_its_range(decay: float) -> None:
    cloud = draw_plasma(64, decay, RNG(0))
    assert cloud.min() == 0
    assert cloud.max() == 1
    seam, inside = np.abs(cloud[0] - cloud[-1]).mean(), np.abs(np.diff(cloud, axis=0)).mean()
    assert seam < 2 * inside


@pytest.mark.parametrize("number", range(len(FROST_LAYERS)))
def test_frost_has_the_tone_it_names(number: int) -> None:
    texture = draw_frost(number).astype(float)
    np.testing.assert_allclose(texture.mean(axis=(0, 1)), FROST_LAYERS[number].mean, atol=3)
    np.testing.assert_allclose(texture.std(axis=(0, 1)), FROST_LAYERS[number].spread, atol=4)


@pytest.mark.parametrize("kind", [DefocusBlur, MotionBlur])
def test_a_large_photo_in_bands_is_the_same_as_a_part_of_it_alone(kind: type) -> None:
    row = np.resize(photo("chelsea"), (150, 22000, 3))  # more pixels than one band holds
    whole, alone = kind(3).corrupt(row, RNG(4)), kind(3).corrupt(np.ascontiguousarray(row[:, 100:400]), RNG(4))
    np.testing.assert_array_equal(whole[:, 150:350], alone[:, 50:250])


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_pictures_of_any_shape_keep_theirs(name: str) -> None:
    edit = edit_named(name, {"severity": 5})
    for shape in ((32, 32), (33, 190), (700, 41)):
        image = RNG(0).integers(0, 256, (*shape, 3), np.uint8)
        made = edit(Picture(image, np.zeros(shape, np.uint8)), RNG(0))
        assert made.image.shape == image.shape
        assert (made.image != image).any()


def test_a_tiny_picture_says_why_it_cannot_be_used() -> None:
    tiny = Picture(np.zeros((20, 20, 3), np.uint8), np.zeros((20, 20), np.uint8))
    with pytest.raises(Unusable, match="20 x 20 pixels"):
        GlassBlur(3)(tiny, RNG(0))


def test_a_severity_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="severity: expected 1, 2, 3, 4 or 5, got 6"):
        edit_named("corruption-fog", {"severity": 6})
