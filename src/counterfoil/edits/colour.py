"""Edits of the object's colour: hue, grey, brightness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import object_window
from counterfoil.edits.edit_protocol import LEAST_CHANGE_OF_COLOUR, Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]


def _colours(subject: Subject) -> Bytes:
    """The object's own colours in its window."""
    cut = subject.cutout
    return cut.image[object_window(cut.alpha)]


@dataclass(frozen=True)
class ObjectHue(Edit):
    """Turn every hue of the object by the same angle, whole degrees drawn at random unless given."""

    attribute: ClassVar[Attribute] = "colour"
    words: ClassVar[str] = "another hue of the object"
    shift: float | None = None  # degrees on the colour circle: 120 takes red to green

    @property
    def level(self) -> str:
        """The angle: "120", or "random"."""
        return "random" if self.shift is None else f"{self.shift:g}"

    @property
    def least_change(self) -> float:
        """A fifth of the object: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Keep saturation and value; grey stays grey."""
        shift = float(rng.integers(1, 360)) if self.shift is None else self.shift
        # In floating point: OpenCV's eight-bit hue would round each colour.
        hsv = cv2.cvtColor(_colours(subject) / np.float32(255), cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0] + np.float32(shift)) % 360
        turned = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
        return subject.repaint(np.rint(np.clip(turned, 0, 1) * 255).astype(np.uint8))


@dataclass(frozen=True)
class ObjectGrayscale(Edit):
    """Take the object's colours away: 0.299 red + 0.587 green + 0.114 blue."""

    attribute: ClassVar[Attribute] = "colour"
    words: ClassVar[str] = "the object without colour"

    @property
    def level(self) -> str:
        """Always "gray"."""
        return "gray"

    @property
    def least_change(self) -> float:
        """A fifth of the object: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Keep only the luma of each pixel."""
        gray = cv2.cvtColor(_colours(subject), cv2.COLOR_RGB2GRAY)
        return subject.repaint(np.asarray(cv2.cvtColor(gray, cv2.COLOR_GRAY2RGB), np.uint8))


@dataclass(frozen=True)
class ObjectBrightness(Edit):
    """Multiply the object's levels by a factor; what exceeds 255 is white."""

    attribute: ClassVar[Attribute] = "colour"
    factor: float = 1.5

    def __post_init__(self) -> None:
        if not 0 <= self.factor < 256:
            raise UserError(f"factor: expected 0 (black) to 255, got {self.factor:g}")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Make the object lighter or darker."""
        table = np.clip(np.rint(np.arange(256) * self.factor), 0, 255).astype(np.uint8)
        return subject.repaint(table[_colours(subject)])
