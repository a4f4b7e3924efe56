"""Lines that run into a filled hole and end at its rim: a leash, the edge of a step, the joint of two tiles."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE = 256  # shorter side at which lines are looked for
BLUR, SPREAD = 1.5, 2.5  # pixels: of the picture before its slopes are taken, and of the slopes around a place
OUTSIDE, INSIDE = 6, 7  # pixels from the rim at which a line is seen before and behind it
FURTHER = (6, 12)  # pixels further away at which it must be seen too: a line, not a spot
ASIDE = (-4, -2, 0, 2, 4)  # pixels by which it may be displaced behind the rim
CLEAR = 0.8  # slope in CIE Lab a pixel from which a line is seen
STRAIGHT = 0.6  # how much of the slope has one direction, 0 to 1
TOWARDS = 0.6  # cosine of the angle between the line and the way into the hole, at least
STEEPEST = 6.0  # slope beyond which a line counts no more
BESIDE = 20  # pixels from the rim at which lines end as often as they do in this photo anyway
LASTING, LOST = 0.5, 0.3  # share of its slope that a line keeps further away, and below which it has ended
FEWEST = 20  # places of the rim below which nothing is said

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class _Rim(NamedTuple):
    """Places along the rim of a hole, and the directions away from the hole."""

    across: Floats
    down: Floats
    out_across: Floats
    out_down: Floats


def measure_line_ends(image: Bytes, hole: Flags, ignore: Flags | None = None) -> float:
    """How clearly lines of the surroundings run into the hole and end, over its rim, more than beside the hole.

    The mean over the rim of the slope, in CIE Lab a pixel, of the lines that end there; 0 where all go on.
    """
    small, inside = _reduce(image, hole)
    taken = np.zeros_like(inside) if ignore is None else _reduce(image, ignore)[1]
    slopes = _measure_slopes(small)
    wider = np.asarray(cv2.distanceTransform((~inside).astype(np.uint8), cv2.DIST_L2, 5)) <= BESIDE
    return max(0.0, _measure_ends(slopes, inside, taken) - _measure_ends(slopes, wider, taken))


def _measure_ends(slopes: Floats, region: Flags, ignore: Flags) -> float:
    """The mean slope along the region's rim of lines that run into it and end."""
    rim = _find_rim(region, ignore)
    if len(rim.across) < FEWEST:
        return 0.0
    x, y = rim.across + OUTSIDE * rim.out_across, rim.down + OUTSIDE * rim.out_down
    here = _take(slopes, x, y)
    spread, total = np.hypot(here[:, 0] - here[:, 2], 2 * here[:, 1]), here[:, 0] + here[:, 2]
    angle = 0.5 * np.arctan2(2 * here[:, 1], here[:, 0] - here[:, 2])  # of the steepest slope; the line lies across it
    steep = (np.cos(angle), np.sin(angle))
    side = np.where(-steep[1] * rim.out_across + steep[0] * rim.out_down < 0, -1, 1)
    along = (-steep[1] * side, steep[0] * side)  # the line, away from the region
    into = along[0] * rim.out_across + along[1] * rim.out_down
    slope = np.sqrt((total + spread) / 2)
    clear = (slope > CLEAR) & (spread > STRAIGHT * total) & (into > TOWARDS)
    for step in FURTHER:
        clear &= _slope_along(slopes, x + step * along[0], y + step * along[1], steep) > LASTING * slope
    way = (OUTSIDE + INSIDE) / np.maximum(into, 0.5)
    x, y = x - way * along[0], y - way * along[1]
    behind = [_slope_along(slopes, x + step * steep[0], y + step * steep[1], steep) for step in ASIDE]
    ended = clear & (np.max(behind, axis=0) < LOST * slope)
    return float((ended * np.minimum(slope, STEEPEST)).mean())


def _reduce(image: Bytes, hole: Flags) -> tuple[Bytes, Flags]:
    height, width = hole.shape
    scale = min(1.0, SIDE / min(height, width))
    size = (round(width * scale), round(height * scale))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8), np.asarray(
        cv2.resize(hole.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    ) > 0


def _find_rim(hole: Flags, ignore: Flags) -> _Rim:
    """The places along the hole's rim, away from the picture's border and from what is to be ignored."""
    away = cv2.distanceTransform((~hole).astype(np.uint8), cv2.DIST_L2, 5)
    depth = cv2.distanceTransform(hole.astype(np.uint8), cv2.DIST_L2, 5)
    signed = cv2.GaussianBlur(away - depth, (0, 0), 2.0)
    rim = hole & (np.asarray(cv2.erode(hole.astype(np.uint8), np.ones((3, 3), np.uint8), borderValue=1)) == 0)
    margin = OUTSIDE + FURTHER[0]
    clear = np.zeros_like(hole)
    clear[margin:-margin, margin:-margin] = True
    kernel = np.ones((2 * OUTSIDE + 1, 2 * OUTSIDE + 1), np.uint8)
    clear &= np.asarray(cv2.dilate(ignore.astype(np.uint8), kernel)) == 0
    rows, columns = np.nonzero(rim & clear)
    x, y = (cv2.Sobel(signed, cv2.CV_32F, *order)[rows, columns] for order in ((1, 0), (0, 1)))
    length = np.hypot(x, y) + 1e-6
    planes = (columns, rows, x / length, y / length)
    return _Rim(*(np.asarray(plane, np.float32) for plane in planes))


def _measure_slopes(image: Bytes) -> Floats:
    """The slopes of all three channels around each place: the three values of a symmetric matrix."""
    smooth = cv2.GaussianBlur(image, (0, 0), BLUR).astype(np.float32) / np.float32(255)
    lab = cv2.cvtColor(smooth, cv2.COLOR_RGB2LAB)
    x, y = (cv2.Scharr(lab, cv2.CV_32F, *order) / 32 for order in ((1, 0), (0, 1)))
    sums = np.dstack([(x * x).sum(axis=2), (x * y).sum(axis=2), (y * y).sum(axis=2)])
    return np.asarray(cv2.GaussianBlur(sums, (0, 0), SPREAD), np.float32)


def _slope_along(slopes: Floats, x: Floats, y: Floats, direction: tuple[Floats, Floats]) -> Floats:
    """The slope in these directions at these places."""
    found = _take(slopes, x, y)
    right, down = direction
    squares = found[:, 0] * right**2 + 2 * found[:, 1] * right * down + found[:, 2] * down**2
    return np.asarray(np.sqrt(np.maximum(squares, 0)), np.float32)


def _take(plane: Floats, x: Floats, y: Floats) -> Floats:
    across, down = (np.asarray(each, np.float32)[None] for each in (x, y))
    return np.asarray(
        cv2.remap(plane, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)[0], np.float32
    )
