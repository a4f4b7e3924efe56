"""The picture through the tool with nothing changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edit.cutting import background_of, on_background
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class Control:
    """Cut the object, fill the background and paste the object back at its place: what the tool itself costs."""

    attribute: ClassVar[Attribute] = "control"

    @property
    def level(self) -> str:
        """Always "none"."""
        return "none"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Change nothing but what cutting and pasting change."""
        return on_background(picture, background_of(picture))
