"""The same object in other colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.cutting import cutout, object_window, repainted
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]


def _colours(picture: Picture) -> Bytes:
    """The object's own colours in its window."""
    cut = cutout(picture)
    return cut.image[object_window(cut.alpha)]


@dataclass(frozen=True)
class ObjectHue:
    """Turn every hue of the object by the same angle, whole degrees drawn at random unless given."""

    attribute: ClassVar[Attribute] = "colour"
    shift: float | None = None  # degrees on the colour circle: 120 takes red to green

    @property
    def level(self) -> str:
        """The angle: "120", or "random"."""
        return "random" if self.shift is None else f"{self.shift:g}"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Keep saturation and value; grey stays grey."""
        shift = float(rng.integers(1, 360)) if self.shift is None else self.shift
        # In floating point: the eight bits of OpenCV's hue would cost each colour some levels.
        hsv = cv2.cvtColor(_colours(picture) / np.float32(255), cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0] + np.float32(shift)) % 360
        turned = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
        return repainted(picture, np.rint(np.clip(turned, 0, 1) * 255).astype(np.uint8))


@dataclass(frozen=True)
class ObjectGrayscale:
    """Take the object's colours away: 0.299 red + 0.587 green + 0.114 blue."""

    attribute: ClassVar[Attribute] = "colour"

    @property
    def level(self) -> str:
        """Always "gray"."""
        return "gray"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Leave the lightness of each pixel alone."""
        gray = cv2.cvtColor(_colours(picture), cv2.COLOR_RGB2GRAY)
        return repainted(picture, np.asarray(cv2.cvtColor(gray, cv2.COLOR_GRAY2RGB), np.uint8))


@dataclass(frozen=True)
class ObjectBrightness:
    """Multiply the object's levels by a factor; what exceeds 255 is white."""

    attribute: ClassVar[Attribute] = "colour"
    factor: float = 1.5

    def __post_init__(self) -> None:
        if not 0 <= self.factor < 256:
            raise UserError(f"factor: expected 0 (black) to 255, got {self.factor:g}")

    @property
    def level(self) -> str:
        """The factor: "1.5"."""
        return f"{self.factor:g}"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Lighten or darken."""
        table = np.clip(np.rint(np.arange(256) * self.factor), 0, 255).astype(np.uint8)
        return repainted(picture, table[_colours(picture)])
