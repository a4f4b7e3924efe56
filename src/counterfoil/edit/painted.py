"""Backgrounds painted by the diffusion model that comes along: ImageNet-E's kinds, a new background, no object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.cutting import background_of, cutout, on_background
from counterfoil.edit.filling import check_background, hole_of
from counterfoil.errors import UserError
from counterfoil.paint.brush import SIZE, Brush, Device, Layers, PainterName
from counterfoil.paint.removal import RemovalBrush, removed
from counterfoil.paint.sampler import Guide
from counterfoil.types import Attribute, Picture

SURELY_OBJECT = 230  # alpha; the soft edge below it is painted as background, so that no halo stays there


@dataclass(frozen=True)
class PaintedComplexity:
    """Paint the background anew, more complex or plainer: ImageNet-E's lambda; 0 goes through the tool unchanged."""

    attribute: ClassVar[Attribute] = "background"
    guidance: float = 20.0  # ImageNet-E's lambda
    strength: float = 0.3
    steps: int = 10
    device: Device = "cpu"
    size: int = SIZE
    painter: PainterName = "background-256"

    def __post_init__(self) -> None:
        Brush(self.strength, self.steps, self.guidance, self.device, self.size)

    @property
    def level(self) -> str:
        """The guidance: "-20"; other strengths and sizes are told apart."""
        return f"{self.guidance:g}" + _told(self.strength, 0.3, self.size)

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Paint from the filled background, the object in its place at every step."""
        brush = Brush(self.strength, self.steps, self.guidance, self.device, self.size)
        return _before(picture, brush, rng)


@dataclass(frozen=True)
class PaintedAdversarial:
    """Paint a more complex background that makes a surrogate doubt the truth: ImageNet-E's 20-adv."""

    # The choice needs a model and the picture's label: whoever has them calls `against`, or paints every candidate
    # and records the worst one; from then on the settings say how it was done.
    attribute: ClassVar[Attribute] = "background"
    guidance: float = 20.0
    strength: float = 0.3
    steps: int = 10
    device: Device = "cpu"
    size: int = SIZE
    painter: PainterName = "background-256"
    by: Literal["auto", "candidates", "gradient"] = "auto"  # auto: by gradient where the surrogate has one
    candidates: int = 4
    candidate: int | None = None  # the one that was chosen
    surrogate: str = "embedded:efficientnet-lite0"  # address of the model

    def __post_init__(self) -> None:
        Brush(self.strength, self.steps, self.guidance, self.device, self.size)
        if not 2 <= self.candidates <= 64:
            raise UserError(f"candidates: expected from 2 to 64 backgrounds to choose from, got {self.candidates}")
        if self.candidate is not None and not 0 <= self.candidate < self.candidates:
            raise UserError(f"candidate: expected from 0 to {self.candidates - 1}, got {self.candidate}")

    @property
    def level(self) -> str:
        """The guidance, marked: "20-adv"."""
        return f"{self.guidance:g}-adv" + _told(self.strength, 0.3, self.size)

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Paint the candidate that was chosen, the first where none was."""
        return self.against(picture, rng, None)

    def against(self, picture: Picture, rng: np.random.Generator, guide: Guide | None) -> Picture:
        """Paint with a guide that knows the surrogate."""
        seeds = rng.integers(2**63, size=self.candidates)
        brush = Brush(self.strength, self.steps, self.guidance, self.device, self.size)
        return _before(picture, brush, np.random.default_rng(int(seeds[self.candidate or 0])), guide)


@dataclass(frozen=True)
class PaintedRandom:
    """Paint another background from nothing but noise, around the object."""

    attribute: ClassVar[Attribute] = "background"
    steps: int = 20
    device: Device = "cpu"
    size: int = SIZE
    painter: PainterName = "background-256"

    def __post_init__(self) -> None:
        Brush(1.0, self.steps, 0.0, self.device, self.size)

    @property
    def level(self) -> str:
        """Always "random"; other sizes are told apart."""
        return "random" + _told(1.0, 1.0, self.size)

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Start from a plain colour, of which the noise leaves hardly more than a tint."""
        plain = np.broadcast_to(rng.integers(0, 256, 3, dtype=np.uint8), picture.image.shape)
        return _before(picture, Brush(1.0, self.steps, 0.0, self.device, self.size), rng, background=plain)


@dataclass(frozen=True)
class PaintedRemoval:
    """Take the object away and paint what was behind it; the fill of `object-removed` is closer to the truth."""

    attribute: ClassVar[Attribute] = "presence"
    strength: float = 0.15
    steps: int = 10
    resample: int = 1  # times that the steps are taken, going back up in noise in between
    device: Device = "cpu"
    size: int = RemovalBrush.size
    painter: PainterName = "background-256"

    def __post_init__(self) -> None:
        self._brush()

    @property
    def level(self) -> str:
        """Always "painted"; other strengths, sizes and resampling are told apart."""
        told = _told(self.strength, 0.15, self.size, RemovalBrush.size)
        return "painted" + told + (f" x{self.resample}" if self.resample > 1 else "")

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        """Paint over the exemplar fill; everything outside the hole stays."""
        hole = hole_of(cutout(picture).alpha)
        image = removed(picture.image, background_of(picture), hole, self._brush(), rng)
        return Picture(image, np.zeros_like(picture.alpha))

    def _brush(self) -> RemovalBrush:
        return RemovalBrush(self.strength, self.steps, 0.0, self.device, self.size, self.resample)


def _told(strength: float, usual: float, size: int, usual_size: int = SIZE) -> str:
    return ("" if strength == usual else f" at {strength:g}") + ("" if size == usual_size else f" {size} px")


def _before(
    picture: Picture, brush: Brush, rng: np.random.Generator, guide: Guide | None = None,
    background: NDArray[np.uint8] | None = None,
) -> Picture:  # fmt: skip
    """The object before a background painted from the given one, or from its own."""
    cut = cutout(picture)
    check_background(cut.background_share)
    start = background_of(picture) if background is None else background
    layers = Layers(np.asarray(start), cut.image, cut.alpha >= SURELY_OBJECT)
    return on_background(picture, brush.paint(layers, rng, guide))
