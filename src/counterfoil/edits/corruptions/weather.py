"""ImageNet-C's weather: snow, frost (drawn, not photographed) and fog."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import PictureLayer, Plane
from counterfoil.edits.corruptions.corruption_layers import Blended, Veiled, enlarge_middle, smear
from counterfoil.edits.corruptions.severity import ComposedCorruption

SIDE = 640  # pixels of a layer of frost; larger pictures get it enlarged
SUBPIXEL_BITS = 4

Floats = NDArray[np.float32]
Reals = NDArray[np.float64]


class FrostLayer(NamedTuple):
    """The look of one layer of frost; means and spreads are those of the frost in ImageNet-C's pictures."""

    mean: tuple[int, int, int]  # red, green, blue
    spread: tuple[int, int, int]
    crystals: int  # number of shards
    length: float  # of the longest, in pixels
    width: float  # of a shard at its foot, as a share of its length
    cloud: float  # weight of the cloudy background


FROST_LAYERS = (
    FrostLayer((78, 149, 166), (27, 16, 15), 2500, 60, 0.10, 3.0),
    FrostLayer((201, 205, 214), (21, 22, 23), 9000, 70, 0.22, 0.7),
    FrostLayer((201, 205, 214), (21, 22, 23), 6000, 100, 0.16, 0.7),
    FrostLayer((138, 153, 165), (28, 28, 30), 12000, 36, 0.40, 0.5),
    FrostLayer((112, 123, 135), (44, 43, 42), 5000, 80, 0.08, 0.9),
)


@lru_cache(maxsize=len(FROST_LAYERS))
def draw_frost(number: int) -> NDArray[np.uint8]:
    """The layer of this number, (SIDE, SIDE, 3); deterministic."""
    about = FROST_LAYERS[number]
    rng = np.random.default_rng(number)
    ice = _draw_crystals(about, rng)
    tone = _standardise(_standardise(ice) + np.float32(about.cloud) * _standardise(_draw_cloud(rng)))
    # A second, weaker cloud per channel: thick ice is whiter than thin.
    tints = np.dstack([_standardise(tone + np.float32(0.05) * _standardise(_draw_cloud(rng))) for _ in range(3)])
    colours = tints * np.array(about.spread, np.float32) + np.array(about.mean, np.float32)
    texture = np.asarray(np.clip(np.rint(colours), 0, 255), np.uint8)
    texture.flags.writeable = False
    return texture


def _draw_crystals(about: FrostLayer, rng: np.random.Generator) -> Floats:
    """Tapering shards, later ones over earlier ones, each with a bright ridge."""
    count = about.crystals
    feet = rng.uniform(-20, SIDE + 20, (count, 2))
    columns, rows = np.clip(feet, 0, SIDE - 1).astype(int).T
    lean = _standardise(_draw_cloud(rng))[rows, columns] * 1.5
    angles = lean + rng.normal(0, 0.5, count) + rng.integers(0, 3, count) * np.pi / 3  # ice grows in six directions
    lengths = about.length * rng.uniform(0.15, 1, count) ** 2
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1) * lengths[:, None]
    aside = along[:, ::-1] * (-about.width / 2, about.width / 2)
    shards = np.stack([feet + aside, feet + along, feet - aside, feet], axis=1)
    grays = np.clip(rng.normal(120, 45, count), 10, 250)
    canvas = np.full((SIDE, SIDE), 110, np.uint8)
    _draw_shards(canvas, np.rint(shards * 2**SUBPIXEL_BITS).astype(np.int32), grays, grays + rng.uniform(20, 90, count))
    grain = rng.standard_normal(canvas.shape, np.float32) * np.float32(18)
    return np.asarray(cv2.GaussianBlur(canvas, (0, 0), 0.45) + grain, np.float32)


def _draw_shards(canvas: NDArray[np.uint8], shards: NDArray[np.int32], grays: Reals, ridges: Reals) -> None:
    """Draw each shard from its two corners, its tip and its foot."""
    for corners, gray, ridge in zip(shards, grays.tolist(), ridges.tolist(), strict=True):
        cv2.fillConvexPoly(canvas, corners[:3], gray, cv2.LINE_AA, SUBPIXEL_BITS)
        cv2.line(canvas, corners[3].tolist(), corners[1].tolist(), min(ridge, 255.0), 1, cv2.LINE_AA, SUBPIXEL_BITS)


def _draw_cloud(rng: np.random.Generator) -> Floats:
    """Noise at all scales, the coarsest strongest."""
    total = np.zeros((SIDE, SIDE), np.float32)
    for power in range(2, 8):
        noise = rng.standard_normal((2**power, 2**power), np.float32)
        total += np.asarray(cv2.resize(noise, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)) / 2**power
    return total


def _standardise(plane: Floats) -> Floats:
    """The plane with mean 0 and standard deviation 1."""
    return np.asarray((plane - plane.mean()) / max(float(plane.std()), 1e-6), np.float32)


FROST = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))  # shares of picture and frost
FOG = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))  # thickness, decay of the fog's detail
FINEST_FOG = 1024  # pixels; finer detail is below one level, and a larger map takes more memory
STEEPEST = (-135.0, -45.0)  # degrees of falling snow


class _Snowfall(NamedTuple):
    mean: float
    spread: float
    flake: float  # times the size of a pixel
    threshold: float  # values below it stay clear
    radius: int  # half length of the trail
    sigma: float
    kept: float  # share of the picture's own colours


