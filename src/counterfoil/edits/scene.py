"""Placement that knows the scene: the line where the ground begins, contact shadows, and the light at a place."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import (
    Composition,
    FootShaded,
    FootShadow,
    Levelled,
    ObjectLayer,
    Pasted,
    PictureLayer,
    Placed,
    Plane,
)
from counterfoil.edits.cutout import Matrix, map_points, place_alpha
from counterfoil.edits.geometry import BoundingBox, object_box
from counterfoil.edits.subject import Subject
from counterfoil.object_mask import hard_object, object_trace

ROWS = 96  # rows at which the ground line is looked for
SEEN = 0.15  # share of a row that must be background for the row to count
PLACES = (0.12, 0.9)  # of the picture's height between which a ground line is looked for
DISTINCT = 14.0  # levels of CIE Lab by which the ground differs from what is above it
CLEAR, CLEAR_ALONE = 0.55, 0.7  # share of the variation between rows that the line explains; where one half tells
SHARP, SHARP_ALONE = (0.5, 1.3), (0.7, 1.3)  # difference within a few rows of the line, in differences of the sides
AGREEMENT = 0.1  # of the picture's height by which the lines of the left and the right half may differ
NEAR = 0.05  # of the picture's height: those few rows

FOOT = 0.08  # of the object's height: the part that touches the ground
SPREAD = 0.06  # of the object's width: how far a contact shadow reaches beyond the foot
CLOSE = 0.05  # of the object's size: what is no higher above the ground touches it, as far as the eye tells
LOWEST = 0.12  # of the object's height above its lower edge, beside which the ground at its foot is seen
AT_FOOT, BESIDE = (0.015, 0.06), (0.12, 0.3)  # distances from the object, as shares of its longer side
FAINT_ALPHA = 24  # below this a pixel counts as background
DEEPEST = 0.6  # share of the light that a contact shadow takes at most
FAINTEST = 0.06  # a weaker shadow is not repeated
USUAL = 0.25  # of a contact shadow on rough ground, where it cannot be measured
ROUGH = 4.0  # levels by which rough ground differs from its mean around
ABOVE_FOOT = 0.06  # of the picture's height: how far above its old foot an object may still stand

SHARE = 0.5  # of a difference in brightness, as a power: the rest may be the surfaces
TINT_SHARE = 0.2  # of a difference in colour: more of it is the surfaces
LIMITS = (0.8, 1.25)  # of the gain by which the object's light is changed

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


def place_in_scene(subject: Subject, matrix: Matrix) -> Composition:
    """The object moved as `place` does, in the light of its new place and with a shadow at its foot if it had one."""
    cut, background = subject.cutout, subject.visible_background
    alpha = place_alpha(cut.alpha, matrix)
    strength = subject.once(measure_contact_shadow)
    box = object_box(alpha)
    behind: PictureLayer = Plane(background)
    if strength > 0 and box.top + box.height >= highest_foot(subject):
        behind = darken_foot(background, alpha, strength)
    old, new = (_light_around(subject.visible_background, each) for each in (cut.alpha, alpha))
    return Composition(Placed(change_light(subject.object_layer, old, new), matrix, behind))


def relight(subject: Subject, background: Bytes, least_shadow: float = 0.0) -> Composition:
    """The object before another background: in part of its light and colour, with its contact shadow if it had one.

    `least_shadow` is the strength of the shadow where it had a fainter one, or none.
    """
    subject.check_background()
    cut = subject.cutout
    clear = (~object_trace(cut.alpha)).astype(np.uint8)
    old, new = (np.array(cv2.mean(image, clear)[:3], np.float32) for image in (subject.picture.image, background))
    strength = max(least_shadow, subject.once(measure_contact_shadow))
    behind = darken_foot(background, cut.alpha, strength) if strength > 0 else Plane(background)
    return Composition(Pasted(change_light(subject.object_layer, old, new), behind), cut.alpha)


def zoom_about_foot(alpha: Bytes, matrix: Matrix) -> Matrix:
    """A zoom moved so that the foot of the object stays where it was, or a larger object as near as it fits."""
    box = object_box(alpha)
    foot = (box.left + (box.width - 1) / 2, float(box.top + box.height - 1))
    moved = map_points(np.vstack([matrix, (0, 0, 1)]), [foot])[0]
    result = matrix.copy()
    result[:, 2] += np.array(foot) - moved
    corners = [(box.left - 0.5, box.top - 0.5), (box.left + box.width - 0.5, box.top + box.height - 0.5)]
    low, high = map_points(np.vstack([result, (0, 0, 1)]), corners) + 0.5
    length = np.array(alpha.shape[::-1], np.float64)
    if (high - low > (box.width, box.height)).all() and (high - low <= length).all():
        result[:, 2] += np.maximum(0, -low) - np.maximum(0, high - length)
    return np.asarray(result, np.float64)


def find_support(alpha: Bytes) -> Matrix:
    """The two points, across and down, that the object rests on: the ends of its hull's edge below its middle."""
    hull = _trace_hull(alpha)
    middle = float(np.nonzero(hard_object(alpha))[1].mean())
    edges = zip(hull, np.roll(hull, -1, axis=0), strict=True)
    below = [pair for pair in edges if min(pair[0][0], pair[1][0]) <= middle <= max(pair[0][0], pair[1][0])]
    return np.array(max(below, key=lambda pair: float(pair[0][1] + pair[1][1])), np.float64)


