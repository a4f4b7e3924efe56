"""Complexity as ImageNet-E means it, c(x) = mean of |FFT2(x)|, and a guide that raises or lowers it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterfoil.paint.sampler import Array

USUAL = 28.0  # c of a photo at 256 px, levels from -1 to 1: the mean of 480
MOST_NEUTRAL = 1.5
LEAST = 1e-6  # of a wave's strength; weaker ones have no phase worth keeping
SIDE = 256  # of the pictures whose waves the guidance is measured in
# By strength of the edit, what makes guidance 0 neutral: measured on 480 photos, pictures come out that much too plain.
NEUTRAL_STRENGTHS, NEUTRAL_GUIDANCES = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0), (0.0, 5.8, 4.2, 3.7, 4.9, 4.9)


@dataclass(frozen=True)
class ComplexityGuide:
    """Adds to the strength of every wave in proportion to the noise: a step along the gradient of c, in closed form."""

    total: Array  # a number, or one for each picture, (n, 1, 1, 1)

    def __call__(self, clean: Array, noise: float) -> Array:
        """The picture seen so far, more complex or plainer."""
        height, width = clean.shape[-2:]
        return raised(clean, self.total * noise * math.sqrt(height * width) / SIDE)


def complexity_guide(guidance: float, strength: float, before: float = USUAL) -> ComplexityGuide:
    """The guide to a lambda, from a picture of complexity `before`."""
    # What the model takes away is a share of what was there: a plain photo must not be given the grain of a rich one.
    neutral = float(np.interp(strength, NEUTRAL_STRENGTHS, NEUTRAL_GUIDANCES)) * min(before / USUAL, MOST_NEUTRAL)
    return ComplexityGuide(guidance + neutral)


def complexity_of(picture: Array) -> float:
    """c of one picture, (1, 3, height, width) from -1 to 1, as it would be at 256 px."""
    height, width = picture.shape[-2:]
    return float(abs(np.fft.fft2(picture)).mean()) * SIDE / math.sqrt(height * width)


def raised(picture: Array, added: Array) -> Array:
    """The picture with `added` more in the strength of every wave but the mean's; below 0 a wave is gone."""
    module: Any = np if isinstance(picture, np.ndarray) else sys.modules["torch"]
    waves = module.fft.rfft2(picture)
    strength = module.clip(abs(waves), LEAST, None)
    factors = module.clip(strength + added, 0, None) / strength
    factors[..., 0, 0] = 1
    size = tuple(picture.shape[-2:])
    result = module.fft.irfft2(waves * factors, s=size)
    return result.astype(np.float32) if module is np else result