SNOW = (
    _Snowfall(mean=0.1, spread=0.3, flake=3, threshold=0.5, radius=10, sigma=4, kept=0.8),
    _Snowfall(mean=0.2, spread=0.3, flake=2, threshold=0.5, radius=12, sigma=4, kept=0.7),
    _Snowfall(mean=0.55, spread=0.3, flake=4, threshold=0.9, radius=12, sigma=8, kept=0.7),
    _Snowfall(mean=0.55, spread=0.3, flake=4.5, threshold=0.85, radius=12, sigma=8, kept=0.65),
    _Snowfall(mean=0.55, spread=0.3, flake=2.5, threshold=0.85, radius=12, sigma=12, kept=0.55),
)


@dataclass(frozen=True)
class Snow(ComposedCorruption):
    """Let streaks of snow fall before a whitened scene."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The whitened picture plus flakes, and the same flakes turned half round."""
        about = SNOW[self.severity - 1]
        flakes = _draw_flakes(image.shape, about, rng)
        return Veiled(image, np.asarray(flakes + flakes[::-1, ::-1], np.float32), about.kept, whiten=True)


def _draw_flakes(shape: tuple[int, int], about: _Snowfall, rng: np.random.Generator) -> Floats:
    """Flakes in levels 0..255, (height, width)."""
    # Noise is drawn only for the middle, which is all that is shown enlarged.
    layer = np.zeros(shape, np.float32)
    inner = [slice(*_middle_slice(length, about.flake)) for length in shape]
    size = (inner[0].stop - inner[0].start, inner[1].stop - inner[1].start)
    layer[inner[0], inner[1]] = rng.standard_normal(size, np.float32) * np.float32(about.spread)
    layer[inner[0], inner[1]] += np.float32(about.mean)
    layer = np.asarray(enlarge_middle(layer, about.flake), np.float32)
    layer = np.where(layer < about.threshold, np.float32(0), np.minimum(layer, np.float32(1)))
    angle = float(rng.uniform(*STEEPEST))
    return np.asarray(np.rint(smear(layer, about.radius, about.sigma, angle) * np.float32(255)), np.float32)


def _middle_slice(length: int, factor: float) -> tuple[int, int]:
    part = -int(-length // factor)
    first = (length - part) // 2
    return first, first + part


@dataclass(frozen=True)
class Frost(ComposedCorruption):
    """Lay frost over the picture; ours is drawn, not photographed."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture blended with a random part of one of five layers of frost."""
        own, frost = FROST[self.severity - 1]
        texture = draw_frost(int(rng.integers(len(FROST_LAYERS))))
        height, width = image.shape
        scale = max(1.0, height / texture.shape[0], width / texture.shape[1])
        if scale > 1:
            size = (round(texture.shape[1] * scale), round(texture.shape[0] * scale))
            texture = np.asarray(cv2.resize(texture, size, interpolation=cv2.INTER_CUBIC), np.uint8)
        top = int(rng.integers(texture.shape[0] - height + 1))
        left = int(rng.integers(texture.shape[1] - width + 1))
        part = texture[top : top + height, left : left + width]
        return Blended(image, part, own, frost, -0.5)


@dataclass(frozen=True)
class Fog(ComposedCorruption):
    """Lay fog of uneven thickness over the picture and stretch the range to what it was."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture plus fog, scaled down again."""
        thickness, decay = FOG[self.severity - 1]
        height, width = image.shape
        side = 1 << (max(height, width, 3) - 1).bit_length()
        fog = draw_plasma(min(side, FINEST_FOG), decay, rng)
        if side > FINEST_FOG:
            fog = np.asarray(cv2.resize(fog, (side, side), interpolation=cv2.INTER_LINEAR), np.float32)
        brightest = max(int(image.pixels.max()), 1) / 255
        share = brightest / (brightest + thickness)
        layer = fog[:height, :width] * np.float32(255 * thickness * share)
        return Veiled(image, layer, share)


def draw_plasma(side: int, decay: float, rng: np.random.Generator) -> Floats:
    """A seamless cloud from 0 to 1: squares halved repeatedly, with less noise each time (diamond-square)."""
    cloud = np.zeros((1, 1), np.float32)
    noise = 100.0
    while len(cloud) < side:
        cloud = _refine(cloud, noise * noise, rng)
        noise /= decay
    cloud -= cloud.min()
    return cloud / max(float(cloud.max()), 1e-6)


def _refine(corners: Floats, noise: float, rng: np.random.Generator) -> Floats:
    """Twice as many points each way: middles from four corners, then edges from two corners and two middles."""
    count = len(corners)
    wobble = rng.random((3, count, count), np.float32) * np.float32(2 * noise) - np.float32(noise)
    pairs = corners + np.roll(corners, -1, axis=1)
    middles = (pairs + np.roll(pairs, -1, axis=0)) / 4 + wobble[0]
    finer = np.empty((2 * count, 2 * count), np.float32)
    finer[::2, ::2], finer[1::2, 1::2] = corners, middles
    finer[::2, 1::2] = (pairs + middles + np.roll(middles, 1, axis=0)) / 4 + wobble[1]
    upright = corners + np.roll(corners, -1, axis=0)
    finer[1::2, ::2] = (upright + middles + np.roll(middles, 1, axis=1)) / 4 + wobble[2]
    return finer
