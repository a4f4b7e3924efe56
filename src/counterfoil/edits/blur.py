"""Object out of focus."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from counterfoil.edits.cutout import object_window
from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.matting import per_channel
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture

_KERNEL = re.compile(r"(\d+)/([\d.]+)")


def describe_kernel(level: str) -> str:
    """A blur's level with kernel and sigma named; other levels as they are."""
    kernel = _KERNEL.fullmatch(level)
    return f"kernel {kernel[1]}, sigma {kernel[2]}" if kernel else level


@dataclass(frozen=True)
class ObjectBlur(Edit):
    """Blur the object by a Gaussian of `kernel` x `kernel` pixels, XImageNet-12's unless told otherwise."""

    attribute: ClassVar[Attribute] = "blur"
    words: ClassVar[str] = "blurring the object"
    kernel: int = 15
    sigma: float = 3.0
    faithful: bool = False  # blur the photo with its background, as the release does: background bleeds in

    def __post_init__(self) -> None:
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise UserError(f"kernel: expected an odd number of pixels, got {self.kernel}")
        if self.sigma <= 0:
            raise UserError(f"sigma: expected more than 0 pixels, got {self.sigma:g}")

    @property
    def level(self) -> str:
        """Kernel and sigma: "15/3"."""
        return f"{self.kernel}/{self.sigma:g}"

    @classmethod
    def describe(cls, level: str) -> str:
        """What was done at this level, as the subject of a sentence."""
        return super().describe(describe_kernel(level))

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Blur inside the object's outline, which stays."""
        cut, size = subject.cutout, (self.kernel, self.kernel)
        if self.faithful:
            blurred = np.asarray(cv2.GaussianBlur(subject.picture.image, size, self.sigma), np.uint8)
            return Picture(
                np.where((subject.picture.alpha > 0)[..., None], blurred, subject.picture.image), cut.alpha.copy()
            )
        window = object_window(cut.alpha)
        share = cut.alpha[window] / np.float32(255)
        # Weighted by alpha, so that the object alone lends its colours.
        sums = cv2.GaussianBlur(cut.image[window] * per_channel(share), size, self.sigma)
        weight = np.asarray(cv2.GaussianBlur(share, size, self.sigma), np.float32)
        return subject.repainted(np.rint(sums / per_channel(np.maximum(weight, np.float32(1e-6)))).astype(np.uint8))
