"""The background alone, the object's whole box covered: ImageNet-9's only_bg_b and only_bg_t."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.base import Edit, Subject, Supplied
from counterfoil.edit.filling import check_background
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]
Window = tuple[slice, slice]


@dataclass(frozen=True)
class ObjectBox(Edit):
    """Cover the box around the object, so that not even its outline is left: black, or tiled with background."""

    attribute: ClassVar[Attribute] = "presence"
    fill: Literal["black", "tiled"] = "black"

    @property
    def level(self) -> str:
        """The word black or tiled."""
        return self.fill

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Cover everything from the object's first row to its last, and so its columns."""
        subject.check_object()
        left, top, width, height = cv2.boundingRect(subject.alpha)
        check_background(1 - width * height / subject.picture.alpha.size)
        window = (slice(top, top + height), slice(left, left + width))
        image = subject.picture.image.copy()
        image[window] = (
            0 if self.fill == "black" else _tiled(_largest_strip(subject.picture.image, window), (height, width))
        )
        return Picture(image, np.zeros_like(subject.picture.alpha))


def _largest_strip(image: Bytes, window: Window) -> Bytes:
    """The largest rectangle of background: all that is above, below, left or right of the box."""
    rows, columns = window
    strips = (image[: rows.start], image[rows.stop :], image[:, : columns.start], image[:, columns.stop :])
    return max(strips, key=lambda strip: strip.size)


def _tiled(strip: Bytes, shape: tuple[int, int]) -> Bytes:
    """The strip side by side and one below the other until `shape` is full."""
    times = (-(-shape[0] // strip.shape[0]), -(-shape[1] // strip.shape[1]), 1)
    return np.tile(strip, times)[: shape[0], : shape[1]]
