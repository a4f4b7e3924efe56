"""The control of the fill: the object untouched, a hole of its shape cut and filled elsewhere in the background.

`control` pastes the object back over the hole that it fills, so it hides the fill. This one shows it: its drop is what
a visible fill costs behind a moved, shrunk or removed object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, ShownFill, Supplied
from counterfoil.edits.fill import find_hole
from counterfoil.edits.fill_choice import Fill
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.types import Attribute, Picture

GRAIN = 128  # shorter side in pixels at which a place is looked for
SCALES = tuple(0.9**step for step in range(16))  # of the hole's sides, the largest that fits is taken
SMALLEST = 0.03  # share of the picture; a smaller hole says little about the fill behind an object

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class FillControl(Edit):
    """Cut a hole of the object's shape, the largest that fits, out of the background beside it, and fill it."""

    attribute: ClassVar[Attribute] = "control"
    version: ClassVar[int] = 5  # 4: beside what stands out with the object; 5, 3, 2: other fills and limits

    @property
    def level(self) -> str:
        """Always "beside"."""
        return "beside"

    @property
    def shows_fill(self) -> bool:
        """That is what it is for."""
        return True

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return "a filled hole beside the untouched object"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Fill the hole as the hole behind the object would be filled; nothing is copied from the object."""
        fill, _ = _fill_elsewhere(subject, rng)
        if fill.reason:
            raise Unusable(fill.reason)
        return Picture(fill.image.copy(), subject.cutout.alpha.copy())

    def find_shown_fill(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> ShownFill | None:
        """That of the hole beside the object."""
        fill, hole = _fill_elsewhere(subject, rng)
        return ShownFill(fill.name, float(hole.mean()))


def _fill_elsewhere(subject: Subject, rng: np.random.Generator) -> tuple[Fill, Flags]:
    """The fill of a hole beside the object, and the hole."""
    object_hole = find_hole(subject.cutout.alpha)
    taken = np.asarray(object_hole | subject.attachments.region)  # a face that wears the object is no background
    hole = find_room(object_hole, rng, taken)
    return subject.fill_elsewhere(hole, taken), hole


def find_room(shape: Flags, rng: np.random.Generator, beside: Flags | None = None) -> Flags:
    """The largest hole of this shape that fits beside it, at a random place; raises `Unusable` where none does.

    `beside`: what the hole must not meet, the shape itself unless given.
    """
    occupied = shape if beside is None else beside
    height, width = shape.shape
    scale = min(1.0, GRAIN / min(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    taken = np.asarray(cv2.resize(occupied.astype(np.uint8), size, interpolation=cv2.INTER_AREA)) > 0
    left, top, box_width, box_height = cv2.boundingRect(shape.astype(np.uint8))
    cut = shape[top : top + box_height, left : left + box_width].astype(np.uint8)
    for factor in SCALES:
        hole = np.asarray(cv2.resize(cut, _scaled(cut.shape, factor), interpolation=cv2.INTER_NEAREST)) > 0
        if hole.sum() < SMALLEST * shape.size:
            break
        places = _free_places(taken, hole, scale)
        if len(places):
            return _put(hole, occupied, places[rng.integers(len(places))] / scale)
    raise Unusable(f"the background beside the object has no room for a hole of {SMALLEST:.0%} of the picture")


def _scaled(shape: tuple[int, ...], factor: float) -> tuple[int, int]:
    return max(1, round(shape[1] * factor)), max(1, round(shape[0] * factor))


def _free_places(taken: Flags, hole: Flags, scale: float) -> NDArray[np.intp]:
    """The upper left corners, (places, 2) down and right, at which the hole meets nothing that is taken."""
    small = cv2.resize(hole.astype(np.float32), _scaled(hole.shape, scale), interpolation=cv2.INTER_AREA)
    small = (np.asarray(small) > 0).astype(np.float32)
    if small.shape[0] > taken.shape[0] or small.shape[1] > taken.shape[1]:
        return np.empty((0, 2), np.intp)
    overlap = cv2.matchTemplate(taken.astype(np.float32), small, cv2.TM_CCORR)
    return np.argwhere(np.asarray(overlap) < 0.5)


def _put(hole: Flags, shape: Flags, corner: NDArray[np.float64]) -> Flags:
    """The hole at a corner of an empty plane, kept inside the plane and off the shape."""
    height, width = shape.shape
    top = int(min(max(0, round(float(corner[0]))), height - hole.shape[0]))
    left = int(min(max(0, round(float(corner[1]))), width - hole.shape[1]))
    plane = np.zeros_like(shape)
    plane[top : top + hole.shape[0], left : left + hole.shape[1]] = hole
    return np.asarray(plane & ~shape)
