"""A photo made ready for an inpainting model, and its answer brought back to the photo's size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.paint.painter import Wish

_STEP = 8  # pixels that one cell of a latent picture stands for


@dataclass(frozen=True)
class Canvas:
    """A wish at the model's size: floats in 0..1, the mask 1 where is to be painted."""

    wish: Wish
    photo: NDArray[np.float32]  # (height, width, 3)
    mask: NDArray[np.float32]  # (height, width)
    back: tuple[int, int]  # (height, width) of the photo

    @property
    def size(self) -> tuple[int, int]:
        """Height and width that the model sees."""
        return self.mask.shape[0], self.mask.shape[1]

    def fitted_back(self, painted: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The painted picture at the photo's size."""
        return _resized(painted, self.back[::-1])


def canvas_for(wish: Wish, longer: int, multiple: int = _STEP) -> Canvas:
    """The photo with its longer side at the model's, both sides multiples of what it can halve."""
    if wish.around is None:
        raise ValueError("a background is painted around a picture, and this wish has none")
    image, alpha = wish.around
    height, width = alpha.shape
    scale = longer / max(height, width)
    size = (_stepped(width * scale, multiple), _stepped(height * scale, multiple))
    photo = np.divide(_resized(image, size), 255, dtype=np.float32)
    mask = np.asarray(_resized(alpha, size) < 128, np.float32)
    return Canvas(wish, photo, mask, (height, width))


def by_size(canvases: Sequence[Canvas]) -> list[list[int]]:
    """The places of canvases that may be painted together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for place, canvas in enumerate(canvases):
        groups.setdefault(canvas.size, []).append(place)
    return list(groups.values())


def _resized(plane: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """At another (width, height), antialiased where it shrinks."""
    return np.asarray(Image.fromarray(plane).resize(size, Image.Resampling.BICUBIC), np.uint8)


def _stepped(pixels: float, multiple: int) -> int:
    return max(multiple, round(pixels / multiple) * multiple)
