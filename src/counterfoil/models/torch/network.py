"""A torch module with all that an evaluation needs to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.preparation import Preparation, Transform
from counterfoil.models.weights import file_digest, weights_digest

Scores = Literal["logits", "probabilities"]


@dataclass(frozen=True)
class TorchNetwork:
    """What a library's adapter makes: pictures (n, 3, height, width) to scores (n, labels)."""

    module: Any
    labels: tuple[str, ...]
    preparation: Preparation
    scores: Scores = "logits"
    file: Path | None = None  # an archive that holds code besides the weights

    @cached_property
    def digest(self) -> str:
        """Hash of the weights as loaded, wherever they came from, or of the archive with their code."""
        return file_digest(self.file) if self.file else weights_digest(self.module)

    @property
    def parameters(self) -> int:
        """How many numbers were learnt."""
        return sum(parameter.numel() for parameter in self.module.parameters())


@dataclass(frozen=True)
class TensorTransform:
    """A library's transform of a picture to a tensor, as one to an array."""

    transform: Callable[[Image.Image], Any]

    def __str__(self) -> str:
        """The transform as its library prints it."""
        return str(self.transform)

    def __call__(self, picture: Image.Image) -> NDArray[np.float32]:
        """The network's input, (3, height, width)."""
        return np.asarray(self.transform(picture).numpy(), np.float32)


def as_transform(transform: Callable[[Image.Image], Any]) -> Transform:
    """A library's transform in the shape that `proven` takes."""
    return TensorTransform(transform)
