"""The same object with another surface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counterfoil.edit.base import Edit, Subject, Supplied
from counterfoil.edit.matting import per_channel
from counterfoil.edit.pool import RANDOM, check_texture, laid, swatch
from counterfoil.edit.surface import surface_of
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture


@dataclass(frozen=True)
class Texture(Edit):
    """Cover the object with a texture; its outline and shading stay, and the texture bends with its form."""

    attribute: ClassVar[Attribute] = "texture"
    words: ClassVar[str] = "another texture on it"
    texture: str = RANDOM  # a name of the pool, "random" for any drawn one
    folder: str | None = None  # take textures from here, named by the stems of the files
    strength: float = 1.0  # 1 leaves nothing of the old surface but its shading, 0 all of it

    def __post_init__(self) -> None:
        check_texture(self.texture, self.folder)
        if not 0 <= self.strength <= 1:
            raise UserError(f"strength: expected 0 to 1, got {self.strength:g}")

    @property
    def level(self) -> str:
        """The texture, with the strength where it is not full: "striped", "striped@0.5"."""
        return self.texture if self.strength == 1 else f"{self.texture}@{self.strength:g}"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Lay the texture on the object's surface and shade it as the object was."""
        surface = subject.once(surface_of)
        piece = swatch(self.texture, self.folder, rng)
        painted = np.clip(laid(piece, surface.places, surface.size) * per_channel(surface.shading), 0, 255)
        if self.strength < 1:
            old = subject.cutout.image[surface.window]
            painted = old + (painted - old) * np.float32(self.strength)
        return subject.repainted(np.rint(painted).astype(np.uint8))
