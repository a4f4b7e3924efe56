"""The object's shape alone: its silhouette or its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Flat, LayerPart, Pasted, PictureLayer, Plane
from counterfoil.edits.cutout import Cutout
from counterfoil.edits.edit_protocol import ComposedEdit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.object_mask import hard_object
from counterfoil.types import Attribute

Bytes = NDArray[np.uint8]
Ground = Literal["white", "photo"]
_GROUNDS = {"": "", "white": " on white", "photo": " in its photo"}
LINE = 1 / 200  # width of a line as a share of the picture's shorter side


@dataclass(frozen=True)
class Silhouette(ComposedEdit):
    """Paint the object black, on white or where it stands in the photo."""

    attribute: ClassVar[Attribute] = "shape"
    ground: Ground = "white"

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return f"a black silhouette{_GROUNDS.get(level, f' ({level})')}"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Keep only the outline."""
        return _show_object(subject, Flat((0, 0, 0), subject.picture.alpha.shape), self.ground)


@dataclass(frozen=True)
class Edges(ComposedEdit):
    """Draw the object's outline and inner edges (Canny) black on white."""

    attribute: ClassVar[Attribute] = "shape"
    ground: Ground = "white"
    low: float = 50.0  # Sobel gradient in levels below which nothing is an edge
    high: float = 120.0  # above which everything is an edge

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise UserError(f"low, high: expected 0 <= low <= high, got {self.low:g} and {self.high:g}")

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return f"its edges alone{_GROUNDS.get(level, f' ({level})')}"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Keep lines only, no colour and no shading."""
        lines = _draw_lines(subject.cutout, self.low, self.high)
        colours = np.asarray(cv2.cvtColor(255 - lines, cv2.COLOR_GRAY2RGB), np.uint8)
        return _show_object(subject, Plane(colours), self.ground)


def _show_object(subject: Subject, colours: PictureLayer, ground: Ground) -> Composition:
    """The object in new colours, (height, width, 3) of the picture, on white or in its photo."""
    subject.check_background()  # an object that fills the picture has no visible shape
    cut = subject.object_layer._replace(colours=colours)
    if ground == "photo":
        return subject.compose_repainted(LayerPart(colours, cut.window))
    return Composition(Pasted(cut, Flat((255, 255, 255), cut.alpha.shape)), cut.alpha)


def _draw_lines(cut: Cutout, low: float, high: float) -> Bytes:
    """255 on the edges of the object, (height, width)."""
    gray = cv2.GaussianBlur(cv2.cvtColor(cut.image, cv2.COLOR_RGB2GRAY), (5, 5), 0)
    inside = hard_object(cut.alpha).astype(np.uint8)
    lines = np.asarray(cv2.Canny(gray, low, high)) * inside
    width = max(1, round(LINE * min(cut.alpha.shape)))
    # The outline is drawn inside the object, where alpha shows it.
    rim = inside - cv2.erode(inside, np.ones((3, 3), np.uint8), iterations=width, borderValue=0)
    if width > 1:
        lines = np.asarray(cv2.dilate(lines, np.ones((width, width), np.uint8)))
    return np.asarray(np.maximum(lines, rim * 255), np.uint8)
