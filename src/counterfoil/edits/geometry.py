"""The object's box, its share of the picture, zooms to a share, and frames that hold a share of the object."""

from __future__ import annotations

import math
from typing import NamedTuple
from weakref import ref

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import Matrix, place_alpha
from counterfoil.errors import Unusable, UserError
from counterfoil.object_mask import hard_object, object_share

Bytes = NDArray[np.uint8]

TOLERANCE = 0.005  # of the picture's area
FAITHFUL_TOLERANCE = 0.015  # of ImageNet-E's release: an object that is this near its target stays untouched
MOST_ZOOMS = 50
SPECK = 0.02  # of the largest piece's area: smaller pieces do not extend the object's box
HALVINGS = 24  # of a picture's side: far below a pixel


class BoundingBox(NamedTuple):
    """A rectangle of whole pixels."""

    left: int
    top: int
    width: int
    height: int

    @property
    def centre(self) -> tuple[float, float]:
        """The middle, across and down, in coordinates where pixel centres are whole numbers."""
        return self.left + (self.width - 1) / 2, self.top + (self.height - 1) / 2


_known_boxes: dict[tuple[int, bool], tuple[ref[Bytes], BoundingBox]] = {}  # of planes that cannot change


def object_box(alpha: Bytes, faithful: bool = False) -> BoundingBox:
    """The bounding box of the object; `faithful`: of the piece with the largest box, as in ImageNet-E's tool."""
    if alpha.flags.writeable or alpha.base is not None:
        return _find_box(alpha, faithful)
    key = id(alpha), faithful
    known = _known_boxes.get(key)
    if known is not None and known[0]() is alpha:
        return known[1]
    box = _find_box(alpha, faithful)
    _known_boxes[key] = ref(alpha, lambda _: _known_boxes.pop(key, None)), box
    return box


def _find_box(alpha: Bytes, faithful: bool) -> BoundingBox:
    opaque = hard_object(alpha).astype(np.uint8)
    left, top, width, height = cv2.boundingRect(opaque)  # much quicker than looking for pieces where nothing is
    inside = opaque[top : top + height, left : left + width]
    pieces = np.asarray(cv2.connectedComponentsWithStats(inside, connectivity=8)[2][1:], np.int64)
    pieces[:, :2] += (left, top)
    if not len(pieces):
        raise Unusable("the object has no opaque pixel inside the picture")
    boxes = [BoundingBox(*(int(value) for value in row[:4])) for row in pieces]
    if faithful:
        return max(boxes, key=lambda box: (box.width * box.height, box))  # by position where two are equally large
    areas = pieces[:, cv2.CC_STAT_AREA]
    return _enclose([box for box, area in zip(boxes, areas, strict=True) if area >= SPECK * areas.max()])


def _enclose(boxes: list[BoundingBox]) -> BoundingBox:
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.left + box.width for box in boxes), max(box.top + box.height for box in boxes)
    return BoundingBox(left, top, right - left, bottom - top)


def object_rate(alpha: Bytes, faithful: bool = False) -> float:
    """Object pixels as a share of the picture; `faithful`: those inside the largest piece's box."""
    if not faithful:
        return object_share(alpha)
    box = object_box(alpha, faithful)
    inside = alpha[box.top : box.top + box.height, box.left : box.left + box.width]
    return np.count_nonzero(hard_object(inside)) / alpha.size


def zoom(centre: tuple[float, float], factor: float) -> Matrix:
    """Enlarge about a point."""
    return np.array([[factor, 0, centre[0] * (1 - factor)], [0, factor, centre[1] * (1 - factor)]], np.float64)


