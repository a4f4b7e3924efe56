"""Edits of the object's colour: hue, grey, brightness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edits.composition import Composition, Grey, HueTurned, Levelled
from counterfoil.edits.edit_protocol import LEAST_CHANGE_OF_COLOUR, ComposedEdit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute


@dataclass(frozen=True)
class ObjectHue(ComposedEdit):
    """Turn every hue of the object by the same angle, whole degrees drawn at random unless given."""

    attribute: ClassVar[Attribute] = "colour"
    words: ClassVar[str] = "another hue of the object"
    shift: float | None = None  # degrees on the colour circle: 120 takes red to green

    @property
    def level(self) -> str:
        """The angle: "120", or "random"."""
        return "random" if self.shift is None else f"{self.shift:g}"

    @property
    def least_change(self) -> float:
        """A fifth of the object: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Keep saturation and value; grey stays grey."""
        shift = float(rng.integers(1, 360)) if self.shift is None else self.shift
        return subject.compose_repainted(HueTurned(subject.object_colours, shift))


@dataclass(frozen=True)
class ObjectGrayscale(ComposedEdit):
    """Take the object's colours away: 0.299 red + 0.587 green + 0.114 blue."""

    attribute: ClassVar[Attribute] = "colour"
    words: ClassVar[str] = "the object without colour"

    @property
    def level(self) -> str:
        """Always "gray"."""
        return "gray"

    @property
    def least_change(self) -> float:
        """A fifth of the object: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Keep only the luma of each pixel."""
        return subject.compose_repainted(Grey(subject.object_colours))


@dataclass(frozen=True)
class ObjectBrightness(ComposedEdit):
    """Multiply the object's levels by a factor; what exceeds 255 is white."""

    attribute: ClassVar[Attribute] = "colour"
    factor: float = 1.5

    def __post_init__(self) -> None:
        if not 0 <= self.factor < 256:
            raise UserError(f"factor: expected 0 (black) to 255, got {self.factor:g}")

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Make the object lighter or darker."""
        table = np.clip(np.rint(np.arange(256) * self.factor), 0, 255).astype(np.uint8)
        return subject.compose_repainted(Levelled(subject.object_colours, table))