def _trace_hull(alpha: Bytes) -> Matrix:
    """The corners of the object's convex hull, (corners, 2) across and down."""
    opaque = hard_object(alpha)
    rows = np.flatnonzero(opaque.any(axis=1))
    inside = opaque[rows]
    # the ends of each row are enough, and are sorted much faster than all pixels
    ends = inside.argmax(axis=1), inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    points = np.concatenate([np.stack([columns, rows], axis=1) for columns in ends]).astype(np.int32)
    return np.asarray(cv2.convexHull(points), np.float64).reshape(-1, 2)


def find_lowest(alpha: Bytes, matrix: Matrix) -> float:
    """The row of the object's lowest point under an affine map."""
    return float((_trace_hull(alpha) @ matrix[1, :2] + matrix[1, 2]).max())


def measure_lift(alpha: Bytes, before: Matrix, after: Matrix) -> float:
    """How far the points that the object rests on go up or down between two maps, as a share of the object's size."""
    support, box = find_support(alpha), object_box(alpha)
    rows = [support @ matrix[1, :2] + matrix[1, 2] for matrix in (before, after)]
    scale = float(np.sqrt(abs(np.linalg.det(before[:, :2])) * box.width * box.height))
    return float(np.abs(rows[1] - rows[0]).mean()) / scale


def measure_slope(alpha: Bytes, matrix: Matrix, least: float) -> float:
    """The slope in degrees, under an affine map, of what the object rests on; 0 where that is narrow.

    `least`: its width, as a share of the object's size, from which on it is not.
    """
    support, box = find_support(alpha), object_box(alpha)
    ends = support @ matrix[:, :2].T
    across, down = np.abs(ends[1] - ends[0])
    scale = float(np.sqrt(abs(np.linalg.det(matrix[:, :2])) * box.width * box.height))
    return float(np.degrees(np.arctan2(down, across))) if np.hypot(across, down) >= least * scale else 0.0


class Footing(NamedTuple):
    """What an object stands on, as shares of its size: the root of its box's area."""

    contact: float  # width over which its lower edge is on the ground or close above it
    overhang: float  # how far its middle is beside all of that width: there it would fall over


def measure_footing(alpha: Bytes) -> Footing:
    """How an object stands, as far as its outline tells."""
    opaque, box = hard_object(alpha), object_box(alpha)
    size = float(np.sqrt(box.width * box.height))
    lowest = np.where(opaque.any(axis=0), alpha.shape[0] - np.argmax(opaque[::-1], axis=0), 0)
    columns = np.flatnonzero(lowest >= box.top + box.height - CLOSE * size)
    middle = float(np.nonzero(opaque)[1].mean())
    beside = max(0.0, float(columns[0]) - middle, middle - float(columns[-1]))
    return Footing(len(columns) / size, beside / size)


