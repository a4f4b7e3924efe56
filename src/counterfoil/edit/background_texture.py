"""A texture from the pool behind the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.base import Edit, Subject, Supplied
from counterfoil.edit.pool import RANDOM, check_texture, laid, swatch
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class BackgroundTexture(Edit):
    """Put the object before a texture, in the mean colour of the background that was there."""

    attribute: ClassVar[Attribute] = "background"
    texture: str = RANDOM  # a name of the pool, "random" for any drawn one
    keep_colour: bool = True  # off: the texture's own colours

    def __post_init__(self) -> None:
        check_texture(self.texture, None)

    @property
    def level(self) -> str:
        """The texture: "striped", "random"."""
        return self.texture

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Lay one swatch over the shorter side, from a place drawn at random."""
        piece = swatch(self.texture, None, rng)
        height, width = subject.picture.alpha.shape
        side = min(height, width)
        left, top = rng.integers(side, size=2)
        places = np.dstack(np.meshgrid(np.arange(width) + left, np.arange(height) + top)).astype(np.float32)
        texture = laid(piece, places, side)
        return subject.on_background(_toned(texture, subject.background) if self.keep_colour else texture)


def _toned(texture: Bytes, behind: Bytes) -> Bytes:
    """The texture moved to the mean colour of what was there, so that the texture alone is what changes."""
    step = np.rint(np.array(cv2.mean(behind)[:3]) - np.array(cv2.mean(texture)[:3]))
    table = np.clip(np.arange(256)[:, None] + step, 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(texture, table[None]), np.uint8)