def zoom_to_rate(alpha: Bytes, rate: float, faithful: bool, about: tuple[float, float] | None = None) -> Matrix:
    """The zoom about a point, or the box's centre, that gives the object this rate; zooms multiply until it is met."""
    tolerance = FAITHFUL_TOLERANCE if faithful else TOLERANCE
    centre = object_box(alpha, faithful).centre if about is None else about
    factor, current = 1.0, object_rate(alpha, faithful)
    low, high = 0.0, math.inf  # factors known to give too little and too much
    for turn in range(MOST_ZOOMS):
        # Without `faithful` even a close object is zoomed once, so that its rate does not depend on the photo.
        if abs(current - rate) <= tolerance and (turn or faithful):
            return zoom(centre, factor)
        low, high = (factor, high) if current < rate else (low, factor)
        factor *= math.sqrt(rate / current) if current else 2.0
        if not low < factor < high:  # whole pixels and the picture's edge can make the iteration oscillate
            factor = (low + high) / 2
        current = _visible_rate(place_alpha(alpha, zoom(centre, factor)), faithful)
    raise Unusable(f"no zoom brings the object to a rate of {rate:g}: the nearest tried gives {current:.3f}")


def _visible_rate(alpha: Bytes, faithful: bool) -> float:
    return object_rate(alpha, faithful) if hard_object(alpha).any() else 0.0


class Frame(NamedTuple):
    """A rectangle that may end between pixels; coordinates count from the corner of the first pixel."""

    left: float
    top: float
    width: float
    height: float


def frame_holding(alpha: Bytes, share: float, around: tuple[float, float], within: Frame) -> Frame:
    """The frame of `within`'s shape, near a point and inside `within`, that holds this share of the object's area."""
    sums = np.asarray(cv2.integral(alpha), np.float64)
    wanted, low, high = share * _sum_inside(sums, within), 0.0, 1.0
    for _ in range(HALVINGS):  # a larger frame holds all of a smaller one, so the area grows with the size
        middle = (low + high) / 2
        enough = _sum_inside(sums, _shrink(within, around, middle)) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return _shrink(within, around, high)


def _shrink(within: Frame, around: tuple[float, float], size: float) -> Frame:
    """A frame of `size` times the sides of `within`, centred at a point as far as it fits inside."""
    width, height = within.width * size, within.height * size
    left = min(max(around[0] - width / 2, within.left), within.left + within.width - width)
    top = min(max(around[1] - height / 2, within.top), within.top + within.height - height)
    return Frame(left, top, width, height)


def _sum_inside(sums: NDArray[np.float64], frame: Frame) -> float:
    """The sum of alpha over a frame, parts of pixels included; `sums` is the integral of alpha."""
    across = [_split_index(sums.shape[1], end) for end in (frame.left, frame.left + frame.width)]
    down = [_split_index(sums.shape[0], end) for end in (frame.top, frame.top + frame.height)]
    corners = [[_interpolate(sums, row, column) for column in across] for row in down]
    return corners[1][1] - corners[0][1] - corners[1][0] + corners[0][0]


def _split_index(length: int, place: float) -> tuple[int, float]:
    """The entry before a place, and the fraction towards the next."""
    before = min(max(int(place), 0), length - 2)
    return before, min(max(place - before, 0.0), 1.0)


def _interpolate(sums: NDArray[np.float64], row: tuple[int, float], column: tuple[int, float]) -> float:
    """The integral interpolated between its entries; linear, since alpha is constant within a pixel."""
    four = sums[row[0] : row[0] + 2, column[0] : column[0] + 2]
    return float(np.array([1 - row[1], row[1]]) @ four @ np.array([1 - column[1], column[1]]))


def object_point(alpha: Bytes, rng: np.random.Generator) -> tuple[float, float]:
    """The middle of a pixel of the object, drawn uniformly, across and down from the picture's corner."""
    places = np.flatnonzero(hard_object(alpha))
    row, column = divmod(int(places[rng.integers(len(places))]), alpha.shape[1])
    return column + 0.5, row + 0.5


def check_rate(rate: float | None) -> None:
    """Refuse a rate that no picture can have."""
    if rate is not None and not 0 < rate < 1:
        raise UserError(f"rate: expected a share of the picture between 0 and 1, got {rate:g}")
