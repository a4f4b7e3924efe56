"""Photos prepared for a model that paints around their object, and brought back to their size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.object_mask import hard_object
from counterfoil.painters.painter_protocol import OnDevice, Painted, PaintRefused, PaintRequest, run_in_batches

_STEP = 8  # pixels that one cell of a latent picture stands for


@dataclass(frozen=True)
class InpaintingArea:
    """A request at the model's size: floats in 0..1, the mask is 1 where to paint."""

    request: PaintRequest
    photo: NDArray[np.float32]  # (height, width, 3)
    mask: NDArray[np.float32]  # (height, width)
    back: tuple[int, int]  # (height, width) of the photo

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the model's input."""
        return self.mask.shape[0], self.mask.shape[1]

    def fit_back(self, painted: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The painted picture at the photo's size."""
        return _resize(painted, self.back[::-1])


def prepare_area(request: PaintRequest, longer: int, multiple: int = _STEP) -> InpaintingArea:
    """The photo resized to the model's longer side, both sides multiples of what the model needs."""
    if request.around is None:
        raise ValueError("a background is painted around a picture, and this request has none")
    image, alpha = request.around
    height, width = alpha.shape
    scale = longer / max(height, width)
    size = (_round_to_multiple(width * scale, multiple), _round_to_multiple(height * scale, multiple))
    photo = np.divide(_resize(image, size), 255, dtype=np.float32)
    mask = np.asarray(~hard_object(_resize(alpha, size)), np.float32)
    return InpaintingArea(request, photo, mask, (height, width))


def paint_areas(
    areas: Sequence[InpaintingArea],
    paint: Callable[[Sequence[InpaintingArea]], list[Painted]],
    painter: OnDevice,
    fitting: list[int],
) -> list[Painted]:
    """Every area painted at its photo's size, in order; a batch holds areas of one size."""
    painted: list[Painted] = [PaintRefused("never painted")] * len(areas)
    for places in _group_by_size(areas):
        images = run_in_batches([areas[place] for place in places], paint, painter, fitting)
        for place, image in zip(places, images, strict=True):
            painted[place] = image if isinstance(image, PaintRefused) else areas[place].fit_back(image)
    return painted


def _group_by_size(areas: Sequence[InpaintingArea]) -> list[list[int]]:
    """The indices of the areas, grouped by size for batches."""
    groups: dict[tuple[int, int], list[int]] = {}
    for place, area in enumerate(areas):
        groups.setdefault(area.size, []).append(place)
    return list(groups.values())


def _resize(plane: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The picture at another (width, height), antialiased where it shrinks."""
    return np.asarray(Image.fromarray(plane).resize(size, Image.Resampling.BICUBIC), np.uint8)


def _round_to_multiple(pixels: float, multiple: int) -> int:
    return max(multiple, round(pixels / multiple) * multiple)
