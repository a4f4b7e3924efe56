"""Changes of the whole picture: JPEG, fewer pixels, no colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from counterfoil.edits.composition import Composition, Grey, Plane
from counterfoil.edits.corruptions.digital import compress_jpeg
from counterfoil.edits.edit_protocol import LEAST_CHANGE_OF_COLOUR, ComposedEdit, Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class Jpeg(Edit):
    """Store the picture as a JPEG file of a given quality and read it again."""

    attribute: ClassVar[Attribute] = "corruption"
    quality: int = 30

    def __post_init__(self) -> None:
        if not 1 <= self.quality <= 100:
            raise UserError(f"quality: expected 1 to 100, got {self.quality}")

    @property
    def uses_mask(self) -> bool:
        """The whole picture changes."""
        return False

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """The decoded JPEG."""
        return Picture(compress_jpeg(subject.picture.image, self.quality), subject.picture.alpha.copy())


@dataclass(frozen=True)
class Resize(Edit):
    """Reduce the picture until its shorter side has so many pixels, and enlarge it again."""

    attribute: ClassVar[Attribute] = "corruption"
    side: int = 64

    def __post_init__(self) -> None:
        if self.side < 1:
            raise UserError(f"side: expected at least 1 pixel, got {self.side}")

    @property
    def uses_mask(self) -> bool:
        """The whole picture changes."""
        return False

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Average down, interpolate up."""
        height, width = subject.picture.alpha.shape
        scale = self.side / min(height, width)
        if scale >= 1:
            raise Unusable(f"the picture has {width} x {height} pixels: no fewer than the {self.side} it shall get")
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        small = cv2.resize(subject.picture.image, size, interpolation=cv2.INTER_AREA)
        large = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
        return Picture(np.asarray(large, np.uint8), subject.picture.alpha.copy())


@dataclass(frozen=True)
class Grayscale(ComposedEdit):
    """Take the colour out of the whole picture."""

    attribute: ClassVar[Attribute] = "corruption"

    @property
    def level(self) -> str:
        """Always "gray"."""
        return "gray"

    @property
    def uses_mask(self) -> bool:
        """The whole picture changes."""
        return False

    @property
    def least_change(self) -> float:
        """A fifth of the picture: one with hardly any colour stays as it is."""
        return LEAST_CHANGE_OF_COLOUR

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Keep only the luma."""
        return Composition(Grey(Plane(subject.picture.image)), subject.picture.alpha)
