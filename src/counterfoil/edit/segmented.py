"""The object without any background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from counterfoil.edit.base import Edit, Subject, Supplied
from counterfoil.types import Attribute, Picture

LEVELS_OF_GREY = {"black": 0, "white": 255, "transparent": 0}


@dataclass(frozen=True)
class Segmented(Edit):
    """Leave the object alone on black or white; transparent is black too, with the object's alpha to go with it."""

    # Whoever opens XImageNet-12's transparent pictures as RGB sees the object on black: so does the model here.

    attribute: ClassVar[Attribute] = "background"
    ground: Literal["black", "white", "transparent"] = "black"

    @property
    def level(self) -> str:
        """The ground: "black"."""
        return self.ground

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint everything but the object."""
        return subject.on_background(np.full(subject.picture.image.shape, LEVELS_OF_GREY[self.ground], np.uint8))
