"""The operations of ImageNet-C's corruptions on a layer, as data; what they draw at random is in them already.

Each follows the release; a large picture is made in bands of rows, to bound memory.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import LayerOfOne
from counterfoil.edits.corruptions.severity import Bytes, Floats, add_layer, truncate_levels, work_in_bands
from counterfoil.edits.matting import repeat_channels

COLUMNS = 64  # of an alias table: a power of two above the number of photons
FRACTION_BITS = 26


@dataclass(frozen=True, eq=False)
class PhotonCounted(LayerOfOne):
    """Every value drawn from the Poisson distribution of its brightness."""

    numbers: NDArray[np.uint32]  # (height, width, 3), uniform
    photons: int  # of a white pixel

    @property
    def levels(self) -> Bytes:
        """The level of every count."""
        return np.minimum(np.arange(COLUMNS) * 255 // self.photons, 255).astype(np.uint8)

    def draw(self) -> Bytes:
        """By alias tables."""
        table, column = tabulate_counts(self.photons), self.numbers >> FRACTION_BITS
        cell = self.of.draw().astype(np.uint32)
        cell *= COLUMNS
        cell += column
        fraction = self.numbers & (2**FRACTION_BITS - 1)
        count = np.where(fraction < table.keep.take(cell), column.astype(np.uint8), table.other.take(cell))
        return np.asarray(self.levels.take(count), np.uint8)


class AliasTables(NamedTuple):
    """Walker's alias tables of 256 distributions, flat: a draw picks a column, then it or its alias."""

    keep: NDArray[np.uint32]  # (256 * COLUMNS), threshold on FRACTION_BITS bits
    other: NDArray[np.uint8]


@lru_cache(maxsize=8)
def tabulate_counts(photons: int) -> AliasTables:
    """The Poisson distributions of the 256 levels; all counts from white upwards are one outcome."""
    rows = [_build_aliases(_poisson_chances(level / 255 * photons, photons)) for level in range(256)]
    return AliasTables(np.concatenate([row.keep for row in rows]), np.concatenate([row.other for row in rows]))


def _poisson_chances(mean: float, most: int) -> list[float]:
    chances = [math.exp(-mean) * mean**count / math.factorial(count) for count in range(most)]
    return [*chances, max(0.0, 1 - math.fsum(chances)), *[0.0] * (COLUMNS - most - 1)]


def _build_aliases(chances: list[float]) -> AliasTables:
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
    return AliasTables(keep, np.array(other, np.uint8))


