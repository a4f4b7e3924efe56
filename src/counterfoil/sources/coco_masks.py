"""COCO's masks: polygons and run lengths drawn as masks, and masks written as run lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.object_mask import hard_object

Mask: TypeAlias = NDArray[np.uint8]  # (height, width), 255 on the object

_FINER = 8  # polygons are filled on a grid this much finer; a pixel counts where most of it is inside
_COARSER = 2  # the same for pictures beyond this many pixels, to save memory
_MANY_PIXELS = 2_000_000
_INSIDE = 0.55  # of a pixel; more than half because OpenCV fills the border line too
_CHARACTER_ZERO = 48


def draw_polygons(polygons: Sequence[Sequence[float]], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The mask, (height, width), 255 inside any of the polygons, each x, y, x, y ... in pixels."""
    height, width = size
    finer = _FINER if height * width <= _MANY_PIXELS else _COARSER
    fine = np.zeros((height * finer, width * finer), np.uint8)
    for polygon in polygons:
        if len(polygon) < 6 or len(polygon) % 2:
            raise Unusable(f"a polygon has {len(polygon)} coordinates, which are no three points")
        points = np.asarray(polygon, np.float64).reshape(-1, 2)
        if not np.isfinite(points).all():
            raise Unusable("a polygon has a point that is not finite")
        near = points.clip(-(2.0**40), 2.0**40)  # so that no product overflows
        scaled = np.rint(near * finer - 0.5).clip(-(2**20), 2**20)  # first: large values overflow as integers
        cv2.fillPoly(fine, [scaled.astype(np.int32)], 1)
    inside = fine.reshape(height, finer, width, finer).sum(axis=(1, 3), dtype=np.int32)
    return np.where(inside >= _INSIDE * finer * finer, 255, 0).astype(np.uint8)


def decode_run_lengths(encoded: Mapping[str, Any], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The mask of COCO's run lengths: column by column, background first; a text holds packed numbers."""
    numbers = _read_counts(encoded)
    height, width = size
    if list(encoded.get("size", size)) != [height, width] or sum(numbers) != height * width:
        raise Unusable(f"the run lengths do not fill {width} x {height} pixels")
    values = np.resize(np.array([0, 255], np.uint8), len(numbers))
    return np.asarray(np.repeat(values, numbers).reshape(width, height).T.copy(), np.uint8)


def check_photo_size(annotated: tuple[Any, Any], size: tuple[int, int]) -> None:
    """Raises `Unusable` where the photo was rotated or resized since; without an annotated size it is not checked."""
    if all(isinstance(side, int) and side > 0 for side in annotated) and annotated != size:
        raise Unusable(
            f"its regions were drawn on {annotated[1]} x {annotated[0]} pixels,"
            f" the photo has {size[1]} x {size[0]} (upright)"
        )


def measure_area(region: Any) -> float:
    """The area of polygons or run lengths in pixels; overlaps count twice."""
    if isinstance(region, Mapping):
        return float(sum(_read_counts(region)[1::2]))
    points = [np.asarray(polygon, np.float64).reshape(-1, 2).T for polygon in region]
    return sum(0.5 * abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) for x, y in points)


def _read_counts(encoded: Mapping[str, Any]) -> list[int]:
    counts = encoded.get("counts")
    numbers = _unpack_numbers(counts) if isinstance(counts, str | bytes) else counts
    if not isinstance(numbers, list) or any(not isinstance(number, int) or number < 0 for number in numbers):
        raise Unusable("the run lengths are no list of numbers")
    return numbers


def encode_run_lengths(mask: NDArray[np.uint8]) -> dict[str, Any]:
    """A mask as COCO's run lengths, the numbers unpacked."""
    column_by_column = hard_object(mask).T.ravel()
    edges = np.flatnonzero(np.diff(column_by_column)) + 1
    counts = np.diff([0, *edges.tolist(), column_by_column.size]).tolist()
    return {"size": list(mask.shape), "counts": [0, *counts] if column_by_column[0] else counts}


def find_bounding_box(mask: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Left, top, width and height of the object; zeros where there is none."""
    rows, columns = (np.flatnonzero(hard_object(mask).any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return 0, 0, 0, 0
    left, top = int(columns[0]), int(rows[0])
    return left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1


def _unpack_numbers(text: str | bytes) -> list[int]:
    """Unpack numbers: six bits per character, five of data, lowest first; from the third number on as differences."""
    packed = text.encode("ascii", "replace") if isinstance(text, str) else text
    numbers: list[int] = []
    place = 0
    while place < len(packed):
        value, place = _unpack_number(packed, place)
        numbers.append(value + (numbers[-2] if len(numbers) > 2 else 0))
    return numbers


def _unpack_number(packed: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while place < len(packed):
        digits = packed[place] - _CHARACTER_ZERO
        if not 0 <= digits < 64:
            raise Unusable("the packed run lengths hold a character that means nothing there")
        value |= (digits & 31) << shift
        shift, place = shift + 5, place + 1
        if not digits & 32:
            return (value - (1 << shift) if digits & 16 else value), place
    raise Unusable("the packed run lengths end in the middle of a number")