def find_ground_line(subject: Subject) -> float | None:
    """The row where the ground begins, above the object's foot; None unless each half that shows enough agrees."""
    alpha = subject.cutout.alpha
    return subject.once_stored(("ground line", alpha), lambda: _find_ground_line(subject, alpha))


def _find_ground_line(subject: Subject, alpha: Bytes) -> float | None:
    middle = alpha.shape[1] // 2
    halves = [
        _describe_rows(subject.picture.image[:, half], alpha[:, half]) for half in (slice(middle), slice(middle, None))
    ]
    seen = [rows for rows in halves if rows is not None]
    lines = [_split_rows(rows, alone=len(seen) == 1) for rows in seen]
    known = [line for line in lines if line is not None]
    if not known or len(known) < len(lines) or max(known) - min(known) > AGREEMENT:
        return None
    row = float(sum(known) / len(known) * alpha.shape[0])
    box = object_box(alpha)
    return row if row < box.top + (1 - FOOT) * box.height else None


def highest_foot(subject: Subject) -> float:
    """The row above which the object's foot would not stand on ground: 0 where nothing tells."""
    line = subject.once(find_ground_line)
    if line is not None:
        return float(line)
    if subject.once(measure_contact_shadow) == 0:
        return 0.0
    alpha = subject.cutout.alpha  # it stands on something, which goes on below its foot
    box = object_box(alpha)
    return max(0.0, box.top + box.height - ABOVE_FOOT * float(alpha.shape[0]))


class _Rows(NamedTuple):
    places: Floats  # share of the picture's height, of each row that shows enough background
    means: Floats  # (rows, 4): CIE Lab and fineness


def _describe_rows(image: Bytes, alpha: Bytes) -> _Rows | None:
    """Colour and fineness of the background row by row; None where too few rows show any."""
    width = max(8, round(alpha.shape[1] * ROWS / alpha.shape[0]))
    small = np.asarray(cv2.resize(image, (width, ROWS), interpolation=cv2.INTER_AREA), np.uint8)
    clear = cv2.resize((~object_trace(alpha)).astype(np.float32), (width, ROWS), interpolation=cv2.INTER_AREA) > 0.95
    lab = cv2.cvtColor(small.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)
    fine = np.abs(lab[..., 0] - cv2.blur(lab[..., 0], (5, 5)))
    planes = np.dstack([lab, 2 * fine])
    shown = clear.mean(axis=1) >= SEEN
    if shown.mean() < 0.6:
        return None
    numbers = np.flatnonzero(shown)
    means = [np.median(planes[row][clear[row]], axis=0) for row in numbers]
    return _Rows(np.asarray((numbers + 0.5) / ROWS, np.float32), np.array(means, np.float32))


def _split_rows(rows: _Rows, alone: bool) -> float | None:
    """The place that parts the rows into two kinds, as a share of the height; None where none does clearly."""
    total = float(((rows.means - rows.means.mean(axis=0)) ** 2).sum())
    least, sharp = (CLEAR_ALONE, SHARP_ALONE) if alone else (CLEAR, SHARP)
    best, line = 0.0, None
    for number in range(4, len(rows.places) - 4):
        place = float(rows.places[number])
        if not PLACES[0] <= place <= PLACES[1]:
            continue
        above, below = rows.means[:number], rows.means[number:]
        means = above.mean(axis=0), below.mean(axis=0)
        difference = float(np.linalg.norm(means[0] - means[1]))
        if difference < DISTINCT:  # the usual case, told at once
            continue
        left = sum(float(((side - mean) ** 2).sum()) for side, mean in zip((above, below), means, strict=True))
        explained = 1 - left / max(total, 1e-6)
        near = max(2, round(NEAR * ROWS))
        close = float(np.linalg.norm(above[-near:].mean(axis=0) - below[:near].mean(axis=0)))
        fits = sharp[0] <= close / difference <= sharp[1]
        if explained > max(best, least) and fits:
            best, line = explained, place
    return line


