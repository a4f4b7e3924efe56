"""The object in motion while the picture is taken; the background stays sharp."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.geometry import object_box
from counterfoil.edits.matting import repeat_channels
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture

Floats = NDArray[np.float32]
LONGEST = 0.5  # of the object's longer side


@dataclass(frozen=True)
class ObjectMotion(Edit):
    """Blur the object along a straight way, as if it had moved during the exposure; its outline is smeared too."""

    attribute: ClassVar[Attribute] = "blur"
    length: float = 0.1  # of the way, as a share of the longer side of the object's box
    angle: float | None = None  # degrees, anticlockwise from the right; drawn at random unless given

    def __post_init__(self) -> None:
        if not 0 < self.length <= LONGEST:
            raise UserError(f"length: expected more than 0 and at most {LONGEST:g} of the object, got {self.length:g}")

    @property
    def shows_fill(self) -> bool:
        """Yes: along the smeared outline the filled background shines through."""
        return True

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        try:
            return f"motion of the object by {float(level) * 100:g} % of its length"
        except ValueError:
            return f"motion of the object ({level})" if level else "motion of the object"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Average the object, premultiplied by its alpha, along the way, and paste it over the filled background."""
        cut, behind = subject.cutout, subject.background
        box = object_box(cut.alpha)
        angle = float(rng.uniform(0, 180)) if self.angle is None else self.angle
        kernel = draw_line(max(2.0, self.length * max(box.width, box.height)), math.radians(angle))
        share = cut.alpha / np.float32(255)
        colours, alpha = (
            np.asarray(cv2.filter2D(plane, cv2.CV_32F, kernel, borderType=cv2.BORDER_REPLICATE), np.float32)
            for plane in (cut.image * repeat_channels(share), share)
        )
        moved = np.rint(np.clip(alpha, 0, 1) * 255).astype(np.uint8)
        image = colours + behind * repeat_channels(1 - np.clip(alpha, 0, 1))
        return Picture(np.rint(np.clip(image, 0, 255)).astype(np.uint8), moved)


def draw_line(length: float, angle: float) -> Floats:
    """A straight line through the middle of a square kernel, of weight 1 in all."""
    reach = math.ceil(length / 2) + 1
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1), np.float32)
    for step in np.linspace(-length / 2, length / 2, 8 * max(2, round(length))):
        across, down = reach + step * math.cos(angle), reach - step * math.sin(angle)
        left, top = math.floor(across), math.floor(down)
        right, lower = across - left, down - top
        kernel[top : top + 2, left : left + 2] += np.outer((1 - lower, lower), (1 - right, right)).astype(np.float32)
    return np.asarray(kernel / kernel.sum(), np.float32)
