"""ImageNet-C's blurs: defocus, glass, motion and zoom."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.corruptions.severity import Bytes, Corruption, Floats, truncate_levels, work_in_bands

DEFOCUS = ((3, 3, 0.1), (4, 3, 0.5), (6, 3, 0.5), (8, 3, 0.5), (10, 5, 0.5))  # radius; softening: kernel and sigma
GLASS = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))  # sigma, farthest step, rounds
MOTION = ((10, 3.0), (15, 5.0), (15, 8.0), (15, 12.0), (20, 15.0))  # half length and sigma of the one-sided trail
MOST_DEGREES = 45.0
ZOOMS = ((12, 0.01), (16, 0.01), (11, 0.02), (13, 0.02), (11, 0.03))  # number of zooms, step between their factors


@dataclass(frozen=True)
class DefocusBlur(Corruption):
    """Blur by a disc, as a lens out of focus does."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The picture convolved with the disc."""
        radius, size, sigma = DEFOCUS[self.severity - 1]
        # The release blurs the disc inside a window of this size; a disc that touches its edge loses a little weight.
        reach = min(radius + 2 * (size // 2), max(8, radius))
        offsets = np.arange(-reach, reach + 1)
        disc = (offsets[:, None] ** 2 + offsets**2 <= radius**2).astype(np.float32)
        kernel = np.asarray(cv2.GaussianBlur(disc / disc.sum(), (size, size), sigma))

        def work(band: Bytes) -> Bytes:
            return truncate_levels(np.asarray(cv2.filter2D(band.astype(np.float32), -1, kernel), np.float32))

        return work_in_bands(image, reach, work)


@dataclass(frozen=True)
class GlassBlur(Corruption):
    """Move pixels to and fro at random between two blurs, as frosted glass does."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The picture with its pixels shuffled between two blurs."""
        sigma, step, rounds = GLASS[self.severity - 1]
        image = _blur_gaussian(image, sigma)
        for _ in range(rounds):
            down, right = rng.integers(-step, step, (2, *image.shape[:2]), np.int8)
            image = image.reshape(-1, 3)[shuffle_sources(down, right, step)].reshape(image.shape)
        return _blur_gaussian(image, sigma)


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


def _blur_gaussian(image: Bytes, sigma: float) -> Bytes:
    radius = int(4 * sigma + 0.5)
    size = (2 * radius + 1, 2 * radius + 1)

    def work(band: Bytes) -> Bytes:
        soft = cv2.GaussianBlur(band.astype(np.float32), size, sigma, borderType=cv2.BORDER_REPLICATE)
        return truncate_levels(np.asarray(soft, np.float32))

    return work_in_bands(image, radius, work)


@dataclass(frozen=True)
class MotionBlur(Corruption):
    """Smear the picture along a line, at most 45 degrees from level, as a moving camera does."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The picture with a trail behind every point."""
        radius, sigma = MOTION[self.severity - 1]
        angle = float(rng.uniform(-MOST_DEGREES, MOST_DEGREES))
        halo = 2 * radius + 1
        return work_in_bands(
            image, halo, lambda band: truncate_levels(smear(band.astype(np.float32), radius, sigma, angle))
        )


def smear(planes: Floats, radius: int, sigma: float, angle: float) -> Floats:
    """A trail of `2 * radius + 1` steps whose weights fall off as half a Gaussian; the border is repeated."""
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    turn = math.radians(angle)
    trail: defaultdict[tuple[int, int], float] = defaultdict(float)
    for distance, weight in enumerate(weights / weights.sum()):
        trail[_round_half_down(distance * math.sin(turn)), _round_half_down(distance * math.cos(turn))] += float(weight)
    reach = 2 * radius
    wide = np.asarray(cv2.copyMakeBorder(planes, reach, reach, reach, reach, cv2.BORDER_REPLICATE))
    height, width = planes.shape[:2]
    total = np.zeros_like(planes)
    for (down, right), weight in trail.items():
        moved = wide[reach + down : reach + down + height, reach + right : reach + right + width]
        cv2.scaleAdd(moved, weight, total, total)
    return total


def _round_half_down(value: float) -> int:
    """The nearest whole number, the lower one of two."""
    return math.ceil(value - 0.5)


@dataclass(frozen=True)
class ZoomBlur(Corruption):
    """Average the picture with enlargements of itself, as zooming during exposure does."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The mean of all zooms; the picture itself counts twice, as in the release."""
        count, step = ZOOMS[self.severity - 1]
        total = 2.0 * image.astype(np.float32)
        for i in range(1, count):
            cv2.accumulate(np.asarray(enlarge_middle(image, 1 + i * step), np.uint8), total)
        total /= np.float32(count + 1)
        return truncate_levels(total)


def enlarge_middle(plane: Bytes | Floats, factor: float) -> NDArray[Any]:
    """The middle of the plane enlarged by `factor` and cropped to the plane's size from the upper left."""
    size = plane.shape[:2]
    inner = [math.ceil(length / factor) for length in size]
    first = [(length - part) // 2 for length, part in zip(size, inner, strict=True)]
    # Corners aligned: the first and last pixels of the part become those of the result.
    steps = [(part - 1) / max(1, round(part * factor) - 1) for part in inner]
    matrix = np.array([[steps[1], 0, first[1]], [0, steps[0], first[0]]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(plane, matrix, size[::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE))