def measure_contact_shadow(subject: Subject) -> float:
    """How much darker the ground at the object's foot is than the ground beside it, 0 where it is not."""
    alpha, box = subject.cutout.alpha, object_box(subject.cutout.alpha)
    bottom, size = box.top + box.height, float(max(box.width, box.height))
    if bottom + AT_FOOT[1] * size >= alpha.shape[0]:  # cut by the border, or too near to it to tell
        return 0.0
    gray = np.asarray(cv2.cvtColor(subject.picture.image, cv2.COLOR_RGB2GRAY), np.float32)
    away = np.asarray(cv2.distanceTransform((~hard_object(alpha)).astype(np.uint8), cv2.DIST_L2, 3)) / size
    rows = slice(round(bottom - LOWEST * box.height), round(bottom + BESIDE[1] * size))
    clear, near = alpha[rows] < FAINT_ALPHA, away[rows]
    here, beyond = (clear & (near >= low) & (near <= high) for low, high in (AT_FOOT, BESIDE))
    if min(here.sum(), beyond.sum()) < 16:
        return 0.0
    ratio = float(np.median(gray[rows][here]) + 4) / float(np.median(gray[rows][beyond]) + 4)
    strength = float(np.clip(1.2 * (1 - ratio), 0, DEEPEST))
    if strength >= FAINTEST:
        return strength
    # In grass, gravel or leaves a contact shadow cannot be measured, though there is one.
    fine = np.abs(gray[rows] - cv2.GaussianBlur(gray, (0, 0), 2)[rows])
    return USUAL if float(fine[beyond].mean()) >= ROUGH else 0.0


def draw_foot_shadow(alpha: Bytes) -> Floats:
    """The contact shadow of an object, 0..1, (height, width)."""
    return find_foot_shadow(alpha).draw(alpha.shape[0])


def find_foot_shadow(alpha: Bytes) -> FootShadow:
    """The contact shadow of an object: its foot, flattened on the ground and soft."""
    box = object_box(alpha)
    height = alpha.shape[0]
    depth = max(2, round(FOOT * box.height))
    bottom = box.top + box.height
    # For each column how far the object's lower edge is above the ground: what floats casts a fainter shadow.
    opaque = hard_object(alpha)
    lowest = np.where(opaque.any(axis=0), height - 1 - np.argmax(opaque[::-1], axis=0), -1).astype(np.float32)
    gap = np.where(lowest >= 0, bottom - 1 - lowest, np.float32(height))
    reach = max(1.0, SPREAD * box.width)
    touch, middle = (
        cv2.GaussianBlur(np.asarray(line[None], np.float32), (0, 0), reach, borderType=cv2.BORDER_REPLICATE)
        for line in (np.clip(1 - gap / (3 * depth), 0, 1), np.where(lowest >= 0, lowest, np.float32(bottom - 1)))
    )
    return FootShadow(np.asarray(touch, np.float32), np.asarray(middle, np.float32), max(1.5, 0.6 * depth))


def darken_foot(background: Bytes, alpha: Bytes, strength: float) -> PictureLayer:
    """The background with a contact shadow under an object of this alpha."""
    return FootShaded(Plane(background), find_foot_shadow(alpha), strength)


def _light_around(background: Bytes, alpha: Bytes) -> Floats:
    """The mean colour of the background around an object of this alpha."""
    box = object_box(alpha)
    margin = max(4, max(box.width, box.height) // 4)
    wide = BoundingBox(box.left - margin, box.top - margin, box.width + 2 * margin, box.height + 2 * margin)
    rows = slice(max(0, wide.top), max(1, wide.top + wide.height))
    columns = slice(max(0, wide.left), max(1, wide.left + wide.width))
    return np.asarray(background[rows, columns].reshape(-1, 3).mean(axis=0), np.float32)


def change_light(cut: ObjectLayer, old: Floats, new: Floats) -> ObjectLayer:
    """The object with part of the difference between two lights, channel by channel."""
    ratio = (new + 8) / (old + 8)
    brightness = float(np.exp(np.log(ratio).mean()))
    gains = np.clip(brightness**SHARE * (ratio / brightness) ** TINT_SHARE, *LIMITS)
    # By a power: nothing becomes white that was not.
    levels = (np.arange(256) / 255)[:, None] ** (1 - np.log2(gains))[None]
    table = np.rint(255 * levels).astype(np.uint8)
    return cut._replace(colours=Levelled(cut.colours, table))
