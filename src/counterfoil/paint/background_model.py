"""The background model that comes with the package, in ONNX Runtime: what it predicts, and where its weights lie."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from counterfoil.embedded.session import session
from counterfoil.errors import UserError
from counterfoil.paint.background_shape import PATCH

FILE = "background-256.safetensors"

Floats = NDArray[np.float32]
# (n, 7, height, width) noisy picture, known colours and where they are known, and the log ratio of signal to noise of
# all of them, to v, (n, 3, height, width)
Predictor: TypeAlias = "Callable[[Floats, float], Floats]"


def weights_file() -> bytes:
    """The shipped weights, in the safetensors format."""
    return resources.files("counterfoil.paint").joinpath("weights").joinpath(FILE).read_bytes()


def read_weights(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file of 16-bit floating point numbers."""
    try:
        tensors: dict[str, NDArray[Any]] = load(data)
    except SafetensorError as error:
        raise UserError(f"expected a whole safetensors file, got other or damaged bytes: {error}") from error
    for name, tensor in tensors.items():
        if tensor.dtype != np.float16:
            raise UserError(f"expected weights of 16 bits, got {name} as {tensor.dtype}")
    return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


@lru_cache(maxsize=1)
def background_model() -> Predictor:
    """The shipped model; several threads may use it at once."""
    return loaded_model(weights_file())


def loaded_model(weights: bytes) -> Predictor:
    """A model of this kind with these weights."""
    from counterfoil.paint.background_graph import background_graph  # here, because it loads onnx

    network = session(background_graph(read_weights(weights)))

    def predicted(planes: Floats, log_ratio: float) -> Floats:
        ratios = np.full((len(planes), 1), log_ratio, np.float32)
        (patches,) = network.run(None, {"patches": _patches(planes), "log_ratio": ratios})
        return _pixels(patches)

    return predicted


def _patches(planes: Floats) -> Floats:
    """Pixels side by side become channels: (n, c, height, width) to (n, c x PATCH^2, height / PATCH, width / PATCH)."""
    count, channels, height, width = planes.shape
    cut = planes.reshape(count, channels, height // PATCH, PATCH, width // PATCH, PATCH)
    shape = (count, channels * PATCH**2, height // PATCH, width // PATCH)
    return np.asarray(cut.transpose(0, 1, 3, 5, 2, 4).reshape(shape), np.float32)


def _pixels(patches: Floats) -> Floats:
    """The way back."""
    count, channels, height, width = patches.shape
    cut = patches.reshape(count, channels // PATCH**2, PATCH, PATCH, height, width)
    shape = (count, channels // PATCH**2, height * PATCH, width * PATCH)
    return np.asarray(cut.transpose(0, 1, 4, 2, 5, 3).reshape(shape), np.float32)
