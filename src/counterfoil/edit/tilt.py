"""The same object turned out of the picture's plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from counterfoil.edit.base import Edit, Subject, Supplied
from counterfoil.edit.cutting import Matrix, moved, place
from counterfoil.edit.geometry import Box
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture

STEEPEST = 75  # degrees; beyond it an object that is flat is hardly more than a line
DISTANCE = 2.5  # of the eye from the object, in lengths of its longer side


@dataclass(frozen=True)
class Tilt(Edit):
    """Turn the object about an upright axis (yaw) and a level one (pitch), seen in perspective as if it were flat."""

    attribute: ClassVar[Attribute] = "direction"
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
        """What was done at this level, as the subject of a sentence."""
        yaw, slash, pitch = level.partition("/")
        return f"tilting the object (yaw {yaw}°, pitch {pitch}°)" if slash else f"tilting the object ({level})"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Tilt the object inside the box it had, so that nothing of it is cut off."""
        cut = subject.cutout
        box = Box(*(int(value) for value in cv2.boundingRect(cut.alpha)))
        tilt = _perspective(box, math.radians(self.yaw), math.radians(self.pitch))
        return place(cut, _fitted(tilt, box), subject.background)


def _perspective(box: Box, yaw: float, pitch: float) -> Matrix:
    """The plane through the box's middle turned by both angles and seen from in front."""
    distance = DISTANCE * max(box.width, box.height)
    about_upright = [(math.cos(yaw), 0, -math.sin(yaw)), (0, 1, 0), (math.sin(yaw), 0, math.cos(yaw))]
    about_level = [(1, 0, 0), (0, math.cos(pitch), math.sin(pitch)), (0, -math.sin(pitch), math.cos(pitch))]
    turn = np.array(about_level) @ np.array(about_upright)
    # A point of the plane goes to turn @ (x, y, 0); what lies behind the plane (depth above 0) looks smaller.
    seen = np.array([turn[0], turn[1], turn[2] / distance])
    seen[:, 2] = (0, 0, 1)
    across, down = box.centre
    to_middle = np.array([[1, 0, -across], [0, 1, -down], [0, 0, 1]], np.float64)
    return np.asarray(np.linalg.inv(to_middle) @ seen @ to_middle, np.float64)


def _fitted(tilt: Matrix, box: Box) -> Matrix:
    """The tilt, shrunk and moved back where perspective takes the box beyond its old place."""
    right, bottom = box.left + box.width - 1, box.top + box.height - 1
    ends = moved(tilt, [(x, y) for x in (box.left, right) for y in (box.top, bottom)])
    low, high = ends.min(axis=0), ends.max(axis=0)
    lengths = np.maximum(np.array([box.width, box.height]) - 1, 1)
    factor = min(1.0, float((lengths / np.maximum(high - low, 1e-6)).min()))
    shift = np.array(box.centre) - factor * (low + high) / 2
    return np.array([[factor, 0, shift[0]], [0, factor, shift[1]], [0, 0, 1]], np.float64) @ tilt
