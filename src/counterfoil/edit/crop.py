"""Part of the object outside the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from counterfoil.edit.base import Edit, Needs, Subject, Supplied
from counterfoil.edit.geometry import Frame, frame_holding, object_point
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, Picture

NARROWEST = 16  # pixels of the photo that a crop must show along its shorter side


@dataclass(frozen=True)
class Crop(Edit):
    """Crop the photo about a point of the object, drawn at random, until only a share of the object is visible."""

    attribute: ClassVar[Attribute] = "occlusion"
    share: float = 0.5  # of the object's area that stays visible

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UserError(f"share: expected more than 0 and at most 1, got {self.share:g}")

    @property
    def level(self) -> str:
        """The visible share: "0.5"."""
        return f"{self.share:g}"

    @property
    def needs(self) -> Needs:
        """The photo at its own size: a crop that is enlarged needs all the pixels there are."""
        return Needs(photo=True)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Find the crop, in the picture's own shape, and enlarge it to the picture's size."""
        alpha = subject.cutout.alpha
        height, width = alpha.shape
        frame = frame_holding(alpha, self.share, object_point(alpha, rng), Frame(0, 0, width, height))
        if min(frame.width, frame.height) < min(NARROWEST, height, width):
            raise Unusable(
                f"a crop with {self.share:g} of the object would show {frame.width:.0f} x {frame.height:.0f}"
                f" pixels of the photo, {NARROWEST} are needed"
            )
        return Picture(_enlarged(subject.picture.image, frame), _enlarged(alpha, frame))


def _enlarged(plane: np.typing.NDArray[np.uint8], frame: Frame) -> np.typing.NDArray[np.uint8]:
    """What the frame shows, at the size of the whole plane."""
    height, width = plane.shape[:2]
    across, down = frame.width / width, frame.height / height
    # Pixel centres lie at whole coordinates, frames count from the corner of the first pixel.
    matrix = np.array([[across, 0, frame.left + across / 2 - 0.5], [0, down, frame.top + down / 2 - 0.5]], np.float64)
    method = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(plane, matrix, (width, height), flags=method, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )
