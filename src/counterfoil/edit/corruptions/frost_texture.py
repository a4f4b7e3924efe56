"""Frosted panes drawn by rule: shards and needles of ice on a cloudy ground; no photo is needed."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE = 640  # pixels of a pane; larger pictures get it enlarged
SUBPIXEL_BITS = 4

Floats = NDArray[np.float32]
Reals = NDArray[np.float64]


class Pane(NamedTuple):
    """How one pane looks; the means and spreads are those of the frost in ImageNet-C's pictures."""

    mean: tuple[int, int, int]  # red, green, blue
    spread: tuple[int, int, int]
    crystals: int  # how many
    length: float  # of the longest, in pixels
    width: float  # of a shard at its foot, as a share of its length
    cloud: float  # weight of the cloudy ground


PANES = (
    Pane((78, 149, 166), (27, 16, 15), 2500, 60, 0.10, 3.0),
    Pane((201, 205, 214), (21, 22, 23), 9000, 70, 0.22, 0.7),
    Pane((201, 205, 214), (21, 22, 23), 6000, 100, 0.16, 0.7),
    Pane((138, 153, 165), (28, 28, 30), 12000, 36, 0.40, 0.5),
    Pane((112, 123, 135), (44, 43, 42), 5000, 80, 0.08, 0.9),
)


@lru_cache(maxsize=len(PANES))
def pane(number: int) -> NDArray[np.uint8]:
    """The pane, (SIDE, SIDE, 3), the same one every time."""
    about = PANES[number]
    rng = np.random.default_rng(number)
    ice = _crystals(about, rng)
    tone = _scaled(_scaled(ice) + np.float32(about.cloud) * _scaled(_cloud(rng)))
    # A second, weaker cloud per channel: thick ice is whiter than thin.
    tints = np.dstack([_scaled(tone + np.float32(0.05) * _scaled(_cloud(rng))) for _ in range(3)])
    colours = tints * np.array(about.spread, np.float32) + np.array(about.mean, np.float32)
    texture = np.asarray(np.clip(np.rint(colours), 0, 255), np.uint8)
    texture.flags.writeable = False
    return texture


def _crystals(about: Pane, rng: np.random.Generator) -> Floats:
    """Tapering shards, later ones over earlier ones, each with a bright ridge; they lean with their surroundings."""
    count = about.crystals
    feet = rng.uniform(-20, SIDE + 20, (count, 2))
    columns, rows = np.clip(feet, 0, SIDE - 1).astype(int).T
    lean = _scaled(_cloud(rng))[rows, columns] * 1.5
    angles = lean + rng.normal(0, 0.5, count) + rng.integers(0, 3, count) * np.pi / 3  # ice grows in six directions
    lengths = about.length * rng.uniform(0.15, 1, count) ** 2
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1) * lengths[:, None]
    aside = along[:, ::-1] * (-about.width / 2, about.width / 2)
    shards = np.stack([feet + aside, feet + along, feet - aside, feet], axis=1)
    grays = np.clip(rng.normal(120, 45, count), 10, 250)
    canvas = np.full((SIDE, SIDE), 110, np.uint8)
    _draw(canvas, np.rint(shards * 2**SUBPIXEL_BITS).astype(np.int32), grays, grays + rng.uniform(20, 90, count))
    grain = rng.standard_normal(canvas.shape, np.float32) * np.float32(18)
    return np.asarray(cv2.GaussianBlur(canvas, (0, 0), 0.45) + grain, np.float32)


def _draw(canvas: NDArray[np.uint8], shards: NDArray[np.int32], grays: Reals, ridges: Reals) -> None:
    """Each shard given by two corners with its tip between, then its foot."""
    for corners, gray, ridge in zip(shards, grays.tolist(), ridges.tolist(), strict=True):
        cv2.fillConvexPoly(canvas, corners[:3], gray, cv2.LINE_AA, SUBPIXEL_BITS)
        cv2.line(canvas, corners[3].tolist(), corners[1].tolist(), min(ridge, 255.0), 1, cv2.LINE_AA, SUBPIXEL_BITS)


def _cloud(rng: np.random.Generator) -> Floats:
    """Noise of all sizes, the coarse ones strongest."""
    total = np.zeros((SIDE, SIDE), np.float32)
    for power in range(2, 8):
        noise = rng.standard_normal((2**power, 2**power), np.float32)
        total += np.asarray(cv2.resize(noise, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)) / 2**power
    return total


def _scaled(plane: Floats) -> Floats:
    """The plane at mean 0 and spread 1."""
    return np.asarray((plane - plane.mean()) / max(float(plane.std()), 1e-6), np.float32)
