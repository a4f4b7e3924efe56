"""The object without any background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from counterfoil.edit.cutting import on_background
from counterfoil.types import Attribute, Picture

LEVELS_OF_GREY = {"black": 0, "white": 255, "transparent": 0}


@dataclass(frozen=True)
class Segmented:
    """Leave the object alone on black or white; transparent is black too, with the object's alpha to go with it."""

    # Whoever opens XImageNet-12's transparent pictures as RGB sees the object on black: so does the model here.

    attribute: ClassVar[Attribute] = "background"
    ground: Literal["black", "white", "transparent"] = "black"

    @property
    def level(self) -> str:
        """The ground: "black"."""
        return self.ground

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Paint everything but the object."""
        return on_background(picture, np.full(picture.image.shape, LEVELS_OF_GREY[self.ground], np.uint8))
