"""Shape bias: where shape and texture disagree, which one the model follows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.interval import RATE, Estimate, estimate


def shape_bias(answer: NDArray[np.intp], shape: NDArray[np.intp], texture: NDArray[np.intp]) -> Estimate:
    """Shape decisions / (shape + texture decisions), in percent; pictures whose two cues agree are no conflict."""
    conflict = shape != texture
    by_shape, by_texture = conflict & (answer == shape), conflict & (answer == texture)
    decided = by_shape | by_texture
    return estimate(by_shape[decided].astype(np.float64), RATE).scaled(100)
