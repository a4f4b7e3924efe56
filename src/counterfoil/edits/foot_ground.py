"""The ground under the foot of an object that is moved: of the kind on which it stood, or the object would hang there.

A bird that stood on a rock is not moved above the sea behind it, and a bird that the border cuts does not turn or
shrink off its rock.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import Matrix, map_points
from counterfoil.edits.donor_scene import classify_support
from counterfoil.edits.geometry import object_box
from counterfoil.edits.scene import CLOSE
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.object_mask import hard_object

DEPTHS = (0.02, 0.05)  # of the picture's shorter side: how far below the foot the ground is looked at
NARROWEST = 0.04  # of the shorter side: of the piece of ground that is looked at
MOVED = 0.02  # of the shorter side: a foot that moves less stays where it stood
KIND = 12.0  # levels of CIE Lab by which another kind of ground differs
FINER = 1.0  # doublings by which its fineness does
SMOOTH = 1.5  # levels: ground that is smoother than this is even for the eye

Floats = NDArray[np.float32]
Point = tuple[float, float]


class FootGround(NamedTuple):
    """The ground of a picture without its object, as it is under a foot at any place."""

    shape: tuple[int, ...]
    sums: NDArray[np.float64]  # of CIE Lab and fineness, as of `cv2.integral`
    foot: Point  # middle and lower edge of what the object stands on, right and down
    width: float  # of what it stands on

    @classmethod
    def of(cls, subject: Subject) -> FootGround:
        """For the object of a photo, on its filled background."""
        return subject.once(_measure_visible_ground)

    @classmethod
    def of_photo(cls, subject: Subject) -> FootGround:
        """For the object where it stands, for pictures that show no fill."""
        return subject.once(_measure_ground)

    def describe_under_foot(self, depth: float) -> Floats | None:
        """CIE Lab and fineness of the ground so far below the object's foot; None beside the picture."""
        stood = self._describe(self.foot, 1.0, depth)
        return None if stood is None else np.asarray(stood, np.float32)

    def suits(self, foot: Point, scale: float = 1.0) -> bool:
        """Whether the ground there is of the kind on which the object stood."""
        return all(self._is_alike(foot, scale, depth) for depth in DEPTHS)

    def _is_alike(self, foot: Point, scale: float, depth: float) -> bool:
        here, stood = self._describe(foot, scale, depth), self._describe(self.foot, 1.0, depth)
        if here is None or stood is None:
            return True
        alike = float(np.linalg.norm(here[:3] - stood[:3])) <= KIND
        return alike and measure_finer(float(here[3]), float(stood[3])) <= FINER

    def _describe(self, foot: Point, scale: float, depth: float) -> NDArray[np.float64] | None:
        """The mean colour and fineness of the ground so far below a foot; None beside the picture."""
        height, width = self.shape[:2]
        side = min(height, width)
        half = max(NARROWEST * side, scale * self.width) / 2
        left, right = max(0, round(foot[0] - half)), min(width, round(foot[0] + half))
        if right <= left:
            return None
        bottom = min(height, round(foot[1] + depth * side))
        top = max(0, bottom - max(1, round(depth * side)))  # at the lower border, what is behind the foot
        if bottom <= top:
            return None
        total = self.sums[bottom, right] - self.sums[top, right] - self.sums[bottom, left] + self.sums[top, left]
        return np.asarray(total / ((bottom - top) * (right - left)), np.float64)


def find_fineness(image: NDArray[np.uint8]) -> Floats:
    """By how many levels each pixel differs from its mean around."""
    gray = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.float32)
    return np.asarray(np.abs(gray - cv2.GaussianBlur(gray, (0, 0), 2)), np.float32)


def measure_finer(one: float, other: float) -> float:
    """By how many doublings two grounds differ in fineness."""
    return abs(float(np.log2((one + SMOOTH) / (other + SMOOTH))))


def check_foot_ground(subject: Subject, matrix: Matrix) -> None:
    """Raises `Unusable` where an object that stands would come to another kind of ground, or beside it."""
    if not stands_on_ground(subject):
        return
    ground = FootGround.of(subject)
    foot = map_points(np.vstack([matrix, (0, 0, 1)]), [ground.foot])[0]
    if float(np.hypot(*(foot - ground.foot))) < MOVED * min(ground.shape[:2]):
        return
    scale = float(abs(np.linalg.det(matrix[:, :2]))) ** 0.5
    if not ground.suits((float(foot[0]), float(foot[1])), scale):
        raise Unusable("the object's foot would come to another kind of ground than the one on which it stood")


def stands_on_ground(subject: Subject) -> bool:
    """Whether an object stands on ground that its photo shows."""
    return classify_support(subject) == "ground"


def _measure_visible_ground(subject: Subject) -> FootGround:
    return _measure(subject, subject.visible_background)


def _measure_ground(subject: Subject) -> FootGround:
    return _measure(subject, subject.background)


def _measure(subject: Subject, background: NDArray[np.uint8]) -> FootGround:
    alpha = subject.cutout.alpha
    opaque, box = hard_object(alpha), object_box(alpha)
    size = float(np.sqrt(box.width * box.height))
    lowest = np.where(opaque.any(axis=0), alpha.shape[0] - np.argmax(opaque[::-1], axis=0), 0)
    columns = np.flatnonzero(lowest >= box.top + box.height - CLOSE * size)
    fine = find_fineness(background)
    lab = cv2.cvtColor(np.asarray(background, np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)
    sums = np.asarray(cv2.integral(np.dstack([lab, fine]), sdepth=cv2.CV_64F), np.float64)
    foot = float(columns[0] + columns[-1] + 1) / 2, float(box.top + box.height)
    return FootGround(alpha.shape, sums, foot, float(columns[-1] - columns[0] + 1))
