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
PLACES = 12  # that are drawn: of these the one is taken where the photo is as even as it is in the middle of them
COARSE = 2.0  # pixels at that size: finer grain does not make a place uneven

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class FillControl(Edit):
    """Cut a hole of the object's shape, the largest that fits, out of the background beside it, and fill it."""

    attribute: ClassVar[Attribute] = "control"
    version: ClassVar[int] = 5  # 5: where it is as even as mostly; 4: beside what stands out too; 5, 3, 2: other fills

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
    hole = find_room(object_hole, rng, taken, subject.picture.image)
    return subject.fill_elsewhere(hole, taken), hole


def find_room(shape: Flags, rng: np.random.Generator, beside: Flags | None = None, image: Bytes | None = None) -> Flags:
    """The largest hole of this shape that fits beside it, at a random place; raises `Unusable` where none does.

    `beside`: what the hole must not meet, the shape itself unless given. `image`: the photo; of several random places
    the one in the middle of them by how even it is there is taken, so that neither the sky nor a horizon decides.
    """
    occupied = shape if beside is None else beside
    height, width = shape.shape
    scale = min(1.0, GRAIN / min(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    taken = np.asarray(cv2.resize(occupied.astype(np.uint8), size, interpolation=cv2.INTER_AREA)) > 0
    left, top, box_width, box_height = cv2.boundingRect(shape.astype(np.uint8))
    own = shape[top : top + box_height, left : left + box_width].astype(np.uint8)
    for factor in SCALES:
        hole = np.asarray(cv2.resize(own, _scaled(own.shape, factor), interpolation=cv2.INTER_NEAREST)) > 0
        if hole.sum() < SMALLEST * shape.size:
            break
        places = _free_places(taken, hole, scale)
        if len(places):
            if image is None:
                return _put(hole, occupied, places[rng.integers(len(places))] / scale)
            drawn = places[rng.choice(len(places), min(PLACES, len(places)), replace=False)]
            colours = _reduce_colours(image, size)
            cuts = [_put(hole, occupied, place / scale) for place in drawn]
            return sorted(cuts, key=lambda cut: _measure_unevenness(colours, cut))[len(cuts) // 2]
    raise Unusable(f"the background beside the object has no room for a hole of {SMALLEST:.0%} of the picture")


def _reduce_colours(image: Bytes, size: tuple[int, int]) -> Floats:
    """A small copy without its grain, in CIE Lab."""
    small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.float32) / np.float32(255)
    lab = cv2.cvtColor(cv2.GaussianBlur(small, (0, 0), COARSE), cv2.COLOR_RGB2LAB)
    return np.asarray(lab, np.float32)


def _measure_unevenness(colours: Floats, hole: Flags) -> float:
    """How much the colours of a place vary."""
    share = cv2.resize(hole.astype(np.float32), colours.shape[1::-1], interpolation=cv2.INTER_AREA)
    inside = colours[np.asarray(share) > 0.5]
    return float(inside.var(axis=0).sum()) if len(inside) else float("inf")


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
