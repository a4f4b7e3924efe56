"""A torch module with its labels and preprocessing, as the library adapters return it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.preprocessing import Preparation
from counterfoil.plugins import import_extra
from counterfoil.store.files import hash_file

Scores = Literal["logits", "probabilities"]


@dataclass(frozen=True)
class TorchNetwork:
    """A network from a library: pictures (n, 3, height, width) to scores (n, labels)."""

    module: Any
    labels: tuple[str, ...]
    preparation: Preparation
    scores: Scores = "logits"
    file: Path | None = None  # an archive that holds code besides the weights

    @cached_property
    def digest(self) -> str:
        """Hash of the weights as loaded, or of the archive where it holds code too."""
        return hash_file(self.file) if self.file else hash_weights(self.module)

    @property
    def parameters(self) -> int:
        """How many numbers were learnt."""
        return sum(parameter.numel() for parameter in self.module.parameters())


@dataclass(frozen=True)
class TensorTransform:
    """A library's transform to a tensor, wrapped to give an array."""

    transform: Callable[[Image.Image], Any]

    def __str__(self) -> str:
        """The transform as its library prints it."""
        return str(self.transform)

    def __call__(self, picture: Image.Image) -> NDArray[np.float32]:
        """The network's input, (3, height, width)."""
        given = self.transform(picture)
        return np.asarray(given.numpy() if hasattr(given, "numpy") else given, np.float32)


def hash_weights(module: Any) -> str:
    """Hash of the weights in a torch module, independent of the file or hub they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(_raw(tensor))
    return digest.hexdigest()


def _raw(tensor: Any) -> bytes:
    torch = import_extra("torch", "torch")
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    raw: bytes = flat.view(torch.uint8).numpy().tobytes()
    return raw
