"""A background painted by the bundled model at the photo's size, and an object removed by painting over it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.painters.background_batches import Guides, shared_batcher
from counterfoil.painters.background_model import STEP, load_background_model
from counterfoil.painters.guidance import SIDE, complexity_guide, fourier_complexity
from counterfoil.painters.paint_service import find_client
from counterfoil.painters.sampler import Guide, Scene, ratios, repeat_steps, sample_background

MOST_GUIDANCE = 100.0  # beyond it pictures are only grain, or only blur
MOST_STEPS = 1000
MOST_TIMES = 100  # how often the steps may be repeated
LEAST_STRENGTH = 0.01  # below it the schedule would start after its own end
SIZE = 512  # pixels of the shorter side up to which photos are painted as they are
LEAST_SIZE, MOST_SIZE = 64, 1024
LONGEST, MOST_PIXELS = 2048, 1024**2  # of the painted picture; memory grows with the square of the area
LAYOUT_LOST = 0.6  # from this strength on, nothing of the photo's layout and fine detail is kept
FINE_STRENGTH, FINE_STEPS = 0.3, 10  # of the second pass, which adds detail to a coarse layout

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Device: TypeAlias = Literal["cpu", "cuda"]
Precision: TypeAlias = Literal["f32", "bf16"]
PainterName: TypeAlias = Literal["background-256"]  # of the weights; other weights need another name


class Layers(NamedTuple):
    """The inputs for painting a photo, at its own size."""

    background: Bytes  # (height, width, 3), the painting starts here
    colours: Bytes  # (height, width, 3), of the kept pixels
    known: Flags  # (height, width), which pixels are kept


@dataclass(frozen=True)
class BackgroundPainter:
    """The settings and steps of painting a background."""

    strength: float  # how much is new: 0.15 keeps things in place, 0.5 keeps the layout, 1 keeps nothing
    steps: int
    guidance: float  # ImageNet-E's lambda: above 0 more complex, below 0 plainer
    device: Device = "cpu"
    size: int = SIZE  # pixels of the shorter side; larger photos are painted at it and enlarged
    precision: Precision = "f32"  # bf16 is several times as fast on a GPU, and a few levels differ by one

    def __post_init__(self) -> None:
        if self.precision != "f32" and self.device != "cuda":
            raise UserError(f"precision: expected f32 with device: {self.device}, got {self.precision}; it needs cuda")
        if not LEAST_STRENGTH <= self.strength <= 1:
            raise UserError(f"strength: expected from {LEAST_STRENGTH:g} to 1, got {self.strength:g}")
        if not 1 <= self.steps <= MOST_STEPS:
            raise UserError(f"steps: expected from 1 to {MOST_STEPS}, got {self.steps}")
        if not abs(self.guidance) <= MOST_GUIDANCE:  # also false for NaN
            raise UserError(f"guidance: expected from -{MOST_GUIDANCE:g} to {MOST_GUIDANCE:g}, got {self.guidance:g}")
        if not LEAST_SIZE <= self.size <= MOST_SIZE:
            raise UserError(f"size: expected from {LEAST_SIZE} to {MOST_SIZE} pixels, got {self.size}")

    def paint(
        self,
        layers: Layers,
        rng: np.random.Generator,
        guide: Guide | None = None,
        prepared: PreparedLayers | None = None,
    ) -> Bytes:
        """The whole picture painted, (height, width, 3); kept pixels are about as they were.

        `prepared` are the layers as `prepare_layers` makes them for `first_size`, where several pictures start there.
        """
        shape = layers.known.shape
        first = prepare_layers(layers, self.first_size(shape)) if prepared is None else prepared
        if self.first_size(shape) == self.size:
            return self._paint_once(layers, first, rng, guide)
        # A new layout is painted at the training size; at larger sizes noise gives texture without layout.
        coarse = replace(self, size=SIDE)._paint_once(layers, first, rng, guide)
        fine = replace(self, strength=FINE_STRENGTH, steps=min(self.steps, FINE_STEPS))
        begun = layers._replace(background=coarse)
        return fine._paint_once(begun, prepare_layers(begun, self.size), rng, guide)

    def first_size(self, shape: tuple[int, ...]) -> int:
        """The shorter side at which a picture of this height and width is painted first."""
        return self.size if self.strength < LAYOUT_LOST or min(self.size, *shape) <= SIDE else SIDE

    def _paint_once(
        self, layers: Layers, prepared: PreparedLayers, rng: np.random.Generator, guide: Guide | None
    ) -> Bytes:
        background, colours, known = prepared.planes
        scene = Scene(background, colours, known, rng.standard_normal(background.shape, np.float32))
        guides = Guides(complexity_guide(self.guidance, self.strength, prepared.complexity), guide)
        planes = self._sample(scene, guides)
        height, width = prepared.shape
        levels = _round_levels((planes[0, :, :height, :width] + 1) * np.float32(127.5))
        image = np.asarray(cv2.merge(list(levels)), np.uint8)  # several times as fast as a transposed copy
        if (height, width) == layers.known.shape:
            return image
        return self._enlarge(image, prepared.background, layers.background)

    @property
    def schedule(self) -> list[float]:
        """The noise of each step."""
        return ratios(self.strength, self.steps)

    def _sample(self, scene: Scene, guides: Guides) -> Floats:
        if self.device == "cuda":
            client = find_client()
            if client is not None:
                return client.paint(self.device, self.precision, scene, self.schedule, guides)
            return shared_batcher(self.device, self.precision).paint(scene, self.schedule, guides)
        return np.asarray(sample_background(load_background_model(), scene, self.schedule, _chain(*guides)), np.float32)

    def _enlarge(self, image: Bytes, before: Bytes, photo: Bytes) -> Bytes:
        """The painting enlarged to the photo's size, with as much of the photo's fine detail as was kept."""
        size = photo.shape[1::-1]
        soft = cv2.resize(before, size, interpolation=cv2.INTER_CUBIC)
        detail = _measure_detail(image) / max(_measure_detail(before), 0.5)
        share = min(2.0, detail) * max(0.0, 1 - self.strength / LAYOUT_LOST)
        large = cv2.resize(image, size, interpolation=cv2.INTER_CUBIC).astype(np.float32)
        return _round_levels(large + share * (photo.astype(np.float32) - np.asarray(soft, np.float32)))


@dataclass(frozen=True)
class ObjectRemover(BackgroundPainter):
    """A painter that repeats its steps, so that the fill matches its surroundings."""

    size: int = SIDE  # the first fill's fine detail is kept; a larger size costs more and is no better
    resample: int = 1  # repetitions; 1 goes straight from noise to picture

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.resample <= MOST_TIMES:
            raise UserError(f"resample: expected from 1 to {MOST_TIMES} times, got {self.resample}")
        if self.resample > 1 and self.steps == 1:
            raise UserError(f"resample: expected 1 where steps is 1, got {self.resample}; give 2 or more steps")

    @property
    def schedule(self) -> list[float]:
        """The noise of each step, with the steps repeated."""
        return repeat_steps(ratios(self.strength, self.steps), self.resample)


def remove_object(
    image: Bytes,
    filled: Bytes,
    hole: Flags,
    painter: BackgroundPainter,
    rng: np.random.Generator,
) -> Bytes:
    """The photo with its hole painted, starting from a first fill; pixels outside the hole stay as they are."""
    return np.where(hole[..., None], painter.paint(Layers(filled, image, ~hole), rng), image)


def _chain(first: Guide, second: Guide | None) -> Guide:
    return first if second is None else lambda clean, noise: second(first(clean, noise), noise)


class PreparedLayers(NamedTuple):
    """Layers at the size at which they are painted, as the model takes them; read-only."""

    background: Bytes  # (height, width, 3)
    planes: tuple[Floats, Floats, Floats]  # background, colours and known, (1, c, height, width) in whole steps
    complexity: float  # of the picture before it is painted

    @property
    def shape(self) -> tuple[int, int]:
        """The height and width of the painting."""
        return self.background.shape[0], self.background.shape[1]


def prepare_layers(layers: Layers, size: int) -> PreparedLayers:
    """The layers for painting at this size of the shorter side; all paintings from them share it."""
    small = _reduce_layers(layers, size)
    background, colours = (_pad_planes(plane.astype(np.float32) / 127.5 - 1) for plane in small[:2])
    known = _pad_planes(small.known.astype(np.float32)[..., None])
    complexity = fourier_complexity(known * colours + (1 - known) * background)
    return PreparedLayers(small.background, (background, colours, known), complexity)


def _reduce_layers(layers: Layers, size: int) -> Layers:
    """The layers with the shorter side at this size, or less if very long; small ones stay."""
    height, width = layers.known.shape
    room = math.sqrt(MOST_PIXELS / (height * width))
    scale = min(size / min(height, width), LONGEST / max(height, width), room)
    if scale >= 1:
        return layers
    reduced = (max(1, round(width * scale)), max(1, round(height * scale)))
    background, colours = _average(layers.background, reduced), _average(layers.colours, reduced)
    return Layers(background, colours, _reduce_mask(layers.known, reduced))


def _average(image: Bytes, size: tuple[int, int]) -> Bytes:
    """The picture at a smaller width and height."""
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _reduce_mask(known: Flags, size: tuple[int, int]) -> Flags:
    """The mask at a smaller width and height: a pixel of which any part is unknown is painted."""
    share = np.asarray(cv2.resize(known.astype(np.float32), size, interpolation=cv2.INTER_AREA))
    return np.asarray(share > 0.999)


def _pad_planes(plane: Floats) -> Floats:
    """(height, width, c) to (1, c, height, width), padded to whole steps by reflection."""
    height, width = plane.shape[:2]
    larger = np.pad(plane, ((0, -height % STEP), (0, -width % STEP), (0, 0)), "symmetric")
    return np.ascontiguousarray(larger.transpose(2, 0, 1)[None], np.float32)


def _round_levels(levels: Floats) -> Bytes:
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8)


def _measure_detail(image: Bytes) -> float:
    """The amount of finest detail in a picture, in levels."""
    soft = cv2.GaussianBlur(image, (0, 0), 1.0)
    return math.sqrt(float(np.mean(cv2.absdiff(image, np.asarray(soft, np.uint8)).astype(np.float32) ** 2)))
