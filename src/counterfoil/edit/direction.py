"""The same object turned in the picture's plane."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np

from counterfoil.edit.base import Edit, Subject, Supplied, describe_level
from counterfoil.edit.cutting import Matrix, place
from counterfoil.edit.geometry import check_rate, object_box, zoom, zoom_to_rate
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture

_BOTH_WAYS = re.compile(r"-([\d.]+)\.\.\1")
_ANGLE = re.compile(r"-?[\d.]+")
_FLIPPED = {"upside-down": "turning the object upside down", "left-right": "mirroring the object"}


@dataclass(frozen=True)
class Direction(Edit):
    """Turn the object by whole degrees drawn uniformly from `low` to `high`, anticlockwise, or by a given angle."""

    attribute: ClassVar[Attribute] = "direction"
    low: int = -45
    high: int = 45
    angle: float | None = None
    rate: float | None = None  # zoom to this rate first; ImageNet-E's release does so at 0.05
    faithful: bool = False  # turn about the picture's centre, as the release does, instead of the object's own

    def __post_init__(self) -> None:
        check_rate(self.rate)
        if self.low > self.high:
            raise UserError(f"low, high: expected low <= high, got {self.low} and {self.high}")

    @property
    def level(self) -> str:
        """The angle or its range, with the rate where there is one: "-45..45", "30@0.05"."""
        angle = f"{self.low}..{self.high}" if self.angle is None else f"{self.angle:g}"
        return angle if self.rate is None else f"{angle}@{self.rate:g}"

    @classmethod
    def describe(cls, level: str) -> str:
        """What was done at this level, as the subject of a sentence."""
        both_ways = _BOTH_WAYS.fullmatch(level)
        if both_ways:
            return f"turning the object by up to {both_ways[1]}°"
        return (
            f"turning the object by {level}°"
            if _ANGLE.fullmatch(level)
            else describe_level("turning the object", level)
        )

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Draw an angle and turn the object."""
        cut = subject.cutout
        angle = float(rng.integers(self.low, self.high + 1)) if self.angle is None else self.angle
        matrix = zoom((0, 0), 1) if self.rate is None else zoom_to_rate(cut.alpha, self.rate, self.faithful)
        height, width = cut.alpha.shape
        # Zooming keeps the centre of the box where it is.
        centre = ((width - 1) / 2, (height - 1) / 2) if self.faithful else object_box(cut.alpha).centre
        return place(
            cut,
            _after(matrix, np.asarray(cv2.getRotationMatrix2D(centre, angle, 1.0), np.float64)),
            subject.background,
        )


@dataclass(frozen=True)
class Flip(Edit):
    """Mirror the object about the middle of its own box."""

    attribute: ClassVar[Attribute] = "direction"
    axis: Literal["left-right", "upside-down"] = "left-right"

    @property
    def level(self) -> str:
        """The axis: "left-right", "upside-down"."""
        return self.axis

    @classmethod
    def describe(cls, level: str) -> str:
        """What was done at this level, as the subject of a sentence."""
        return _FLIPPED.get(level, f"flipping the object ({level})")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Mirror the object, pixel for pixel."""
        cut = subject.cutout
        across, down = object_box(cut.alpha).centre
        if self.axis == "left-right":
            matrix = np.array([[-1, 0, 2 * across], [0, 1, 0]], np.float64)
        else:
            matrix = np.array([[1, 0, 0], [0, -1, 2 * down]], np.float64)
        return place(cut, matrix, subject.background)


def _after(first: Matrix, second: Matrix) -> Matrix:
    """The map that does `first`, then `second`."""
    return np.hstack([second[:, :2] @ first[:, :2], second[:, :2] @ first[:, 2:] + second[:, 2:]])
