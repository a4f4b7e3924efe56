"""Backgrounds painted by the bundled diffusion model."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, Needs, RecipeEdit, Resolution, Supplied
from counterfoil.edits.fill import find_hole
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError, how_to_install
from counterfoil.models.onnx_classifier import OnnxClassifier
from counterfoil.painters.background_painter import (
    SIZE,
    BackgroundPainter,
    Device,
    Layers,
    ObjectRemover,
    PainterName,
    Precision,
    PreparedLayers,
    prepare_layers,
    remove_object,
)
from counterfoil.painters.guidance import SurrogateGuide, log_probability
from counterfoil.painters.sampler import Guide
from counterfoil.types import Attribute, Classifier, EditLevel, Picture, Preprocessing

_UNUSUAL = re.compile(r"^(random|-?[\d.]+(-adv( by candidates)?)?)")  # what a level names besides unusual settings
SURELY_OBJECT = 230  # alpha; the soft edge below it is painted too, so that no halo is left


@dataclass(frozen=True)
class PaintedComplexity(Edit):
    """Paint the background anew, more complex or plainer: ImageNet-E's lambda; 0 repaints it too and is the control."""

    attribute: ClassVar[Attribute] = "background"
    later: ClassVar[tuple[str, ...]] = ("precision",)
    guidance: float = 20.0  # ImageNet-E's lambda
    strength: float = 0.3
    steps: int = 10
    device: Device = "cpu"
    size: int = SIZE
    painter: PainterName = "background-256"
    precision: Precision = "f32"

    def __post_init__(self) -> None:
        self._background_painter()

    @property
    def level(self) -> str:
        """The guidance: "-20"; unusual strengths and sizes are added."""
        return f"{self.guidance:g}" + _name_unusual(self.strength, 0.3, self.size)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        if re.match(r"0(?![\d.])", level):
            return f"painting it anew without guidance (lambda {level})"
        return f"painting it anew with lambda {level}" if level else "painting it anew"

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """Painted anew in the same way without guidance (lambda 0), which is not the photo; None for itself."""
        own = f"0{_UNUSUAL.sub('', level)}"
        return None if own == level else EditLevel("painted-complexity", own)

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """Painted anew without guidance."""
        settings = {"strength": (self.strength, 0.3), "size": (self.size, SIZE)}
        unusual = {name: value for name, (value, usual) in settings.items() if value != usual}
        return () if self.guidance == 0 else (RecipeEdit("painted-complexity", {"guidance": 0, **unusual}),)

    @property
    def needs(self) -> Needs:
        """A GPU where the settings name one."""
        return Needs(gpu=self.device == "cuda")

    @property
    def least_change(self) -> float:
        """Nothing without guidance, which is the control of the painted kinds."""
        return super().least_change if self.guidance else 0.0

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint from the filled background, with the object kept at every step."""
        return _paint(subject, self._background_painter(), rng)

    def _background_painter(self) -> BackgroundPainter:
        return BackgroundPainter(self.strength, self.steps, self.guidance, self.device, self.size, self.precision)


@dataclass(frozen=True, kw_only=True)
class PaintedAdversarial(PaintedComplexity):
    """Paint a more complex background that makes a surrogate doubt the truth: ImageNet-E's 20-adv."""

    by: Literal["auto", "candidates", "gradient"] = "auto"  # auto: the gradient where the surrogate has one
    candidates: int = 4
    candidate: int | None = None  # the chosen candidate
    surrogate: str = "embedded:efficientnet-lite0"  # address of the model

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.candidates <= 64:
            raise UserError(f"candidates: expected from 2 to 64 backgrounds to choose from, got {self.candidates}")
        if self.candidate is not None and not 0 <= self.candidate < self.candidates:
            raise UserError(f"candidate: expected from 0 to {self.candidates - 1}, got {self.candidate}")

    @property
    def level(self) -> str:
        """The guidance, marked: "20-adv" by the gradient as in ImageNet-E, or "20-adv by candidates"."""
        how = " by candidates" if self.by == "candidates" else ""
        return f"{self.guidance:g}-adv{how}" + _name_unusual(self.strength, 0.3, self.size)

    @property
    def needs(self) -> Needs:
        """The surrogate that guides or chooses the background."""
        return Needs(surrogate=self.surrogate, gpu=self.device == "cuda")

    def check_surrogate(self, surrogate: Classifier) -> None:
        """Raises `UserError` where the settings ask for a gradient that the surrogate lacks."""
        self.by_gradient(surrogate)

    def by_gradient(self, surrogate: Classifier) -> bool:
        """Whether to use the surrogate's gradient; raises `UserError` where it is required but missing."""
        if self.by == "candidates" or self.candidate is not None:
            return self.by == "gradient"
        reason = explain_missing_gradient(surrogate)
        if reason and self.by == "gradient":
            raise UserError(f"by: gradient with {self.surrogate}: {reason}; use by: candidates")
        return not reason

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Use the gradient, or choose the candidate with the lowest probability of the true label."""
        if self.candidate is not None:
            return Resolution(self)
        if self.by_gradient(supplied.surrogate):
            return Resolution(replace(self, by="gradient", candidate=0))
        candidates = [replace(self, by="candidates", candidate=number) for number in range(self.candidates)]
        images = [each.apply(subject, np.random.default_rng(supplied.seed), supplied).image for each in candidates]
        return Resolution(candidates[int(np.argmin(supplied.true_scores(images)))])

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint the chosen candidate, the first where none was chosen; without a surrogate there is no gradient."""
        guided = self.by == "gradient" and supplied.load_surrogate is not None
        guide = guide_against(supplied.surrogate, supplied.label) if guided else None
        seeds = rng.integers(2**63, size=self.candidates)
        own = np.random.default_rng(int(seeds[self.candidate or 0]))
        return _paint(subject, self._background_painter(), own, guide)


