"""The object painted over: what is known is the background, and the hole is filled by the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.paint.brush import Brush, Layers
from counterfoil.paint.complexity_guide import SIDE
from counterfoil.paint.sampler import ratios, resampled

MOST_TIMES = 100


@dataclass(frozen=True)
class RemovalBrush(Brush):
    """A brush that takes its steps several times, so that the fill and its surroundings come to agree."""

    size: int = SIDE  # a fill keeps the first one's fine detail; painting it larger costs more and is no closer
    resample: int = 1  # times; 1 goes straight from noise to picture

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.resample <= MOST_TIMES:
            raise UserError(f"resample: expected from 1 to {MOST_TIMES} times, got {self.resample}")
        if self.resample > 1 and self.steps == 1:
            raise UserError(f"resample: expected 1 where steps is 1, got {self.resample}; give 2 or more steps")

    @property
    def schedule(self) -> list[float]:
        """The noise of each step, up again and down as often as asked."""
        return resampled(ratios(self.strength, self.steps), self.resample)


def removed(
    image: NDArray[np.uint8], filled: NDArray[np.uint8], hole: NDArray[np.bool_], brush: Brush, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The photo with its hole painted, starting from a first fill; pixels outside the hole stay as they are."""
    made = brush.paint(Layers(filled, image, ~hole), rng)
    return np.where(hole[..., None], made, image)
