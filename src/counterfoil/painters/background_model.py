"""The bundled background model: its dimensions, its weights, its ONNX graph and ONNX Runtime over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.errors import UserError

if TYPE_CHECKING:
    from counterfoil.assets.onnx_graph import Graph

PATCH = 4  # side of a patch in pixels; the network sees one position per patch
INPUT_PLANES = 7  # the noisy picture, the known colours and their mask
CHANNELS = (128, 208, 240, 240)  # of each resolution, the finest first
BLOCKS = (2, 2, 1, 1)
ATTENDING = (False, False, True, True)
HEADS = 4
GROUPS = 16
EMBEDDING = 192  # size of the noise level's embedding
STEP = PATCH * 2 ** (len(CHANNELS) - 1)  # sides of pictures are multiples of this


def frequencies() -> NDArray[np.float32]:
    """The frequencies of the noise level's sinusoidal embedding."""
    return np.exp(np.linspace(np.log(0.3), np.log(12.0), 64)).astype(np.float32)


EPSILON = 1e-5
INTEGER = 7  # TensorProto.DataType.INT64

Weights = dict[str, NDArray[Any]]


@dataclass
class _Layers:
    """The graph being built, and its weights."""

    graph: Graph
    weights: Weights

    def constant(self, name: str, rows: slice | None = None) -> str:
        """A weight, or some rows of it, in the graph."""
        weight = self.weights[name]
        if rows is None:
            return self.graph.constant(name, weight)
        return self.graph.constant(f"{name}.{rows.start}", weight[rows])

    def shape(self, *sizes: int) -> str:
        """A shape for `Reshape`; the graph's own constants are floating point."""
        name = self.graph.constant("shape." + ".".join(map(str, sizes)), np.array(sizes))
        return self.graph.node("Cast", [name], {"to": INTEGER})

    def convolution(self, value: str, name: str, rows: slice | None = None, stride: int = 1) -> str:
        """A convolution that keeps the size, or halves it by its stride; `rows` takes some of its outputs."""
        side = self.weights[f"{name}.weight"].shape[-1]
        padding = side // 2 if stride == 1 else 0
        attributes = {"kernel_shape": (side, side), "strides": (stride, stride), "pads": (padding,) * 4}
        constants = [self.constant(f"{name}.{part}", rows) for part in ("weight", "bias")]
        return self.graph.node("Conv", [value, *constants], attributes)

    def linear(self, value: str, name: str, rows: slice | None = None) -> str:
        """A matrix and a bias."""
        constants = [self.constant(f"{name}.{part}", rows) for part in ("weight", "bias")]
        return self.graph.node("Gemm", [value, *constants], {"transB": 1})

    def silu(self, value: str) -> str:
        """The value times its own sigmoid."""
        return self.graph.node("Mul", [value, self.graph.node("Sigmoid", [value])])

    def norm(self, value: str, name: str) -> str:
        """A group norm."""
        channels = len(self.weights[f"{name}.weight"])
        units = [self.graph.constant(f"norm.{number}", np.full(GROUPS, number)) for number in (1, 0)]
        groups = self.graph.node("Reshape", [value, self.shape(0, GROUPS, -1)])
        plain = self.graph.node("InstanceNormalization", [groups, *units], {"epsilon": EPSILON})
        back = self.graph.node("Reshape", [plain, self.graph.node("Shape", [value])])
        gain, offset = (
            self.graph.constant(f"{name}.{part}", self.weights[f"{name}.{part}"].reshape(channels, 1, 1))
            for part in ("weight", "bias")
        )
        return self.graph.node("Add", [self.graph.node("Mul", [back, gain]), offset])

    def residual(self, value: str, noise: str, name: str) -> str:
        """A residual block."""
        channels = len(self.weights[f"{name}.convolution_in.bias"])
        inner = self.convolution(self.silu(self.norm(value, f"{name}.norm_in")), f"{name}.convolution_in")
        scale, shift = (
            self._per_channel(self.linear(noise, f"{name}.modulation", rows))
            for rows in (slice(0, channels), slice(channels, 2 * channels))
        )
        one = self.graph.constant("one", np.array(1))
        scaled = self.graph.node("Mul", [self.norm(inner, f"{name}.norm_out"), self.graph.node("Add", [scale, one])])
        inner = self.convolution(self.silu(self.graph.node("Add", [scaled, shift])), f"{name}.convolution_out")
        if f"{name}.shortcut.weight" in self.weights:
            value = self.convolution(value, f"{name}.shortcut")
        return self.graph.node("Add", [value, inner])

    def _per_channel(self, value: str) -> str:
        return self.graph.node("Reshape", [value, self.shape(0, -1, 1, 1)])

    def attention(self, value: str, name: str) -> str:
        """Self-attention over all positions."""
        channels = len(self.weights[f"{name}.norm.weight"])
        width, normed = channels // HEADS, self.norm(value, f"{name}.norm")
        query, key, content = (
            self._heads(self.convolution(normed, f"{name}.questions", slice(start, start + channels)), width)
            for start in (0, channels, 2 * channels)
        )
        transposed = self.graph.node("Transpose", [query], {"perm": (0, 1, 3, 2)})
        factor = self.graph.constant("attention.factor", np.array(width**-0.5))
        scores = self.graph.node("Mul", [self.graph.node("MatMul", [transposed, key]), factor])
        looks = self.graph.node("Softmax", [scores], {"axis": -1})
        looks = self.graph.node("Transpose", [looks], {"perm": (0, 1, 3, 2)})
        seen = self.graph.node("MatMul", [content, looks])
        flat = self.graph.node("Reshape", [seen, self.graph.node("Shape", [value])])
        return self.graph.node("Add", [value, self.convolution(flat, f"{name}.answer")])

    def _heads(self, value: str, width: int) -> str:
        return self.graph.node("Reshape", [value, self.shape(0, HEADS, width, -1)])

    def block(self, value: str, noise: str, place: Sequence[object]) -> str:
        """A block of one level, (side, level, number), with its attention if it has one."""
        side, level, number = place
        value = self.residual(value, noise, f"{side}.{level}.residuals.{number}")
        return self.attention(value, f"{side}.{level}.attentions.{number}") if ATTENDING[int(str(level))] else value

    def noise(self, log_ratio: str) -> str:
        """The embedding of the noise level, (n, EMBEDDING)."""
        factors = self.graph.constant("frequencies", frequencies()[None] / 4)
        angles = self.graph.node("MatMul", [log_ratio, factors])
        waves = [self.graph.node(wave, [angles]) for wave in ("Sin", "Cos")]
        inner = self.silu(self.linear(self.graph.node("Concat", waves, {"axis": 1}), "embedding_in"))
        return self.silu(self.linear(inner, "embedding_out"))


