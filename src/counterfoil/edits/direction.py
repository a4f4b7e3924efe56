"""The object rotated in the plane, flipped, or tilted out of the plane."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Placed, Plane
from counterfoil.edits.cutout import Matrix, map_points, place_alpha
from counterfoil.edits.cutout_quality import check_cutout
from counterfoil.edits.donor_scene import check_whole
from counterfoil.edits.edit_protocol import (
    ComposedEdit,
    RecipeEdit,
    Supplied,
    cross_with_size,
    describe_level,
    reference_at_rate,
    require_size,
)
from counterfoil.edits.foot_ground import check_foot_ground
from counterfoil.edits.geometry import BoundingBox, check_rate, object_box, zoom, zoom_to_rate
from counterfoil.edits.photo_border import anchor_point, refuse_cut, turn_about_border
from counterfoil.edits.scene import (
    Footing,
    find_lowest,
    measure_footing,
    measure_lift,
    measure_slope,
    place_in_scene,
    zoom_about_foot,
)
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.object_mask import hard_object
from counterfoil.types import Attribute, EditLevel

_SYMMETRIC_RANGE = re.compile(r"-([\d.]+)\.\.\1")
_ANGLE = re.compile(r"-?[\d.]+")
LEAST_ANGLE = 5  # degrees that a grounded object turns at least, where the range allows it
LEAST_INSIDE = 0.9  # of what is seen of a grounded object that stays in the picture when it turns
MOST_ANGLE = 12  # degrees that a grounded object turns at most: what leans further seems to fall
MOST_LIFTED = 0.08  # of the side of a square as large as the object's box: mean way of what it rests on
MOST_SLOPE = 14.0  # degrees of what a grounded object rests on: a car that stood on a slope is not turned further up
WIDE = 0.3  # of the object's size, from which on the slope of what it rests on can be told
MORE_OVERHANG = 0.05  # of the object's size: how far its middle may come beside what it stands on
LEAST_CONTACT = 0.6  # of the width on which the object stood before that it stands on when it is turned
_FLIPPED = {"upside-down": "turning the object upside down", "left-right": "mirroring the object"}


@dataclass(frozen=True)
class Direction(ComposedEdit):
    """Turn the object by whole degrees drawn uniformly from `low` to `high`, anticlockwise, or by a given angle."""

    attribute: ClassVar[Attribute] = "direction"
    version: ClassVar[int] = (
        5  # 5, 4, 3: other fills and limits; 2: the fill is judged, shadows leave, cut objects stay at their border
    )
    later: ClassVar[tuple[str, ...]] = ("grounded",)
    low: int = -45
    high: int = 45
    angle: float | None = None
    rate: float | None = None  # zoom to this rate first; ImageNet-E's release does so at 0.05
    faithful: bool = False  # turn about the picture's centre, as the release does, not the object's
    grounded: bool = False  # zoom about the foot, turn only as far as the object still stands, with a contact shadow

    def __post_init__(self) -> None:
        check_rate(self.rate)
        if self.low > self.high:
            raise UserError(f"low, high: expected low <= high, got {self.low} and {self.high}")

    @property
    def picture_version(self) -> int:
        """Grounded pictures are newer: they turn less far, so that the object keeps its footing and stands upright."""
        return self.version + 2 * self.grounded

    @property
    def level(self) -> str:
        """The angle or its range, with the rate where there is one: "-45..45", "30@0.05"."""
        angle = f"{self.low}..{self.high}" if self.angle is None else f"{self.angle:g}"
        return angle if self.rate is None else f"{angle}@{self.rate:g}"

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        both_ways = _SYMMETRIC_RANGE.fullmatch(level)
        if both_ways:
            return f"turning the object by up to {both_ways[1]}°"
        return (
            f"turning the object by {level}°"
            if _ANGLE.fullmatch(level)
            else describe_level("turning the object", level)
        )

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """The object at the same size where it stood; the original where the size is kept."""
        return reference_at_rate(level)

    @classmethod
    def crossed(cls, name: str, level: str) -> tuple[EditLevel, EditLevel] | None:
        """The size alone, and the edit at the object's own size."""
        return cross_with_size(name, level)

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """The object at the same size where it stood."""
        return require_size(self.rate, self.grounded, self.faithful)

    @property
    def shows_fill(self) -> bool:
        """The object leaves part of its place."""
        return True

    @property
    def moves_object(self) -> bool:
        """It does."""
        return True

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` where what the object hangs on would stay behind."""
        if self.grounded:
            check_whole(subject)
            check_cutout(subject)

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Draw an angle and turn the object."""
        cut, sides = subject.cutout, subject.cut_sides
        if len(sides) > 1 or (self.rate is None and "top" in sides):
            refuse_cut(sides, "turning it")
        about = anchor_point(cut.alpha, sides, self.grounded) if sides else None
        matrix = zoom((0, 0), 1) if self.rate is None else zoom_to_rate(cut.alpha, self.rate, self.faithful, about)
        if self.grounded and self.rate is not None and not sides:
            matrix = zoom_about_foot(cut.alpha, matrix)
        if self.grounded:
            return place_in_scene(subject, self._turn_on_ground(subject, matrix, rng))
        turned = self._turn(subject, matrix, self._draw(rng))
        return Composition(Placed(subject.object_layer, turned, Plane(subject.visible_background)))

    def _draw(self, rng: np.random.Generator) -> float:
        return float(rng.integers(self.low, self.high + 1)) if self.angle is None else self.angle

    def _turn(self, subject: Subject, matrix: Matrix, angle: float) -> Matrix:
        """The zoomed object turned about the border that cuts it, its own middle or the picture's."""
        alpha = subject.cutout.alpha
        if subject.cut_sides:
            return turn_about_border(alpha, matrix, angle, subject.cut_sides[0])
        height, width = alpha.shape
        centre = ((width - 1) / 2, (height - 1) / 2)
        if not self.faithful:  # the middle of the object's box, where the zoom takes it
            centre = cast("tuple[float, float]", tuple(matrix @ (*object_box(alpha).centre, 1)))
        return _compose(matrix, np.asarray(cv2.getRotationMatrix2D(centre, angle, 1.0), np.float64))

    def _turn_on_ground(self, subject: Subject, matrix: Matrix, rng: np.random.Generator) -> Matrix:
        """The object turned by an angle at which it still stands; raises `Unusable` where there is none."""
        angles = [self.angle] if self.angle is not None else [float(angle) for angle in range(self.low, self.high + 1)]
        visible = [angle for angle in angles if LEAST_ANGLE <= abs(angle) <= MOST_ANGLE]
        visible = visible or [angle for angle in angles if abs(angle) <= MOST_ANGLE]
        if not visible:
            raise Unusable(f"turned by more than {MOST_ANGLE} degrees the object would seem to fall")
        reason = Unusable(f"turned by {visible[0]:g} degrees the object would hang in the air")
        if len(visible) > 1:
            reason = Unusable(f"turned by {LEAST_ANGLE} degrees or more the object would hang in the air")
        before = _Stance.of(subject.cutout.alpha, matrix)
        for place_of_angle in rng.permutation(len(visible)):
            try:
                turned = self._stand(subject, before, visible[place_of_angle])
            except Unusable as error:  # too little of an object at the border would be left: another angle may do
                reason = error
                continue
            if turned is not None:
                return turned
        raise reason

    def _stand(self, subject: Subject, before: _Stance, angle: float) -> Matrix | None:
        """The object turned and set down where its foot was; None where what it rests on would be in the air."""
        alpha, matrix = subject.cutout.alpha, before.matrix
        turned = np.array(self._turn(subject, matrix, angle), np.float64)
        if not subject.cut_sides:
            turned[1, 2] += before.lowest - find_lowest(alpha, turned)
        after = place_alpha(alpha, turned)
        if np.count_nonzero(hard_object(after)) < LEAST_INSIDE * before.seen:
            raise Unusable(f"turned by {angle:g} degrees part of the object would be outside the picture")
        if "bottom" in subject.cut_sides:  # what it stands on is not in the picture
            return turned
        check_foot_ground(subject, turned)
        stood, stands = before.footing, measure_footing(after)
        falls = stands.contact < LEAST_CONTACT * stood.contact or stands.overhang > stood.overhang + MORE_OVERHANG
        leans = measure_slope(alpha, turned, WIDE) > max(MOST_SLOPE, measure_slope(alpha, matrix, WIDE) - LEAST_ANGLE)
        return None if falls or leans or measure_lift(alpha, matrix, turned) > MOST_LIFTED else turned


@dataclass(frozen=True)
class _Stance:
    """How an object stands under a map; measured once for all angles that are tried."""

    matrix: Matrix
    alpha: NDArray[np.uint8]  # under the map
    lowest: float  # row of its lowest point

    @classmethod
    def of(cls, alpha: NDArray[np.uint8], matrix: Matrix) -> _Stance:
        """That of an object of this alpha."""
        return cls(matrix, place_alpha(alpha, matrix), find_lowest(alpha, matrix))

    @cached_property
    def seen(self) -> int:
        """The object's pixels inside the picture."""
        return int(np.count_nonzero(hard_object(self.alpha)))

    @cached_property
    def footing(self) -> Footing:
        """What it stands on."""
        return measure_footing(self.alpha)


@dataclass(frozen=True)
class Flip(ComposedEdit):
    """Mirror the object about the middle of its own box."""

    attribute: ClassVar[Attribute] = "direction"
    version: ClassVar[int] = (
        5  # 5, 4, 3: other fills and limits; 2: the fill is judged, shadows leave, cut objects stay at their border
    )
    axis: Literal["left-right", "upside-down"] = "left-right"

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return _FLIPPED.get(level, f"flipping the object ({level})")

    @property
    def shows_fill(self) -> bool:
        """The object leaves part of its place."""
        return True

    @property
    def moves_object(self) -> bool:
        """It does."""
        return True

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Mirror the object, pixel for pixel."""
        across_border = ("left", "right") if self.axis == "left-right" else ("top", "bottom")
        refuse_cut([side for side in subject.cut_sides if side in across_border], "mirroring it")
        cut = subject.cutout
        across, down = object_box(cut.alpha).centre
        if self.axis == "left-right":
            matrix = np.array([[-1, 0, 2 * across], [0, 1, 0]], np.float64)
        else:
            matrix = np.array([[1, 0, 0], [0, -1, 2 * down]], np.float64)
        return Composition(Placed(subject.object_layer, matrix, Plane(subject.visible_background)))


def _compose(first: Matrix, second: Matrix) -> Matrix:
    """The map that applies `first`, then `second`."""
    return np.hstack([second[:, :2] @ first[:, :2], second[:, :2] @ first[:, 2:] + second[:, 2:]])


STEEPEST = 75  # degrees; beyond it a flat object is hardly more than a line
DISTANCE = 2.5  # of the eye from the object, in lengths of its longer side


@dataclass(frozen=True)
class Tilt(ComposedEdit):
    """Turn the object about an upright axis (yaw) and a level one (pitch), seen in perspective as if it were flat."""

    attribute: ClassVar[Attribute] = "direction"
    version: ClassVar[int] = (
        5  # 5, 4, 3: other fills and limits; 2: the fill is judged, shadows leave, cut objects stay at their border
    )
    yaw: float = 40.0  # degrees; above 0 the right side goes back
    pitch: float = 0.0  # degrees; above 0 the top goes back

    def __post_init__(self) -> None:
        for name, angle in (("yaw", self.yaw), ("pitch", self.pitch)):
            if abs(angle) > STEEPEST:
                raise UserError(f"{name}: expected degrees from -{STEEPEST} to {STEEPEST}, got {angle:g}")

    @property
    def level(self) -> str:
        """Yaw and pitch in degrees: "40/0"."""
        return f"{self.yaw:g}/{self.pitch:g}"

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        yaw, slash, pitch = level.partition("/")
        return f"tilting the object (yaw {yaw}°, pitch {pitch}°)" if slash else f"tilting the object ({level})"

    @property
    def shows_fill(self) -> bool:
        """The object leaves part of its place."""
        return True

    @property
    def moves_object(self) -> bool:
        """It does."""
        return True

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Tilt the object inside its old box, so that nothing is cut off."""
        refuse_cut(subject.cut_sides, "tilting it")
        cut = subject.cutout
        box = BoundingBox(*(int(value) for value in cv2.boundingRect(cut.alpha)))
        tilt = _perspective(box, math.radians(self.yaw), math.radians(self.pitch))
        matrix = _fit_into_box(tilt, box)
        return Composition(Placed(subject.object_layer, matrix, Plane(subject.visible_background)))


def _perspective(box: BoundingBox, yaw: float, pitch: float) -> Matrix:
    """The plane through the box's middle turned by both angles, in perspective."""
    distance = DISTANCE * max(box.width, box.height)
    about_upright = [(math.cos(yaw), 0, -math.sin(yaw)), (0, 1, 0), (math.sin(yaw), 0, math.cos(yaw))]
    about_level = [(1, 0, 0), (0, math.cos(pitch), math.sin(pitch)), (0, -math.sin(pitch), math.cos(pitch))]
    turn = np.array(about_level) @ np.array(about_upright)
    # A point of the plane goes to turn @ (x, y, 0); points behind the plane (depth above 0) are scaled down.
    seen = np.array([turn[0], turn[1], turn[2] / distance])
    seen[:, 2] = (0, 0, 1)
    across, down = box.centre
    to_middle = np.array([[1, 0, -across], [0, 1, -down], [0, 0, 1]], np.float64)
    return np.asarray(np.linalg.inv(to_middle) @ seen @ to_middle, np.float64)


def _fit_into_box(tilt: Matrix, box: BoundingBox) -> Matrix:
    """The tilt, shrunk and moved so that the box stays inside its old place."""
    right, bottom = box.left + box.width - 1, box.top + box.height - 1
    ends = map_points(tilt, [(x, y) for x in (box.left, right) for y in (box.top, bottom)])
    low, high = ends.min(axis=0), ends.max(axis=0)
    lengths = np.maximum(np.array([box.width, box.height]) - 1, 1)
    factor = min(1.0, float((lengths / np.maximum(high - low, 1e-6)).min()))
    shift = np.array(box.centre) - factor * (low + high) / 2
    return np.array([[factor, 0, shift[0]], [0, factor, shift[1]], [0, 0, 1]], np.float64) @ tilt
