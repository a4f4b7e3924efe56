"""A background painted at the photo's own size: reduced, painted, enlarged again with the fine detail it had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.paint.background_model import background_model
from counterfoil.paint.background_shape import STEP
from counterfoil.paint.background_torch import painted_on, torch_model
from counterfoil.paint.complexity_guide import SIDE, complexity_guide, complexity_of
from counterfoil.paint.sampler import Guide, Predict, Scene, painted, ratios

MOST_GUIDANCE = 100.0  # beyond it pictures are nothing but grain, or nothing but blur
MOST_STEPS = 1000
LEAST_STRENGTH = 0.01  # below it the way from noise to picture would begin behind its own end
LONGEST = 8 * SIDE  # pixels of the longer side; the network's memory grows with the square of the area
STRONGEST_DETAIL = 0.6  # edits of this strength and more keep nothing of the photo's finest detail

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Device: TypeAlias = Literal["cpu", "cuda"]
PainterName: TypeAlias = Literal["background-256"]  # weights; others would be another name, and other pictures


class Layers(NamedTuple):
    """What a photo is painted from, at its own size."""

    background: Bytes  # (height, width, 3), the painting starts here
    colours: Bytes  # (height, width, 3), of what stays
    known: Flags  # (height, width), where they stay


@dataclass(frozen=True)
class Brush:
    """How a background is painted."""

    strength: float  # how much of it is new: 0.15 keeps things where they are, 0.5 keeps the layout, 1 nothing
    steps: int
    guidance: float  # ImageNet-E's lambda: above 0 more complex, below 0 plainer
    device: Device = "cpu"

    def __post_init__(self) -> None:
        if not LEAST_STRENGTH <= self.strength <= 1:
            raise UserError(f"strength: expected from {LEAST_STRENGTH:g} to 1, got {self.strength:g}")
        if not 1 <= self.steps <= MOST_STEPS:
            raise UserError(f"steps: expected from 1 to {MOST_STEPS}, got {self.steps}")
        if not abs(self.guidance) <= MOST_GUIDANCE:  # false for what is not a number, too
            raise UserError(f"guidance: expected from -{MOST_GUIDANCE:g} to {MOST_GUIDANCE:g}, got {self.guidance:g}")

    def paint(self, layers: Layers, rng: np.random.Generator, guide: Guide | None = None) -> Bytes:
        """The whole picture painted, (height, width, 3); where it is known it is about as it was."""
        shape = layers.known.shape
        small = Layers(_reduced(layers.background), _reduced(layers.colours), _wholly(layers.known))
        scene = _scene(small, rng)
        before = complexity_of(scene.known * scene.colours + (1 - scene.known) * scene.background)
        made = self._solved(scene, _both(complexity_guide(self.guidance, self.strength, before), guide))
        height, width = small.known.shape
        image = _levels(made[0, :, :height, :width])
        return image if (height, width) == shape else self._enlarged(image, small.background, layers.background)

    @property
    def schedule(self) -> list[float]:
        """The noise of each step."""
        return ratios(self.strength, self.steps)

    def _solved(self, scene: Scene, guide: Guide) -> Floats:
        if self.device == "cuda":
            return painted_on(self.device, _on_gpu(self.device), scene, self.schedule, guide)
        return np.asarray(painted(background_model(), scene, self.schedule, guide), np.float32)

    def _enlarged(self, image: Bytes, before: Bytes, photo: Bytes) -> Bytes:
        """The painting at the photo's size, with as much of the finest detail as it kept of the next finest."""
        size = photo.shape[1::-1]
        soft = cv2.resize(before, size, interpolation=cv2.INTER_CUBIC)
        share = min(2.0, _finest(image) / max(_finest(before), 0.5)) * max(0.0, 1 - self.strength / STRONGEST_DETAIL)
        large = cv2.resize(image, size, interpolation=cv2.INTER_CUBIC).astype(np.float32)
        return _rounded(large + share * (photo.astype(np.float32) - np.asarray(soft, np.float32)))


def _both(first: Guide, second: Guide | None) -> Guide:
    return first if second is None else lambda clean, noise: second(first(clean, noise), noise)


@lru_cache(maxsize=1)
def _on_gpu(device: str) -> Predict:
    return torch_model(device)


def _reduced(image: Bytes) -> Bytes:
    """The picture with its shorter side at the model's size, or less if it is very long; smaller ones stay."""
    size = _small(image.shape)
    return image if size is None else np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _wholly(known: Flags) -> Flags:
    """The same of a mask: a pixel some of which is not known is painted."""
    size = _small(known.shape)
    if size is None:
        return known
    share = np.asarray(cv2.resize(known.astype(np.float32), size, interpolation=cv2.INTER_AREA))
    return np.asarray(share > 0.999)


def _small(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Width and height to work at, where they are not the picture's own."""
    height, width = shape[:2]
    scale = min(SIDE / min(height, width), LONGEST / max(height, width))
    return None if scale >= 1 else (max(1, round(width * scale)), max(1, round(height * scale)))


def _scene(layers: Layers, rng: np.random.Generator) -> Scene:
    """The layers as the model wants them: from -1 to 1, sides in whole steps."""
    background, colours = (_planes(plane.astype(np.float32) / 127.5 - 1) for plane in layers[:2])
    known = _planes(layers.known.astype(np.float32)[..., None])
    return Scene(background, colours, known, rng.standard_normal(background.shape, np.float32))


def _planes(plane: Floats) -> Floats:
    """(height, width, c) to (1, c, height, width), carried on to whole steps by its mirror image."""
    height, width = plane.shape[:2]
    larger = np.pad(plane, ((0, -height % STEP), (0, -width % STEP), (0, 0)), "symmetric")
    return np.ascontiguousarray(larger.transpose(2, 0, 1)[None], np.float32)


def _levels(planes: Floats) -> Bytes:
    return _rounded((planes.transpose(1, 2, 0) + 1) * np.float32(127.5))


def _rounded(levels: Floats) -> Bytes:
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8)


def _finest(image: Bytes) -> float:
    """How much detail of the finest kind a picture has, in levels."""
    soft = cv2.GaussianBlur(image, (0, 0), 1.0)
    return math.sqrt(float(np.mean(cv2.absdiff(image, np.asarray(soft, np.uint8)).astype(np.float32) ** 2)))
