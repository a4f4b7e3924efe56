"""ImageNet-C's noise: Gaussian, shot and impulse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.corruptions.severity import Bytes, Corruption, work_in_bands

GAUSSIAN_SPREAD = (0.08, 0.12, 0.18, 0.26, 0.38)  # of the range from black to white
SHOT_PHOTONS = (60, 25, 12, 5, 3)  # photons for a white pixel
IMPULSE_SHARE = (0.03, 0.06, 0.09, 0.17, 0.27)  # of all values

COLUMNS = 64  # of an alias table: a power of two above the number of photons
FRACTION_BITS = 26


@dataclass(frozen=True)
class GaussianNoise(Corruption):
    """Add noise from a normal distribution, as a sensor does in low light."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The picture with normal noise added to every value."""
        spread = np.float32(255 * GAUSSIAN_SPREAD[self.severity - 1])

        def work(band: Bytes) -> Bytes:
            noise = rng.standard_normal(band.shape, np.float32)
            noise *= spread
            noise -= np.float32(0.5)  # OpenCV rounds, the release truncates
            return np.asarray(cv2.add(band, noise, dtype=cv2.CV_8U), np.uint8)

        return work_in_bands(image, 0, work)


@dataclass(frozen=True)
class ShotNoise(Corruption):
    """Count photons: every value is a draw from the Poisson distribution of its brightness."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The picture made of the counts."""
        photons = SHOT_PHOTONS[self.severity - 1]
        table = _tabulate_counts(photons)
        levels = np.minimum(np.arange(COLUMNS) * 255 // photons, 255).astype(np.uint8)

        def work(band: Bytes) -> Bytes:
            draw = rng.integers(0, 2**32, band.shape, np.uint32)
            column = draw >> FRACTION_BITS
            cell = band.astype(np.uint32)
            cell *= COLUMNS
            cell += column
            draw &= 2**FRACTION_BITS - 1
            count = np.where(draw < table.keep.take(cell), column.astype(np.uint8), table.other.take(cell))
            return levels.take(count)

        return work_in_bands(image, 0, work)


class _Aliases(NamedTuple):
    """Walker's alias tables of 256 distributions, flat: a draw picks a column, then it or its alias."""

    keep: NDArray[np.uint32]  # (256 * COLUMNS), threshold on FRACTION_BITS bits
    other: NDArray[np.uint8]


@lru_cache(maxsize=len(SHOT_PHOTONS))
def _tabulate_counts(photons: int) -> _Aliases:
    """The Poisson distributions of the 256 levels; all counts from white upwards are one outcome."""
    rows = [_build_aliases(_poisson_chances(level / 255 * photons, photons)) for level in range(256)]
    return _Aliases(np.concatenate([row.keep for row in rows]), np.concatenate([row.other for row in rows]))


def _poisson_chances(mean: float, most: int) -> list[float]:
    chances = [math.exp(-mean) * mean**count / math.factorial(count) for count in range(most)]
    return [*chances, max(0.0, 1 - math.fsum(chances)), *[0.0] * (COLUMNS - most - 1)]


def _build_aliases(chances: list[float]) -> _Aliases:
    """Columns of equal height: each holds its own outcome up to `keep` and one other above it."""
    height = [chance * COLUMNS for chance in chances]
    other = list(range(COLUMNS))
    low = [column for column in other if height[column] < 1]
    high = [column for column in other if height[column] >= 1]
    while low and high:
        small, large = low.pop(), high[-1]
        other[small] = large
        height[large] -= 1 - height[small]
        if height[large] < 1:
            low.append(high.pop())
    for column in (*low, *high):  # left over by rounding: these columns are full
        other[column] = column
    keep = np.rint(np.clip(height, 0, 1) * 2**FRACTION_BITS).astype(np.uint32)
    return _Aliases(keep, np.array(other, np.uint8))


@dataclass(frozen=True)
class ImpulseNoise(Corruption):
    """Set some values to black or white, as broken pixels are."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The picture with salt and pepper."""
        struck = round(IMPULSE_SHARE[self.severity - 1] * 2**16)

        def work(band: Bytes) -> Bytes:
            draw = rng.integers(0, 2**16, band.shape, np.uint16)
            spoilt = np.where(draw < struck, np.uint8(255), band)
            spoilt[draw < struck // 2] = 0
            return spoilt

        return work_in_bands(image, 0, work)
