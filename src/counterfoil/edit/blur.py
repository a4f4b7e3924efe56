"""The object out of focus before a sharp background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from counterfoil.edit.cutting import cutout, object_window, repainted
from counterfoil.edit.matting import per_channel
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class ObjectBlur:
    """Blur the object by a Gaussian of `kernel` x `kernel` pixels, XImageNet-12's unless told otherwise."""

    attribute: ClassVar[Attribute] = "blur"
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

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Blur inside the object's outline, which stays."""
        cut, size = cutout(picture), (self.kernel, self.kernel)
        if self.faithful:
            blurred = np.asarray(cv2.GaussianBlur(picture.image, size, self.sigma), np.uint8)
            return Picture(np.where((picture.alpha > 0)[..., None], blurred, picture.image), cut.alpha.copy())
        window = object_window(cut.alpha)
        share = cut.alpha[window] / np.float32(255)
        # Weighted by alpha, so that the object alone lends its colours.
        sums = cv2.GaussianBlur(cut.image[window] * per_channel(share), size, self.sigma)
        weight = np.asarray(cv2.GaussianBlur(share, size, self.sigma), np.float32)
        return repainted(picture, np.rint(sums / per_channel(np.maximum(weight, np.float32(1e-6)))).astype(np.uint8))
