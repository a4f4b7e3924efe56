"""What would show that an object was cut out of its photo: grass in its mask, things before it, an end it has not.

Edits that show an object elsewhere refuse such photos. Edits that leave it before its own background show none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.geometry import object_box
from counterfoil.edits.matting import distance_to
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.object_mask import hard_object, object_trace

SIDE = 512  # shorter side in pixels at which cut-outs are measured; larger pictures are reduced

GREEN = (-8.0, 12.0)  # a* of CIE Lab below, and b* above: grass and leaves
SAME_GREEN = 14.0  # levels of CIE Lab without light by which greens inside and outside differ at most
AROUND = (0.012, 0.35)  # of the object's size: where background is looked at
SURROUNDED = 0.2  # share of that which is green, from which green inside is not the object's
OWN_GREEN = 0.3  # share of the object from which green is its own colour
RIM = 0.015  # of the object's size: what is mixed with the background
MOST_GREEN = 0.01  # of the object's area

GAP = 0.05  # of the object's size: half the width of gaps in it that are looked into
LARGEST_HOLE = 0.05  # of the object's area: larger holes are not looked into
FAINT = 60  # alpha of what is hardly object
BINS = (32, 52, 52)  # of L*, a* and b*
RARE = 0.0005  # share of the background below which it does not have a colour
MOST_FOREIGN = (0.0003, 0.04)  # of the object's area, and of its gaps

STRAIGHT = 0.02  # of the object's size by which an outline differs from its corners joined by lines
SHORTEST = 0.22  # of the object's size: the shortest straight end
STEEPEST = 0.6  # of an end's direction upwards: 1 is level
BEYOND = (0.05, 0.25)  # of the object's size beyond an end, where its line may go on
LINE_WIDTH = 0.035  # of the object's size to either side
CLEAREST_LINE, CLEAREST_STEP = 10.0, 40.0  # levels of CIE Lab above which neither line nor step counts more
MOST_HIDDEN = 2.55  # risk from which something hides the lower part of the object

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Places = NDArray[np.float64]
Flags = NDArray[np.bool_]


class CutoutFaults(NamedTuple):
    """What is wrong with a cut-out, each by its own measure."""

    green: float  # share of the object that is grass or leaves
    foreign: float  # share of it that things before it hide, in gaps of the mask
    foreign_in_gaps: float  # share of those gaps
    hidden: float  # risk that something hides its lower part

    @property
    def reason(self) -> str:
        """Why the object cannot be shown elsewhere; empty where it can."""
        if self.green > MOST_GREEN:
            return f"grass or leaves before the object are part of its mask ({self.green:.1%} of it)"
        if self.foreign > MOST_FOREIGN[0] and self.foreign_in_gaps > MOST_FOREIGN[1]:
            return "something before the object leaves a gap in it"
        if self.hidden > MOST_HIDDEN:
            return f"something seems to hide the lower part of the object (risk {self.hidden:.1f})"
        return ""


def check_cutout(subject: Subject) -> None:
    """Raises `Unusable` where an object that is shown elsewhere would have remains or lack a part."""
    reason = subject.once(measure_cutout).reason if subject.tools.refine else ""
    if reason:
        raise Unusable(reason)


def measure_cutout(subject: Subject) -> CutoutFaults:
    """The faults of a photo's cut-out."""
    image, alpha = subject.picture.image, subject.cutout.alpha
    scale = SIDE / min(alpha.shape)
    if scale < 1:
        size = round(alpha.shape[1] * scale), round(alpha.shape[0] * scale)
        image, alpha = (np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.uint8)
                        for plane in (image, alpha))  # fmt: skip
    shape = _Shape.of(image, alpha)
    foreign, foreign_in_gaps = _measure_foreign(shape)
    return CutoutFaults(_measure_green(shape), foreign, foreign_in_gaps, _measure_hidden(shape))


class _Shape(NamedTuple):
    image: Bytes
    alpha: Bytes
    hard: Flags
    lab: Floats
    size: float  # the root of the object's area
    away: Floats  # from the object, in pixels

    @classmethod
    def of(cls, image: Bytes, alpha: Bytes) -> _Shape:
        hard = hard_object(alpha)
        lab = cv2.cvtColor(image.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)
        return cls(image, alpha, hard, np.asarray(lab), float(np.sqrt(np.count_nonzero(hard))), distance_to(hard))


