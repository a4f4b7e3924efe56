"""What a painter is: wishes in, pictures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.types import Picture

Paints: TypeAlias = Literal["pictures", "backgrounds"]
PaintPrecision: TypeAlias = Literal["auto", "f32", "bf16", "fp16"]


@dataclass(frozen=True)
class Wish:
    """One picture to paint; where `around` is given, its object stays and the rest is painted."""

    prompt: str
    negative: str
    seed: int
    around: Picture | None = None


@dataclass(frozen=True)
class Refusal:
    """A picture that the painter did not give, and why."""

    reason: str


Painted: TypeAlias = "NDArray[np.uint8] | Refusal"  # (height, width, 3), RGB


class Painter(Protocol):
    """Pictures from words; the picture of a wish does not depend on the wishes beside it.

    `PainterBase` has the defaults of all but the name and `paint`.
    """

    @property
    def name(self) -> str:
        """The address it was loaded from."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What changes its pictures, ready for JSON: revision, scheduler, steps; part of every picture's id."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What its pictures are made with: device and versions; recorded, no part of the id."""

    def paint(self, wishes: Sequence[Wish]) -> list[Painted]:
        """One picture or refusal per wish, in order."""

    def check_prompt(self, prompt: str) -> None:
        """Raise `UserError` where it does not understand this prompt."""

    def check_time(self, wish: Wish, pictures: int) -> None:
        """Raise `UserError` with an estimate where so many pictures would take too long on this machine."""


class PainterBase:
    """Defaults of a `Painter`."""

    @cached_property
    def settings(self) -> Mapping[str, object]:
        """Nothing that can be set."""
        return {}

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """Nothing to record."""
        return {}

    def check_prompt(self, prompt: str) -> None:
        """Every prompt is understood."""

    def check_time(self, wish: Wish, pictures: int) -> None:
        """It is fast enough on every machine."""


@dataclass(frozen=True)
class PaintOptions:
    """How a painter is to be loaded and run; None leaves the choice to the model."""

    device: str = "auto"  # auto takes a GPU where torch sees one
    precision: PaintPrecision = "auto"  # bf16 on a GPU, f32 elsewhere
    batch_size: int = 8
    steps: int | None = None
    guidance: float | None = None
    scheduler: str | None = None
    size: int | None = None  # side of square pictures; the longer side where a photo's background is painted
    strength: float | None = None  # how much of the background's noise is new, where a background is painted

    def __post_init__(self) -> None:
        for name in ("batch_size", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"expected {name.replace('_', ' ')} of at least 1, got {value}")
        if self.size is not None and (self.size < 8 or self.size % 8):
            raise UserError(f"expected a size that is a multiple of 8, got {self.size}")
        if self.guidance is not None and not 0 <= self.guidance < float("inf"):
            raise UserError(f"expected guidance of 0 or more, got {self.guidance}")
        if self.strength is not None and not 0 < self.strength <= 1:
            raise UserError(f"expected a strength above 0 and at most 1, got {self.strength}")