def build_background_graph(weights: Weights) -> bytes:
    """An ONNX model: patches (n, planes x PATCH^2, height, width) and log_ratio (n, 1) in, patches of v out."""
    from counterfoil.assets.onnx_graph import Graph  # imported here: it needs onnx, which most commands do not use

    layers = _Layers(Graph("background"), weights)
    graph, noise = layers.graph, layers.noise("log_ratio")
    value, kept = layers.convolution("patches", "first"), []
    for level in range(len(CHANNELS)):
        value = layers.convolution(value, f"coarser.{level - 1}", stride=2) if level else value
        for number in range(BLOCKS[level]):
            value = layers.block(value, noise, ("down", level, number))
            kept.append(value)
    value = layers.residual(value, noise, "middle")
    scales = graph.constant("twice", np.array([1, 1, 2, 2]))
    for level in reversed(range(len(CHANNELS))):
        for number in range(BLOCKS[level]):
            value = layers.block(graph.node("Concat", [value, kept.pop()], {"axis": 1}), noise, ("up", level, number))
        if level:
            value = graph.node("Resize", [layers.convolution(value, f"finer.{level - 1}"), "", scales])
    value = layers.convolution(layers.silu(layers.norm(value, "norm_last")), "last")
    inputs = {"patches": (INPUT_PLANES * PATCH**2, "height", "width"), "log_ratio": (1,)}
    return graph.model(inputs, {"v": (value, (3 * PATCH**2, "height", "width"))})


FILE = "background-256.safetensors"

Floats = NDArray[np.float32]
# (n, 7, height, width) noisy picture, known colours and where they are known, and the log ratio of signal to noise of
# all of them, to v, (n, 3, height, width)
Predictor: TypeAlias = "Callable[[Floats, float], Floats]"


def read_weights_file() -> bytes:
    """The shipped weights, in the safetensors format."""
    return resources.files("counterfoil.painters").joinpath("weights").joinpath(FILE).read_bytes()


def read_background_weights(data: bytes) -> dict[str, NDArray[np.float32]]:
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
def load_background_model() -> Predictor:
    """The shipped model; several threads may use it at once."""
    return open_background_model(read_weights_file())


def open_background_model(weights: bytes) -> Predictor:
    """A model of this kind with these weights."""
    network = open_onnx_session(build_background_graph(read_background_weights(weights)))

    def predict(planes: Floats, log_ratio: float) -> Floats:
        ratios = np.full((len(planes), 1), log_ratio, np.float32)
        (patches,) = network.run(None, {"patches": _split_patches(planes), "log_ratio": ratios})
        return _join_patches(patches)

    return predict


def _split_patches(planes: Floats) -> Floats:
    """Move patches into channels: (n, c, height, width) to (n, c x PATCH^2, height / PATCH, width / PATCH)."""
    count, channels, height, width = planes.shape
    cut = planes.reshape(count, channels, height // PATCH, PATCH, width // PATCH, PATCH)
    shape = (count, channels * PATCH**2, height // PATCH, width // PATCH)
    return np.asarray(cut.transpose(0, 1, 3, 5, 2, 4).reshape(shape), np.float32)


def _join_patches(patches: Floats) -> Floats:
    """Move channels back into patches of pixels."""
    count, channels, height, width = patches.shape
    cut = patches.reshape(count, channels // PATCH**2, PATCH, PATCH, height, width)
    shape = (count, channels // PATCH**2, height * PATCH, width * PATCH)
    return np.asarray(cut.transpose(0, 1, 4, 2, 5, 3).reshape(shape), np.float32)