def _measure_green(shape: _Shape) -> float:
    """The share of the object in the green of the background, its rim left out."""
    green = (shape.lab[..., 1] < GREEN[0]) & (shape.lab[..., 2] > GREEN[1])
    around = (shape.away > AROUND[0] * shape.size + 1.5) & (shape.away < AROUND[1] * shape.size)
    outside, inside = green & around, green & (distance_to(~shape.hard) > max(1.5, RIM * shape.size))
    area = shape.size**2
    if np.count_nonzero(outside) < SURROUNDED * np.count_nonzero(around) or np.count_nonzero(inside) > OWN_GREEN * area:
        return 0.0
    if not outside.any():
        return 0.0
    usual = np.median(shape.lab[outside][:, 1:], axis=0)
    inside &= np.linalg.norm(shape.lab[..., 1:] - usual, axis=2) < SAME_GREEN
    return float(np.count_nonzero(inside)) / area


def _measure_foreign(shape: _Shape) -> tuple[float, float]:
    """The area of gaps in the object in colours that the background has not: of the object's, and of the gaps'."""
    reach = max(2, round(GAP * shape.size))
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    wide = cv2.copyMakeBorder(shape.hard.astype(np.uint8), reach, reach, reach, reach, cv2.BORDER_CONSTANT, value=0)
    closed = np.asarray(cv2.morphologyEx(wide, cv2.MORPH_CLOSE, disc))[reach:-reach, reach:-reach] > 0
    closed |= _find_small_holes(closed, LARGEST_HOLE * shape.size**2)
    gaps = closed & (shape.alpha < FAINT) & (shape.away > 1.5)
    beyond = ~closed & (shape.away > 0.03 * shape.size + 2)
    if not gaps.any() or not beyond.any():
        return 0.0, 0.0
    levels = cv2.cvtColor(shape.image, cv2.COLOR_RGB2LAB).astype(np.int32)
    bins = np.ravel_multi_index(tuple(levels[..., i] * number // 256 for i, number in enumerate(BINS)), BINS)
    counts = np.bincount(bins[beyond], minlength=int(np.prod(BINS))).reshape(BINS).astype(np.float32)
    for axis in range(3):  # with the neighbouring bins
        counts = sum((np.roll(counts, step, axis) for step in (-1, 1)), counts)
    known = counts.ravel()[bins] >= RARE * np.count_nonzero(beyond)
    foreign = cv2.morphologyEx((gaps & ~known).astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3)))
    found = float(np.count_nonzero(foreign))
    return found / shape.size**2, found / np.count_nonzero(gaps)


def _find_small_holes(region: Flags, largest: float) -> Flags:
    """What a region surrounds, up to an area."""
    count, labels, boxes, _ = cv2.connectedComponentsWithStats((~region).astype(np.uint8), connectivity=4)
    inside = boxes[:, cv2.CC_STAT_AREA] < largest
    for border in (labels[0], labels[-1], labels[:, 0], labels[:, -1]):
        inside[border] = False
    inside[0] = False
    return np.asarray(inside[:count][labels])


def _measure_hidden(shape: _Shape) -> float:
    """The risk that something hides the lower part: a straight end, whose line goes on, between unlike grounds."""
    ends = list(_find_ends(shape))
    longest = min(1.0, max((end.length for end in ends), default=0.0))
    line = min(1.0, max((end.line for end in ends), default=0.0) / CLEAREST_LINE)
    step = min(1.0, _measure_step(shape) / CLEAREST_STEP)
    # Weights of a logistic regression on 223 cut-outs of pets and demo photos, of which 13 had such an end.
    return 1.6 * step + 1.35 * line + 0.8 * line * min(1.0, step / 0.75) + 1.9 * longest


class _End(NamedTuple):
    """A straight part of the outline below the object, inside the picture."""

    length: float  # of the object's size
    line: float  # how clearly its line goes on in the picture beyond it, in levels a pixel


