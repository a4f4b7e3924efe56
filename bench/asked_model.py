"""An embedded network as a Python model, whose answers are never stored: `python:asked_model:Lite0`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.models.model_loaders import load_model


class Lite0:
    """EfficientNet-Lite0, asked about every picture."""

    preprocessing = None

    def __init__(self) -> None:
        self._network: Any = load_model("embedded:efficientnet-lite0")
        self.labels = self._network.labels

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        scores: NDArray[np.float32] = self._network(images)
        return scores
