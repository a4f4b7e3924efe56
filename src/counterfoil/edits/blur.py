"""Gaussian blur of the object, and the settings that every Gaussian blur has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Plane, SmoothedObject
from counterfoil.edits.edit_protocol import ComposedEdit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute

_LEVEL = re.compile(r"(\d+)/([\d.]+)")  # kernel, sigma


@dataclass(frozen=True)
class GaussianBlur(ComposedEdit):
    """A Gaussian of `kernel` x `kernel` pixels; the defaults are those of XImageNet-12."""

    kernel: int = 15
    sigma: float = 3.0
    faithful: bool = False  # blur the whole photo, as the release does; colours spread across the outline

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise UserError(f"kernel: expected an odd number of pixels, got {self.kernel}")
        if self.sigma <= 0:
            raise UserError(f"sigma: expected more than 0 pixels, got {self.sigma:g}")

    @property
    def level(self) -> str:
        """Kernel and sigma: "15/3"."""
        return f"{self.kernel}/{self.sigma:g}"

    @property
    def picture_version(self) -> int:
        """One more where `faithful`: pixels of a soft mask below one half no longer count as object."""
        return self.version + self.faithful

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, with kernel and sigma named."""
        match = _LEVEL.fullmatch(level)
        return super().describe(f"kernel {match[1]}, sigma {match[2]}" if match else level)

    def blur(self, plane: NDArray[Any]) -> NDArray[Any]:
        """The plane blurred."""
        return np.asarray(cv2.GaussianBlur(plane, (self.kernel, self.kernel), self.sigma))


@dataclass(frozen=True)
class ObjectBlur(GaussianBlur):
    """Blur the object by a Gaussian; `faithful` blurs the photo with its background, which bleeds in."""

    attribute: ClassVar[Attribute] = "blur"
    words: ClassVar[str] = "blurring the object"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Blur inside the object's outline, which stays sharp."""
        cut = subject.cutout
        if self.faithful:
            image, inside = subject.picture.image, subject.hard_object[..., None]
            return Composition(Plane(np.where(inside, self.blur(image), image).astype(np.uint8)), cut.alpha)
        return subject.compose_repainted(SmoothedObject(subject.object_layer, self.kernel, self.sigma))
