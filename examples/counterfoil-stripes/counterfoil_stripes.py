"""An edit of one's own: all that a contributor writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil import Picture, UserError
from counterfoil.edit.cutting import on_background
from counterfoil.types import Attribute


@dataclass(frozen=True)
class BackgroundStripes:
    """Put the object on black and white stripes of a given width."""

    attribute: ClassVar[Attribute] = "background"
    width: int = 8

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UserError(f"expected stripes of at least 1 pixel, got {self.width}")

    @property
    def level(self) -> str:
        """The stripes' width in pixels."""
        return str(self.width)

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Paste the object; where the stripes begin is drawn."""
        columns = np.arange(picture.image.shape[1]) + rng.integers(0, 2 * self.width)
        stripes = np.where(columns // self.width % 2, 255, 0).astype(np.uint8)
        return on_background(picture, np.broadcast_to(stripes[None, :, None], picture.image.shape).copy())
