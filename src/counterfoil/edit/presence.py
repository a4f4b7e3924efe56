"""The picture without its object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edit.cutting import background_of, cutout
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class ObjectRemoved:
    """Take the object away and fill what was behind it: a model that is still right reads the background."""

    attribute: ClassVar[Attribute] = "presence"

    @property
    def level(self) -> str:
        """Always "removed"."""
        return "removed"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Leave the filled background alone."""
        cutout(picture)  # refuses a photo that has no object to remove
        return Picture(background_of(picture).copy(), np.zeros_like(picture.alpha))
