"""Where the object is and how large; the zoom that brings it to a given size."""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.cutting import Matrix, placed_alpha
from counterfoil.errors import Unusable, UserError

Bytes = NDArray[np.uint8]

TOLERANCE = 0.005  # of the picture's area
FAITHFUL_TOLERANCE = 0.015  # of ImageNet-E's release: an object that is this near its target stays untouched
MOST_ZOOMS = 50


class Box(NamedTuple):
    """A rectangle of whole pixels."""

    left: int
    top: int
    width: int
    height: int

    @property
    def centre(self) -> tuple[float, float]:
        """The middle, across and down, in coordinates where pixel centres are whole numbers."""
        return self.left + (self.width - 1) / 2, self.top + (self.height - 1) / 2


def object_box(alpha: Bytes) -> Box:
    """The bounding box of the piece of the object whose box is largest."""
    outlines, _ = cv2.findContours((alpha > 127).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not outlines:
        raise Unusable("the object has no opaque pixel inside the picture")
    boxes = [Box(*(int(value) for value in cv2.boundingRect(outline))) for outline in outlines]
    return max(boxes, key=lambda box: (box.width * box.height, box))  # by place where two are equally large


def object_rate(alpha: Bytes) -> float:
    """Object pixels inside that box as a share of the picture."""
    box = object_box(alpha)
    inside = alpha[box.top : box.top + box.height, box.left : box.left + box.width]
    return np.count_nonzero(inside > 127) / alpha.size


def zoom(centre: tuple[float, float], factor: float) -> Matrix:
    """Enlarge about a point."""
    return np.array([[factor, 0, centre[0] * (1 - factor)], [0, factor, centre[1] * (1 - factor)]], np.float64)


def zoom_to_rate(alpha: Bytes, rate: float, faithful: bool) -> Matrix:
    """The zoom about the box's centre that gives the object this rate; zooms multiply until the rate is met."""
    tolerance = FAITHFUL_TOLERANCE if faithful else TOLERANCE
    centre, factor, current = object_box(alpha).centre, 1.0, object_rate(alpha)
    low, high = 0.0, math.inf  # factors known to give too little and too much
    for turn in range(MOST_ZOOMS):
        # Without `faithful` even an object that is near enough makes one step: its rate shall not depend on the photo.
        if abs(current - rate) <= tolerance and (turn or faithful):
            return zoom(centre, factor)
        low, high = (factor, high) if current < rate else (low, factor)
        factor *= math.sqrt(rate / current) if current else 2.0
        if not low < factor < high:  # whole pixels and the picture's edge can make the rule jump to and fro
            factor = (low + high) / 2
        current = _visible_rate(placed_alpha(alpha, zoom(centre, factor)))
    raise Unusable(f"no zoom brings the object to a rate of {rate:g}: the nearest tried gives {current:.3f}")


def _visible_rate(alpha: Bytes) -> float:
    return object_rate(alpha) if (alpha > 127).any() else 0.0


def check_rate(rate: float | None) -> None:
    """Refuse a rate that no picture can have."""
    if rate is not None and not 0 < rate < 1:
        raise UserError(f"rate: expected a share of the picture between 0 and 1, got {rate:g}")
