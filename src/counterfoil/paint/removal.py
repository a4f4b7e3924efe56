"""The object painted over: what is known is the background, and the hole is filled by the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterfoil.paint.brush import Brush, Layers


def removed(
    image: NDArray[np.uint8], filled: NDArray[np.uint8], hole: NDArray[np.bool_], brush: Brush, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The photo with its hole painted, starting from a first fill; pixels outside the hole stay as they are."""
    made = brush.paint(Layers(filled, image, ~hole), rng)
    return np.where(hole[..., None], made, image)
