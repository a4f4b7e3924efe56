"""Backgrounds by the bundled diffusion model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, Needs, Resolution, Supplied
from counterfoil.edits.fill import check_background, hole_of
from counterfoil.edits.painted_adversarial import guide_against, why_no_gradient
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.painters.background_painter import (
    SIZE,
    BackgroundPainter,
    Device,
    Layers,
    ObjectRemover,
    PainterName,
    remove_object,
)
from counterfoil.painters.sampler import Guide
from counterfoil.types import Attribute, Classifier, Picture

SURELY_OBJECT = 230  # alpha; the soft edge below it is painted as background, so that no halo stays there


@dataclass(frozen=True)
class PaintedComplexity(Edit):
    """Paint the background anew, more complex or plainer: ImageNet-E's lambda; 0 goes through the tool unchanged."""

    attribute: ClassVar[Attribute] = "background"
    guidance: float = 20.0  # ImageNet-E's lambda
    strength: float = 0.3
    steps: int = 10
    device: Device = "cpu"
    size: int = SIZE
    painter: PainterName = "background-256"

    def __post_init__(self) -> None:
        BackgroundPainter(self.strength, self.steps, self.guidance, self.device, self.size)

    @property
    def level(self) -> str:
        """The guidance: "-20"; other strengths and sizes are told apart."""
        return f"{self.guidance:g}" + _told(self.strength, 0.3, self.size)

    @property
    def needs(self) -> Needs:
        """A GPU where the settings name one."""
        return Needs(gpu=self.device == "cuda")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint from the filled background, the object in its place at every step."""
        brush = BackgroundPainter(self.strength, self.steps, self.guidance, self.device, self.size)
        return _before(subject, brush, rng)


@dataclass(frozen=True, kw_only=True)
class PaintedAdversarial(Edit):
    """Paint a more complex background that makes a surrogate doubt the truth: ImageNet-E's 20-adv."""

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
        BackgroundPainter(self.strength, self.steps, self.guidance, self.device, self.size)
        if not 2 <= self.candidates <= 64:
            raise UserError(f"candidates: expected from 2 to 64 backgrounds to choose from, got {self.candidates}")
        if self.candidate is not None and not 0 <= self.candidate < self.candidates:
            raise UserError(f"candidate: expected from 0 to {self.candidates - 1}, got {self.candidate}")

    @property
    def level(self) -> str:
        """The guidance, marked: "20-adv"."""
        return f"{self.guidance:g}-adv" + _told(self.strength, 0.3, self.size)

    @property
    def needs(self) -> Needs:
        """The surrogate that finds the background hard."""
        return Needs(surrogate=self.surrogate, gpu=self.device == "cuda")

    def check_surrogate(self, surrogate: Classifier) -> None:
        """Refuse a surrogate without the gradient that was asked for."""
        self.by_gradient(surrogate)

    def by_gradient(self, surrogate: Classifier) -> bool:
        """Whether the surrogate's gradient leads; raises `UserError` where that was asked for and cannot be."""
        if self.by == "candidates" or self.candidate is not None:
            return self.by == "gradient"
        lack = why_no_gradient(surrogate)
        if lack and self.by == "gradient":
            raise UserError(f"by: gradient with {self.surrogate}: {lack}; use by: candidates")
        return not lack

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Let the gradient lead, or take the candidate that leaves the true label the least probability."""
        if self.candidate is not None:
            return Resolution(self)
        if self.by_gradient(supplied.surrogate):
            return Resolution(replace(self, by="gradient", candidate=0))
        tried = [replace(self, by="candidates", candidate=number) for number in range(self.candidates)]
        images = [each.apply(subject, np.random.default_rng(supplied.seed), supplied).image for each in tried]
        return Resolution(tried[int(np.argmin(supplied.true_scores(images)))])

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint the candidate that was chosen, the first where none was; without a surrogate there is no gradient."""
        guided = self.by == "gradient" and supplied.load_surrogate is not None
        guide = guide_against(supplied.surrogate, supplied.label) if guided else None
        seeds = rng.integers(2**63, size=self.candidates)
        brush = BackgroundPainter(self.strength, self.steps, self.guidance, self.device, self.size)
        return _before(subject, brush, np.random.default_rng(int(seeds[self.candidate or 0])), guide)


@dataclass(frozen=True)
class PaintedRandom(Edit):
    """Paint another background from nothing but noise, around the object."""

    attribute: ClassVar[Attribute] = "background"
    steps: int = 20
    device: Device = "cpu"
    size: int = SIZE
    painter: PainterName = "background-256"

    def __post_init__(self) -> None:
        BackgroundPainter(1.0, self.steps, 0.0, self.device, self.size)

    @property
    def level(self) -> str:
        """Always "random"; other sizes are told apart."""
        return "random" + _told(1.0, 1.0, self.size)

    @property
    def needs(self) -> Needs:
        """A GPU where the settings name one."""
        return Needs(gpu=self.device == "cuda")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Start from a plain colour, of which the noise leaves hardly more than a tint."""
        plain = np.broadcast_to(rng.integers(0, 256, 3, dtype=np.uint8), subject.picture.image.shape)
        return _before(subject, BackgroundPainter(1.0, self.steps, 0.0, self.device, self.size), rng, background=plain)


@dataclass(frozen=True)
class PaintedRemoval(Edit):
    """Take the object away and paint what was behind it; the fill of `object-removed` is closer to the truth."""

    attribute: ClassVar[Attribute] = "presence"
    strength: float = 0.15
    steps: int = 10
    resample: int = 1  # times that the steps are taken, going back up in noise in between
    device: Device = "cpu"
    size: int = ObjectRemover.size
    painter: PainterName = "background-256"

    def __post_init__(self) -> None:
        self._brush()

    @property
    def level(self) -> str:
        """Always "painted"; other strengths, sizes and resampling are told apart."""
        told = _told(self.strength, 0.15, self.size, ObjectRemover.size)
        return "painted" + told + (f" x{self.resample}" if self.resample > 1 else "")

    @property
    def needs(self) -> Needs:
        """A GPU where the settings name one."""
        return Needs(gpu=self.device == "cuda")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint over the exemplar fill; everything outside the hole stays."""
        hole = hole_of(subject.cutout.alpha)
        image = remove_object(subject.picture.image, subject.background, hole, self._brush(), rng)
        return Picture(image, np.zeros_like(subject.picture.alpha))

    def _brush(self) -> ObjectRemover:
        return ObjectRemover(self.strength, self.steps, 0.0, self.device, self.size, self.resample)


def _told(strength: float, usual: float, size: int, usual_size: int = SIZE) -> str:
    return ("" if strength == usual else f" at {strength:g}") + ("" if size == usual_size else f" {size} px")


def _before(
    subject: Subject, brush: BackgroundPainter, rng: np.random.Generator, guide: Guide | None = None,
    background: NDArray[np.uint8] | None = None,
) -> Picture:  # fmt: skip
    """The object before a background painted from the given one, or from its own."""
    cut = subject.cutout
    check_background(cut.background_share)
    start = subject.background if background is None else background
    layers = Layers(np.asarray(start), cut.image, cut.alpha >= SURELY_OBJECT)
    return subject.on_background(brush.paint(layers, rng, guide))
