"""The background alone, the object's whole box covered: ImageNet-9's only_bg_b and only_bg_t."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.cutting import alpha_of, cutout
from counterfoil.edit.filling import check_background
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]
Window = tuple[slice, slice]


@dataclass(frozen=True)
class ObjectBox:
    """Cover the box around the object, so that not even its outline is left: black, or tiled with background."""

    attribute: ClassVar[Attribute] = "presence"
    fill: Literal["black", "tiled"] = "black"

    @property
    def level(self) -> str:
        """The word black or tiled."""
        return self.fill

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Cover everything from the object's first row to its last, and so its columns."""
        cutout(picture)  # refuses a photo that has no object to cover
        left, top, width, height = cv2.boundingRect(alpha_of(picture))
        check_background(1 - width * height / picture.alpha.size)
        window = (slice(top, top + height), slice(left, left + width))
        image = picture.image.copy()
        image[window] = 0 if self.fill == "black" else _tiled(_largest_strip(picture.image, window), (height, width))
        return Picture(image, np.zeros_like(picture.alpha))


def _largest_strip(image: Bytes, window: Window) -> Bytes:
    """The largest rectangle of background: all that is above, below, left or right of the box."""
    rows, columns = window
    strips = (image[: rows.start], image[rows.stop :], image[:, : columns.start], image[:, columns.stop :])
    return max(strips, key=lambda strip: strip.size)


def _tiled(strip: Bytes, shape: tuple[int, int]) -> Bytes:
    """The strip side by side and one below the other until `shape` is full."""
    times = (-(-shape[0] // strip.shape[0]), -(-shape[1] // strip.shape[1]), 1)
    return np.tile(strip, times)[: shape[0], : shape[1]]
