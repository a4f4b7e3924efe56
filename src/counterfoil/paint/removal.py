"""The object painted over: what is known is the background, and the hole is filled by the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.paint.background_model import background_model
from counterfoil.paint.background_torch import painted_on
from counterfoil.paint.brush import Brush, Layers, _on_gpu
from counterfoil.paint.sampler import Guide, Scene, painted, ratios, resampled

MOST_TIMES = 100


@dataclass(frozen=True)
class RemovalBrush(Brush):
    """A brush that takes its steps several times, so that the fill and its surroundings come to agree."""

    resample: int = 1  # times; 1 goes straight from noise to picture

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.resample <= MOST_TIMES:
            raise UserError(f"resample: expected from 1 to {MOST_TIMES} times, got {self.resample}")
        if self.resample > 1 and self.steps == 1:
            raise UserError(f"resample: expected 1 where steps is 1, got {self.resample}; give 2 or more steps")

    def _solved(self, scene: Scene, guide: Guide) -> NDArray[np.float32]:
        schedule = resampled(ratios(self.strength, self.steps), self.resample)
        if self.device == "cuda":
            return painted_on(self.device, _on_gpu(self.device), scene, schedule, guide)
        return np.asarray(painted(background_model(), scene, schedule, guide), np.float32)


def removed(
    image: NDArray[np.uint8], filled: NDArray[np.uint8], hole: NDArray[np.bool_], brush: Brush, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The photo with its hole painted, starting from a first fill; pixels outside the hole stay as they are."""
    made = brush.paint(Layers(filled, image, ~hole), rng)
    return np.where(hole[..., None], made, image)