def _find_ends(shape: _Shape) -> Iterator[_End]:
    contours = cv2.findContours(shape.hard.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0]
    outline = max(contours, key=len)
    corners = np.asarray(cv2.approxPolyDP(outline, max(1.5, STRAIGHT * shape.size), True), np.float64)[:, 0]
    limits = np.array(shape.hard.shape[::-1], np.float64)
    smooth = np.asarray(cv2.GaussianBlur(shape.lab, (0, 0), 1.0), np.float32)
    steps = [np.asarray(cv2.Sobel(smooth, cv2.CV_32F, *way), np.float32) for way in ((1, 0), (0, 1))]
    for first, last in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = last - first
        length = float(np.hypot(*along))
        at_border = (np.minimum(first, last) < 3) | (np.maximum(first, last) > limits - 4)
        if length < 0.1 * shape.size or at_border.any():
            continue
        along /= length
        across = np.array([-along[1], along[0]])
        column, row = np.clip(np.rint((first + last) / 2 + 4 * across), 0, limits - 1).astype(int).tolist()
        upwards = -across[1] if shape.hard[row, column] else across[1]
        if upwards < STEEPEST:
            continue
        line = 0.0
        if length >= SHORTEST * shape.size:
            sides = [_follow(shape, steps, corner, way) for corner, way in ((first, -along), (last, along))]
            seen = [side for side in sides if side is not None]
            line = 0.0 if not seen else min(seen) if len(seen) == 2 else 0.7 * seen[0]
        yield _End(length / shape.size, line)


def _follow(shape: _Shape, steps: list[Floats], corner: Places, way: Places) -> float | None:
    """How clear the line from a corner on is, where it is least clear; None where it leaves the picture at once."""
    across = np.array([-way[1], way[0]])
    reach = LINE_WIDTH * shape.size + 1
    distances = np.arange(BEYOND[0] * shape.size, BEYOND[1] * shape.size, 1.5)
    offsets = np.arange(-reach, reach + 0.01)
    places = corner + distances[:, None, None] * way + offsets[None, :, None] * across
    middle = corner + distances[:, None] * way
    limits = np.array(shape.hard.shape[::-1])
    outside = ((middle < 2) | (middle >= limits - 2)).any(axis=1)
    seen = int(outside.argmax()) if outside.any() else len(distances)
    columns, rows = (np.clip(np.rint(places[..., i]), 0, limits[i] - 1).astype(int) for i in (0, 1))
    slope = np.linalg.norm(steps[0][rows, columns] * across[0] + steps[1][rows, columns] * across[1], axis=2)
    clear = np.where(shape.hard[rows, columns], 0, slope).max(axis=1)[:seen]
    clear = clear[~shape.hard[rows, columns][:seen, len(offsets) // 2]]
    return float(np.percentile(clear, 25)) / 8 if len(clear) >= 5 else None


def _measure_step(shape: _Shape) -> float:
    """By how much the ground below an object differs from what is beside its lowest part, in levels of CIE Lab."""
    box, clear = object_box(shape.alpha), ~object_trace(shape.alpha)
    size, foot = float(np.sqrt(box.width * box.height)), box.top + box.height
    lowest = np.flatnonzero(shape.hard[max(0, round(foot - 0.08 * size)) : foot].any(axis=0))
    if not len(lowest):
        return 0.0
    left, right = int(lowest[0]), int(lowest[-1])
    below = _middle_colour(shape, clear, (foot + 0.02 * size, foot + 0.14 * size), (left, right + 1))
    rows = foot - 0.22 * size, foot - 0.05 * size
    places = (left - 0.25 * size, left - 0.02 * size), (right + 0.02 * size, right + 0.25 * size)
    beside = [_middle_colour(shape, clear, rows, columns) for columns in places]
    if below is None:
        return 0.0
    return max((float(np.linalg.norm(colour - below)) for colour in beside if colour is not None), default=0.0)


def _middle_colour(
    shape: _Shape, clear: Flags, rows: tuple[float, float], columns: tuple[float, float]
) -> Floats | None:
    """The median colour of the background in a rectangle; None where it shows too little."""
    window = tuple(slice(max(0, round(first)), max(0, round(last))) for first, last in (rows, columns))
    pixels = shape.lab[window][clear[window]]
    return np.asarray(np.median(pixels, axis=0), np.float32) if len(pixels) > 30 else None
