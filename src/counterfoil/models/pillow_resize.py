"""Pillow's resize of the part that a crop keeps: the same levels, in less time.

Pillow resizes pictures of 8 bits in two passes, first across (unless much height is lost, see below). A pass weighs
levels by whole numbers of 2^-22 and rounds each sum to a level, a half upwards. In f64 such sums are exact in any
order, so products of matrices give the same levels, and only those that the crop keeps are computed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Interpolation: TypeAlias = Literal["bilinear", "bicubic", "lanczos"]

_FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_REACH = {"bilinear": 1, "bicubic": 2, "lanczos": 3}  # pixels to each side, where a picture is not reduced
_WEIGHT_STEPS = 2.0**22
_HALF_UP = 2.0**-24  # less than a step: OpenCV rounds a half to the even level, and this moves halves alone
_BLOCK = 8  # rows of a product: more multiply more zeros, fewer are more calls
_TRIALS = 24
_BAND = 512  # rows that are resized across at a time, which bounds memory


class ResizedCrop(NamedTuple):
    """The size of the whole resized picture, and the part of it that is kept."""

    width: int
    height: int
    left: int
    top: int
    columns: int
    rows: int


def resize_cropped(image: Bytes, kept: ResizedCrop, interpolation: Interpolation) -> Bytes:
    """The kept part of the resized picture, (rows, columns, 3), bit for bit as Pillow gives it.

    >>> photo = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    >>> resize_cropped(photo, ResizedCrop(width=2, height=2, left=1, top=0, columns=1, rows=2), "bilinear").tolist()
    [[[14, 15, 16]], [[34, 35, 36]]]
    """
    if _is_across_first(image, kept) and _agrees_with_pillow(interpolation):
        return _resize_by_products(image, kept, interpolation)
    return _resize_by_pillow(image, kept, interpolation)


def _is_across_first(image: Bytes, kept: ResizedCrop) -> bool:
    """Whether every Pillow resizes across first: from 13 on, a picture that loses much height goes down first."""
    lost_rows: int = image.shape[0] - kept.height
    lost_columns: int = image.shape[1] - kept.width
    return lost_rows <= max(0, 2 * lost_columns)


@lru_cache(maxsize=len(_FILTERS))
def _agrees_with_pillow(interpolation: Interpolation) -> bool:
    """Whether the Pillow that is installed resizes as described above, tried on small pictures of many shapes."""
    rng = np.random.default_rng(22)
    halved = (32, 48, 16, 24)  # many sums end in a half
    for height, width, rows, columns in [halved, *rng.integers(4, 48, (_TRIALS, 4)).tolist()]:
        noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        kept = ResizedCrop(columns, rows, columns // 4, rows // 3, columns // 2, rows // 2)
        if _is_across_first(noise, kept):
            ours, theirs = (make(noise, kept, interpolation) for make in (_resize_by_products, _resize_by_pillow))
            if not np.array_equal(ours, theirs):
                return False
    return True


def _resize_by_pillow(image: Bytes, kept: ResizedCrop, interpolation: Interpolation) -> Bytes:
    resized = np.asarray(Image.fromarray(image).resize((kept.width, kept.height), _FILTERS[interpolation]))
    return resized[kept.top : kept.top + kept.rows, kept.left : kept.left + kept.columns]


def _resize_by_products(image: Bytes, kept: ResizedCrop, interpolation: Interpolation) -> Bytes:
    across = _plan_side(image.shape[1], kept.width, kept.left, kept.columns, interpolation)
    down = _plan_side(image.shape[0], kept.height, kept.top, kept.rows, interpolation)
    narrow = np.empty((down.last - down.first, kept.columns, 3), np.uint8)
    for start in range(0, len(narrow), _BAND):
        part = narrow[start : start + _BAND]
        top = down.first + start
        turned = cv2.transpose(image[top : top + len(part), across.first : across.last])  # (columns, rows, 3)
        cv2.transpose(_resize_down(np.asarray(turned, np.uint8), across), dst=part)
    return _resize_down(narrow, down)


def _resize_down(levels: Bytes, side: _Side) -> Bytes:
    """The levels, (side's inputs, columns, 3), resized along the first axis."""
    flat = levels.reshape(len(levels), -1)
    resized = np.empty((side.outputs, flat.shape[1]), np.uint8)
    inputs, sums = np.empty((side.longest, flat.shape[1])), np.empty((_BLOCK, flat.shape[1]))  # stay in the cache
    for block in side.blocks:
        taken, made = inputs[: block.weights.shape[1]], sums[: len(block.weights)]
        np.copyto(taken, flat[block.first : block.first + len(taken)])
        np.matmul(block.weights, taken, out=made)
        levels_made = resized[block.output : block.output + len(made)]
        cv2.add(made, _HALF_UP, dst=levels_made, dtype=cv2.CV_8U)  # type: ignore[call-overload]
    return resized.reshape(side.outputs, *levels.shape[1:])


class _Block(NamedTuple):
    """A few neighbouring rows of the result, from the rows of the picture that they rest on."""

    output: int  # the first row of the result
    first: int  # the first row that it rests on, counted from the side's
    weights: Floats  # (rows of the result, rows that they rest on)


class _Side(NamedTuple):
    """How one side of a picture is resized, as far as the crop keeps it."""

    first: int  # the first row of the picture that matters, and the first one after
    last: int
    blocks: tuple[_Block, ...]

    @property
    def outputs(self) -> int:
        """The rows of the result."""
        return self.blocks[-1].output + len(self.blocks[-1].weights)

    @property
    def longest(self) -> int:
        """The most rows that a block rests on."""
        return max(int(block.weights.shape[1]) for block in self.blocks)


@lru_cache(maxsize=64)
def _plan_side(length: int, resized: int, skipped: int, kept: int, interpolation: Interpolation) -> _Side:
    scale = length / resized
    stretch = max(scale, 1.0)  # of the filter, so that a reduced picture has no aliasing
    reach = _REACH[interpolation] * stretch
    centres = (np.arange(skipped, skipped + kept) + 0.5) * scale
    starts = np.maximum((centres - reach + 0.5).astype(np.intp), 0)
    stops = np.minimum((centres + reach + 0.5).astype(np.intp), length)
    places = starts[:, None] + np.arange((stops - starts).max())  # (kept, taps)
    weights = _weigh((places - centres[:, None] + 0.5) * (1 / stretch), interpolation)
    weights[places >= stops[:, None]] = 0
    weights /= np.add.accumulate(weights, axis=1)[:, -1:]  # added one after the other, as Pillow does
    weights = np.trunc(weights * _WEIGHT_STEPS + np.copysign(0.5, weights)) / _WEIGHT_STEPS
    origin = int(starts[0])
    blocks = tuple(_make_block(block, starts - origin, stops - origin, weights) for block in range(0, kept, _BLOCK))
    return _Side(origin, int(stops[-1]), blocks)


def weigh_side(length: int, resized: int, skipped: int, kept: int, interpolation: Interpolation) -> Floats:
    """The weights of a side's pixels in those that are kept of the resized side, (kept, length)."""
    side = _plan_side(length, resized, skipped, kept, interpolation)
    matrix = np.zeros((side.outputs, length))
    for block in side.blocks:
        first, (rows, inputs) = side.first + block.first, block.weights.shape
        matrix[block.output : block.output + rows, first : first + inputs] = block.weights
    return matrix


def _make_block(output: int, starts: NDArray[np.intp], stops: NDArray[np.intp], weights: Floats) -> _Block:
    rows = slice(output, output + _BLOCK)
    first = int(starts[output])
    dense = np.zeros((len(starts[rows]), int(stops[rows][-1]) - first))
    for row, start, stop, taps in zip(dense, starts[rows] - first, stops[rows] - first, weights[rows], strict=True):
        row[start:stop] = taps[: stop - start]
    return _Block(output, first, dense)


def _weigh(distances: Floats, interpolation: Interpolation) -> Floats:
    """The filter's weight at distances in pixels of the result, or of the picture where it is enlarged."""
    away = np.abs(distances)
    if interpolation == "bilinear":
        return np.asarray(np.maximum(1 - away, 0))
    if interpolation == "lanczos":
        return np.asarray(np.where(away < 3, np.sinc(away) * np.sinc(away / 3), 0))
    near = (1.5 * away - 2.5) * away * away + 1  # Keys' cubic with a = -1/2
    far = -0.5 * (((away - 5) * away + 8) * away - 4)
    return np.asarray(np.where(away < 1, near, np.where(away < 2, far, 0)))
