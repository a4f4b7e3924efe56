"""The same object elsewhere in the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edit.cutting import background_of, cutout, place, placed_alpha
from counterfoil.edit.geometry import check_rate, object_box, zoom, zoom_to_rate
from counterfoil.errors import Unusable
from counterfoil.types import Attribute, Picture

CROP = 0.875  # of the shorter side: what a model sees that resizes to 256 and crops 224


@dataclass(frozen=True)
class Position:
    """Move the object to a place drawn uniformly from all where its box is inside the picture."""

    attribute: ClassVar[Attribute] = "position"
    rate: float | None = None  # zoom to this rate first; ImageNet-E's release does so at 0.05
    inside_crop: bool = False  # stay inside the central square that models crop to

    def __post_init__(self) -> None:
        check_rate(self.rate)

    @property
    def level(self) -> str:
        """The word random, with the rate where there is one: "random@0.05"."""
        return "random" if self.rate is None else f"random@{self.rate:g}"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Draw a place and move the object there."""
        cut = cutout(picture)
        matrix = zoom((0, 0), 1) if self.rate is None else zoom_to_rate(cut.alpha, self.rate, faithful=False)
        box = object_box(cut.alpha if self.rate is None else placed_alpha(cut.alpha, matrix))
        height, width = cut.alpha.shape
        side = round(CROP * min(height, width)) if self.inside_crop else None
        across, down = _room(width, side or width, box.width), _room(height, side or height, box.height)
        if len(across) == 1 and len(down) == 1:
            raise Unusable(
                f"the object ({box.width} x {box.height} pixels) is as large as the picture: no room to move"
            )
        left, top = across[rng.integers(len(across))], down[rng.integers(len(down))]
        matrix[:, 2] += (left - box.left, top - box.top)
        return place(cut, matrix, background_of(picture))


def _room(length: int, view: int, extent: int) -> range:
    """The starts at which the object lies inside the middle `view` of a side; one, in the middle, if it cannot."""
    first, free = (length - view) // 2, view - extent
    if free < 0:
        return range(first + free // 2, first + free // 2 + 1)
    return range(first, first + free + 1)
