"""The base of all corruptions: a severity from 1 to 5, applied to the whole picture."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, PictureLayer, Plane
from counterfoil.edits.edit_protocol import ComposedEdit, Edit, Supplied, to_kebab
from counterfoil.edits.matting import repeat_channels
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, Picture

SEVERITIES = (1, 2, 3, 4, 5)
SMALLEST_SIDE = 32  # pixels; the constants are made for 224
BAND_PIXELS = 2**21  # a large photo is processed in bands of rows, to bound memory

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Corruption(Edit):
    """Spoil the whole picture, the object with it."""

    attribute: ClassVar[Attribute] = "corruption"
    severity: int = 3

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise UserError(f"severity: expected 1, 2, 3, 4 or 5, got {self.severity}")

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return cls.describe_named(to_kebab(cls.__name__), level)

    @staticmethod
    def describe_named(name: str, level: str) -> str:
        """The corruption of this name ("gaussian-noise") at a severity, in words."""
        severity = f"severity {level}" if level.isdecimal() else level
        return f"{name.replace('-', ' ')} ({severity})"

    @property
    def uses_mask(self) -> bool:
        """The whole picture changes."""
        return False

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """The corrupted picture, with the alpha of the original."""
        check_size(subject)
        return Picture(self.corrupt(subject.picture.image, rng), subject.picture.alpha.copy())

    @abstractmethod
    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The corrupted pixels."""


def check_size(subject: Subject) -> None:
    """Raises `Unusable` where the picture is too small."""
    height, width = subject.picture.alpha.shape
    if min(height, width) < SMALLEST_SIDE:
        raise Unusable(f"the picture has {width} x {height} pixels, a corruption needs {SMALLEST_SIDE} each way")


@dataclass(frozen=True)
class ComposedCorruption(ComposedEdit, Corruption):
    """A corruption that returns its picture as data."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The corrupted pixels."""
        return self.spoil(Plane(image), rng).draw()

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """The corrupted picture, with the alpha of the original."""
        check_size(subject)
        return Composition(self.spoil(Plane(subject.picture.image), rng), subject.picture.alpha)

    @abstractmethod
    def spoil(self, image: Plane, rng: np.random.Generator) -> PictureLayer:
        """The operation on the picture."""


@dataclass(frozen=True)
class DrawnNoise(ComposedCorruption):
    """Noise in every value, drawn band by band where the picture is large; then it is no composition."""

    def corrupt(self, image: Bytes, rng: np.random.Generator) -> Bytes:
        """The corrupted pixels."""
        return work_in_bands(image, 0, lambda band: self.spoil(Plane(band), rng).draw())

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """The corrupted picture, with the alpha of the original."""
        check_size(subject)
        image, alpha = subject.picture
        if len(image) > _count_rows(image, 0):
            return Composition(Plane(self.corrupt(image, rng)), alpha)
        return Composition(self.spoil(Plane(image), rng), alpha)


def _count_rows(image: Bytes, halo: int) -> int:
    """The rows of one band."""
    return max(BAND_PIXELS // int(image.shape[1]), 4 * halo, 1)


def work_in_bands(image: Bytes, halo: int, work: Callable[[Bytes], Bytes]) -> Bytes:
    """The result of `work` on the picture, in bands of rows with `halo` more rows on either side."""
    height, rows = len(image), _count_rows(image, halo)
    if height <= rows:
        return work(image)
    bands = np.empty_like(image)
    for top in range(0, height, rows):
        first = max(0, top - halo)
        bands[top : top + rows] = work(image[first : top + rows + halo])[top - first : top - first + rows]
    return bands


def add_layer(image: Bytes, layer: Floats, prepare: Callable[[Bytes], Floats]) -> Bytes:
    """The prepared picture plus a layer of levels, (height, width), computed in bands of rows."""
    total = np.empty_like(image)
    rows = max(1, BAND_PIXELS // image.shape[1])
    for top in range(0, len(image), rows):
        band = slice(top, top + rows)
        total[band] = truncate_levels(prepare(image[band]) + repeat_channels(layer[band]))
    return total


def truncate_levels(values: Floats) -> Bytes:
    """Levels truncated to whole numbers, as in the release, and clipped to the range."""
    # OpenCV rounds in one pass; subtracting nearly half a level makes that a truncation. Nearly, so that 6.99999
    # becomes 7.
    return np.asarray(cv2.addWeighted(values, 1, values, 0, -0.499, dtype=cv2.CV_8U), np.uint8)