@dataclass(frozen=True)
class PaintedRandom(Edit):
    """Paint a texture of the painter's own from noise around the object: grass, cloth or canvas, seldom a scene."""

    attribute: ClassVar[Attribute] = "background"
    later: ClassVar[tuple[str, ...]] = ("precision",)
    words: ClassVar[str] = "a painted texture instead"
    steps: int = 20
    device: Device = "cpu"
    size: int = SIZE
    painter: PainterName = "background-256"
    precision: Precision = "f32"

    def __post_init__(self) -> None:
        self._background_painter()

    @property
    def level(self) -> str:
        """Always "random"; unusual sizes are added."""
        return "random" + _name_unusual(1.0, 1.0, self.size)

    @property
    def needs(self) -> Needs:
        """A GPU where the settings name one."""
        return Needs(gpu=self.device == "cuda")

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """Painted anew without guidance (lambda 0), at the same size."""
        return EditLevel("painted-complexity", f"0{_UNUSUAL.sub('', level)}")

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """Painted anew without guidance."""
        unusual = {} if self.size == SIZE else {"size": self.size}
        return (RecipeEdit("painted-complexity", {"guidance": 0, **unusual}),)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint from a plain colour, of which the noise leaves little."""
        plain = np.broadcast_to(rng.integers(0, 256, 3, dtype=np.uint8), subject.picture.image.shape)
        subject.check_background()
        return subject.on_background(self._background_painter().paint(_layer(subject, plain), rng))

    def _background_painter(self) -> BackgroundPainter:
        return BackgroundPainter(1.0, self.steps, 0.0, self.device, self.size, self.precision)


@dataclass(frozen=True)
class PaintedRemoval(Edit):
    """Take the object away and paint what was behind it; the fill of `object-removed` is closer to the truth."""

    attribute: ClassVar[Attribute] = "presence"
    later: ClassVar[tuple[str, ...]] = ("precision",)
    version: ClassVar[int] = 5  # 5, 4, 3: other fills and limits; 2: the fill is judged, the shadow leaves too
    strength: float = 0.15
    steps: int = 10
    resample: int = 1  # how often the steps are repeated, with noise added in between
    device: Device = "cpu"
    size: int = ObjectRemover.size
    painter: PainterName = "background-256"
    precision: Precision = "f32"

    def __post_init__(self) -> None:
        self._object_remover()

    @property
    def level(self) -> str:
        """Always "painted"; unusual strengths, sizes and resampling are added."""
        unusual = _name_unusual(self.strength, 0.15, self.size, ObjectRemover.size)
        return "painted" + unusual + (f" x{self.resample}" if self.resample > 1 else "")

    @property
    def needs(self) -> Needs:
        """A GPU where the settings name one."""
        return Needs(gpu=self.device == "cuda")

    @property
    def shows_fill(self) -> bool:
        """The painting starts from the fill."""
        return True

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Paint from the patch fill; pixels outside the hole stay."""
        hole = find_hole(subject.cutout.alpha)
        image = remove_object(subject.picture.image, subject.visible_background, hole, self._object_remover(), rng)
        return Picture(image, np.zeros_like(subject.picture.alpha))

    def _object_remover(self) -> ObjectRemover:
        return ObjectRemover(
            self.strength, self.steps, 0.0, self.device, self.size, self.precision, resample=self.resample
        )


def _name_unusual(strength: float, usual: float, size: int, usual_size: int = SIZE) -> str:
    """The end of a level where strength or size are not the defaults."""
    return ("" if strength == usual else f" at {strength:g}") + ("" if size == usual_size else f" {size} px")


def _paint(
    subject: Subject, painter: BackgroundPainter, rng: np.random.Generator, guide: Guide | None = None
) -> Picture:
    """The object before a background painted from the filled one."""
    subject.check_background()
    layers = _layer(subject, subject.background)
    prepared = subject.once(_PaintingStart(painter.first_size(layers.known.shape)))
    return subject.on_background(painter.paint(layers, rng, guide, prepared))


def _layer(subject: Subject, start: NDArray[np.uint8]) -> Layers:
    """The inputs for painting around the object of a photo."""
    cut = subject.cutout
    return Layers(start, cut.image, cut.alpha >= SURELY_OBJECT)


@dataclass(frozen=True)
class _PaintingStart:
    """The filled background at one size, from which all paintings of a photo start."""

    size: int

    def __call__(self, subject: Subject) -> PreparedLayers:
        return prepare_layers(_layer(subject, subject.background), self.size)


def explain_missing_gradient(surrogate: Classifier) -> str:
    """Why a surrogate has no gradient; empty where it has one."""
    if not isinstance(surrogate, OnnxClassifier):
        return "expected an ONNX surrogate, got another kind of model"
    if importlib.util.find_spec("torch") is None:
        return f"expected torch, which is not installed; {how_to_install('torch')}"
    return _explain_unsupported(surrogate.path, surrogate.preprocessing)


@lru_cache(maxsize=8)
def _explain_unsupported(path: Path, preprocessing: Preprocessing) -> str:
    try:
        log_probability(path, 0, preprocessing)
    except UserError as error:
        return str(error)
    return ""


def guide_against(surrogate: Classifier, label: str) -> Guide:
    """Guidance of the painter away from this label, by the surrogate's gradient."""
    if not isinstance(surrogate, OnnxClassifier):
        raise UserError(f"expected an ONNX surrogate for by: gradient, got {type(surrogate).__name__}")
    return SurrogateGuide(surrogate.path, surrogate.labels.index(label), surrogate.preprocessing)
