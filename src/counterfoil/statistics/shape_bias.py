"""Shape bias: where shape and texture disagree, which of the two a model follows."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.intervals import RATE, Estimate, estimate

_CUE_CONFLICT = re.compile(r"(?:^|[/_])([A-Za-z]+)\d+-([A-Za-z]+)\d+(?:\.[A-Za-z]+)?$")  # airplane1-bicycle2.png


def shape_bias(answer: NDArray[np.intp], shape: NDArray[np.intp], texture: NDArray[np.intp]) -> Estimate:
    """Shape decisions / (shape + texture decisions), in percent; pictures whose two cues agree are no conflict."""
    conflict = shape != texture
    by_shape, by_texture = conflict & (answer == shape), conflict & (answer == texture)
    decided = by_shape | by_texture
    return estimate(by_shape[decided].astype(np.float64), RATE).scaled(100)


def parse_cue_conflict(name: str) -> tuple[str, str] | None:
    """Shape and texture of a picture named like airplane1-bicycle2.png; None for other names."""
    match = _CUE_CONFLICT.search(name)
    return (match[1].lower(), match[2].lower()) if match else None
