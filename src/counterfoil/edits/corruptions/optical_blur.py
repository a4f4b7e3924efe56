"""ImageNet-C's blurs: defocus, glass, motion and zoom."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import PictureLayer, Plane
from counterfoil.edits.corruptions.corruption_layers import Convolved, Shuffled, SoftTruncated, Trailed, ZoomBlurred
from counterfoil.edits.corruptions.severity import ComposedCorruption

DEFOCUS = ((3, 3, 0.1), (4, 3, 0.5), (6, 3, 0.5), (8, 3, 0.5), (10, 5, 0.5))  # radius; softening: kernel and sigma
GLASS = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))  # sigma, farthest step, rounds
MOTION = ((10, 3.0), (15, 5.0), (15, 8.0), (15, 12.0), (20, 15.0))  # half length and sigma of the one-sided trail
MOST_DEGREES = 45.0
ZOOMS = ((12, 0.01), (16, 0.01), (11, 0.02), (13, 0.02), (11, 0.03))  # number of zooms, step between their factors


@dataclass(frozen=True)
class DefocusBlur(ComposedCorruption):
    """Blur by a disc, as a lens out of focus does."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture convolved with the disc."""
        radius, size, sigma = DEFOCUS[self.severity - 1]
        # The release blurs the disc inside a window of this size; a disc that touches its edge loses a little weight.
        reach = min(radius + 2 * (size // 2), max(8, radius))
        offsets = np.arange(-reach, reach + 1)
        disc = (offsets[:, None] ** 2 + offsets**2 <= radius**2).astype(np.float32)
        kernel = np.asarray(cv2.GaussianBlur(disc / disc.sum(), (size, size), sigma))
        return Convolved(image, np.asarray(kernel, np.float32))


@dataclass(frozen=True)
class GlassBlur(ComposedCorruption):
    """Move pixels to and fro at random between two blurs, as frosted glass does."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture with its pixels shuffled between two blurs."""
        sigma, step, rounds = GLASS[self.severity - 1]
        layer: PictureLayer = SoftTruncated(image, sigma)
        for _ in range(rounds):
            down, right = rng.integers(-step, step, (2, *image.shape), np.int8)
            layer = Shuffled(layer, shuffle_sources(down, right, step))
        return SoftTruncated(layer, sigma)


def shuffle_sources(down: NDArray[np.int8], right: NDArray[np.int8], step: int) -> NDArray[np.int32]:
    """The source of each pixel's colour when, from the last pixel to the first, each takes that of another.

    The release swaps views of one array, so that only a copy remains. Pixels later in the picture were changed before,
    so their colour comes from yet another pixel.
    """
    height, width = down.shape
    here = np.arange(height * width, dtype=np.int32).reshape(height, width)
    taken = here.copy()
    inner = (slice(step + 1, height - step + 1), slice(step + 1, width - step + 1))
    taken[inner] += down[inner] * np.int32(width) + right[inner]
    # Follow the chain of sources; about half of the pixels are left in each round.
    asking = np.flatnonzero(taken > here)
    given = taken.ravel()
    source = given.copy()
    while asking.size:
        asked = source[asking]
        source[asking] = given[asked]
        asking = asking[given[asked] > asked]
    return np.asarray(source, np.int32)


@dataclass(frozen=True)
class MotionBlur(ComposedCorruption):
    """Smear the picture along a line, at most 45 degrees from level, as a moving camera does."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The picture with a trail behind every point."""
        radius, sigma = MOTION[self.severity - 1]
        angle = float(rng.uniform(-MOST_DEGREES, MOST_DEGREES))
        return Trailed(image, radius, sigma, angle)


@dataclass(frozen=True)
class ZoomBlur(ComposedCorruption):
    """Average the picture with enlargements of itself, as zooming during exposure does."""

    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The mean of all zooms; the picture itself counts twice, as in the release."""
        count, step = ZOOMS[self.severity - 1]
        return ZoomBlurred(image, count, step)