@dataclass(frozen=True, eq=False)
class Struck(LayerOfOne):
    """Values set to white where a number is below a bound, to black where it is below half of it."""

    numbers: NDArray[np.uint16]  # (height, width, 3), uniform
    bound: int

    def draw(self) -> Bytes:
        """Salt and pepper."""
        spoilt = np.where(self.numbers < self.bound, np.uint8(255), self.of.draw())
        spoilt[self.numbers < self.bound // 2] = 0
        return spoilt


@dataclass(frozen=True, eq=False)
class Convolved(LayerOfOne):
    """A convolution, mirrored at the border, truncated to levels."""

    kernel: Floats  # square, odd

    def draw(self) -> Bytes:
        """In floating point."""

        def work(band: Bytes) -> Bytes:
            return truncate_levels(np.asarray(cv2.filter2D(band.astype(np.float32), -1, self.kernel), np.float32))

        return work_in_bands(self.of.draw(), len(self.kernel) // 2, work)


@dataclass(frozen=True, eq=False)
class Brightened(LayerOfOne):
    """The value of HSV raised, at the same hue and saturation."""

    added: float  # levels

    @property
    def factors(self) -> Floats:
        """For each value: at a given hue and saturation all three channels are proportional to it."""
        values = np.arange(256)
        return np.asarray(np.minimum(values + self.added, 255) / np.maximum(values, 1), np.float32)

    def draw(self) -> Bytes:
        """Black becomes grey."""
        factors = self.factors

        def work(band: Bytes) -> Bytes:
            value = np.asarray(cv2.max(cv2.max(band[..., 0], band[..., 1]), band[..., 2]), np.uint8)
            factor = np.asarray(cv2.LUT(value, factors), np.float32)
            bright = truncate_levels(np.asarray(band * repeat_channels(factor), np.float32))
            bright[value == 0] = int(self.added)
            return bright

        return work_in_bands(self.of.draw(), 0, work)


@dataclass(frozen=True, eq=False)
class Trailed(LayerOfOne):
    """A trail behind every point, the border repeated, truncated to levels."""

    radius: int
    sigma: float
    angle: float  # degrees

    def draw(self) -> Bytes:
        """The moved pictures added one after the other."""

        def work(band: Bytes) -> Bytes:
            return truncate_levels(smear(band.astype(np.float32), self.radius, self.sigma, self.angle))

        return work_in_bands(self.of.draw(), 2 * self.radius + 1, work)


def weigh_trail(radius: int, sigma: float, angle: float) -> dict[tuple[int, int], float]:
    """The weight of each step down and right: `2 * radius + 1` steps that fall off as half a Gaussian."""
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    turn = math.radians(angle)
    trail: defaultdict[tuple[int, int], float] = defaultdict(float)
    for distance, weight in enumerate(weights / weights.sum()):
        trail[_round_half_down(distance * math.sin(turn)), _round_half_down(distance * math.cos(turn))] += float(weight)
    return trail


def smear(planes: Floats, radius: int, sigma: float, angle: float) -> Floats:
    """The planes with a trail behind every point; the border is repeated."""
    reach = 2 * radius
    wide = np.asarray(cv2.copyMakeBorder(planes, reach, reach, reach, reach, cv2.BORDER_REPLICATE))
    height, width = planes.shape[:2]
    total = np.zeros_like(planes)
    for (down, right), weight in weigh_trail(radius, sigma, angle).items():
        moved = wide[reach + down : reach + down + height, reach + right : reach + right + width]
        cv2.scaleAdd(moved, weight, total, total)
    return total


def _round_half_down(value: float) -> int:
    """The nearest whole number, the lower one of two."""
    return math.ceil(value - 0.5)


@dataclass(frozen=True, eq=False)
class Veiled(LayerOfOne):
    """A layer of levels added to the picture, which is weakened or whitened before, truncated to levels."""

    veil: Floats  # (height, width), levels
    share: float  # of the picture's own levels
    whiten: bool = False  # mix the rest with the maximum of the colours and a bright grey of the same lightness

    def draw(self) -> Bytes:
        """In bands of rows."""
        return add_layer(self.of.draw(), self.veil, self._prepare)

    def _prepare(self, band: Bytes) -> Floats:
        if not self.whiten:
            return np.asarray(band * np.float32(self.share), np.float32)
        colours = band.astype(np.float32)
        bright = np.asarray(cv2.cvtColor(colours, cv2.COLOR_RGB2GRAY)) * np.float32(1.5) + np.float32(127.5)
        white = np.asarray(cv2.max(colours, repeat_channels(bright)))
        return np.asarray(cv2.addWeighted(colours, self.share, white, 1 - self.share, 0), np.float32)


@dataclass(frozen=True, eq=False)
class Blended(LayerOfOne):
    """The weighted sum with another picture, less a number of levels, rounded."""

    other: Bytes
    own_share: float
    other_share: float
    offset: float

    def draw(self) -> Bytes:
        """By `cv2.addWeighted`."""
        mixed = cv2.addWeighted(self.of.draw(), self.own_share, self.other, self.other_share, self.offset)
        return np.asarray(mixed, np.uint8)


@dataclass(frozen=True, eq=False)
class Displaced(LayerOfOne):
    """Every pixel taken from another place, mirrored at the border."""

    across: Floats  # (height, width), pixels
    down: Floats

    def draw(self) -> Bytes:
        """By `cv2.remap`, linear."""
        moved = cv2.remap(self.of.draw(), self.across, self.down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        return np.asarray(moved, np.uint8)


@dataclass(frozen=True, eq=False)
class SoftTruncated(LayerOfOne):
    """A Gaussian blur in floating point, the border repeated, truncated to levels."""

    sigma: float

    @property
    def radius(self) -> int:
        """Of the kernel."""
        return int(4 * self.sigma + 0.5)

    def draw(self) -> Bytes:
        """In bands of rows."""
        size = (2 * self.radius + 1, 2 * self.radius + 1)

        def work(band: Bytes) -> Bytes:
            soft = cv2.GaussianBlur(band.astype(np.float32), size, self.sigma, borderType=cv2.BORDER_REPLICATE)
            return truncate_levels(np.asarray(soft, np.float32))

        return work_in_bands(self.of.draw(), self.radius, work)


@dataclass(frozen=True, eq=False)
class Shuffled(LayerOfOne):
    """Every pixel taken from another one."""

    sources: NDArray[np.int32]  # (height * width), counted along the rows

    def draw(self) -> Bytes:
        """By index."""
        image = self.of.draw()
        return np.asarray(image.reshape(-1, 3)[self.sources].reshape(image.shape), np.uint8)


@dataclass(frozen=True, eq=False)
class ZoomBlurred(LayerOfOne):
    """The mean of enlargements about the middle; the picture itself counts twice, truncated to levels."""

    count: int  # of enlargements, the picture among them
    step: float  # between their factors

    def draw(self) -> Bytes:
        """Each enlargement rounded to levels."""
        image = self.of.draw()
        total = 2.0 * image.astype(np.float32)
        for number in range(1, self.count):
            cv2.accumulate(np.asarray(enlarge_middle(image, 1 + number * self.step), np.uint8), total)
        total /= np.float32(self.count + 1)
        return truncate_levels(total)


def enlarge_middle(plane: Bytes | Floats, factor: float) -> NDArray[Any]:
    """The middle of the plane enlarged by `factor` and cropped to the plane's size from the upper left."""
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    matrix = map_to_middle(plane.shape[:2], factor)
    size = plane.shape[1], plane.shape[0]
    return np.asarray(cv2.warpAffine(plane, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE))


def map_to_middle(size: tuple[int, ...], factor: float) -> NDArray[np.float64]:
    """The affine map, (2, 3), from an enlargement of the middle to the plane."""
    inner = [math.ceil(length / factor) for length in size]
    first = [(length - part) // 2 for length, part in zip(size, inner, strict=True)]
    # Corners aligned: the first and last pixels of the part become those of the result.
    steps = [(part - 1) / max(1, round(part * factor) - 1) for part in inner]
    return np.array([[steps[1], 0, first[1]], [0, steps[0], first[0]]])
