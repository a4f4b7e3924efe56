"""Edits that take the object away: removed and filled, or its box covered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Plane
from counterfoil.edits.edit_protocol import ComposedEdit, Edit, Supplied
from counterfoil.edits.fill import check_background
from counterfoil.edits.subject import Subject
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class ObjectRemoved(ComposedEdit):
    """Take the object away and fill what was behind it: a model that is still right reads the background."""

    attribute: ClassVar[Attribute] = "presence"
    version: ClassVar[int] = 5  # 5, 4, 3: other fills and limits; 2: the fill is judged, the shadow leaves too

    @property
    def level(self) -> str:
        """Always "removed"."""
        return "removed"

    @property
    def shows_fill(self) -> bool:
        """The object is gone."""
        return True

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Return the filled background without the object."""
        subject.check_object()
        return Composition(Plane(subject.bare_background), np.zeros_like(subject.picture.alpha))


@dataclass(frozen=True)
class ObjectBox(Edit):
    """Cover the box around the object, so that not even its outline is left: black, or tiled with background."""

    attribute: ClassVar[Attribute] = "presence"
    fill: Literal["black", "tiled"] = "black"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Cover the bounding box of the object."""
        subject.check_object()
        left, top, width, height = cv2.boundingRect(subject.alpha)
        check_background(1 - width * height / subject.picture.alpha.size)
        window = (slice(top, top + height), slice(left, left + width))
        image = subject.picture.image.copy()
        image[window] = 0 if self.fill == "black" else _tile_strip(subject.picture.image, window)
        return Picture(image, np.zeros_like(subject.picture.alpha))


def _tile_strip(image: Bytes, window: tuple[slice, slice]) -> Bytes:
    """The window filled with the largest rectangle of background: all above, below, left or right of the box."""
    rows, columns = window
    strips = (image[: rows.start], image[rows.stop :], image[:, : columns.start], image[:, columns.stop :])
    strip = max(strips, key=lambda strip: strip.size)
    height, width = rows.stop - rows.start, columns.stop - columns.start
    times = (-(-height // strip.shape[0]), -(-width // strip.shape[1]), 1)
    return np.tile(strip, times)[:height, :width]
