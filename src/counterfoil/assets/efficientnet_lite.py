"""EfficientNet-Lite converted from torch weights to an ONNX graph.

EfficientNet without squeeze-and-excitation, with ReLU6 for swish, and with stem, first stage, last stage and head
left unscaled. The weights come from TensorFlow, hence its batch-norm epsilon and its padding: "same", with the odd
pixel at the bottom and right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.onnx_graph import Graph
from counterfoil.assets.torch_weights import read_torch_stream
from counterfoil.errors import UserError

EPSILON = 1e-3
CLASSES = 1000
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))  # (blocks before scaling, stride of the first)
NO_WEIGHT = "num_batches_tracked"  # training statistics, of no use here


@dataclass
class _Layers:
    """The graph and the weights not yet used in it; `size` is the side of the feature map."""

    graph: Graph
    weights: dict[str, NDArray[Any]]
    size: int

    def take(self, name: str) -> NDArray[Any]:
        """A weight by name, removed from those left; raises where there is none."""
        if name not in self.weights:
            raise UserError(f"expected the weight {name!r} of an EfficientNet-Lite, got a file without it")
        return self.weights.pop(name)

    def convolution(self, value: str, name: str, norm: str, stride: int = 1) -> str:
        """A convolution with its batch norm folded in; depthwise where the weights are."""
        kernel, bias = self._folded(name, norm)
        channels, group_width, side, _ = kernel.shape
        before, after = self._padding(side, stride)
        attributes = {
            "kernel_shape": (side, side),
            "strides": (stride, stride),
            "pads": (before, before, after, after),
            "group": channels if group_width == 1 else 1,
        }
        constants = [self.graph.constant(f"{name}.weight", kernel), self.graph.constant(f"{name}.bias", bias)]
        self.size = math.ceil(self.size / stride)
        return self.graph.node("Conv", [value, *constants], attributes)

    def relu6(self, value: str) -> str:
        """Cut the values at 0 and 6."""
        bounds = [self.graph.constant(f"relu6.{bound}", np.array(bound)) for bound in (0, 6)]
        return self.graph.node("Clip", [value, *bounds])

    def _folded(self, name: str, norm: str) -> tuple[NDArray[Any], NDArray[Any]]:
        kernel = self.take(f"{name}.weight").astype(np.float64)
        if kernel.ndim != 4:
            raise UserError(f"expected a kernel with 4 axes in {name!r}, got {kernel.ndim}")
        gain, offset, mean, variance = (
            self.take(f"{norm}.{part}").astype(np.float64) for part in ("weight", "bias", "running_mean", "running_var")
        )
        if not gain.shape == offset.shape == mean.shape == variance.shape == kernel.shape[:1]:
            raise UserError(f"expected a batch norm over {len(kernel)} channels in {norm!r}, got another shape")
        scale = gain / np.sqrt(variance + EPSILON)
        return kernel * scale[:, None, None, None], offset - mean * scale

    def _padding(self, side: int, stride: int) -> tuple[int, int]:
        total = max((math.ceil(self.size / stride) - 1) * stride + side - self.size, 0)
        return total // 2, total - total // 2


def convert_efficientnet_lite(stream: bytes, size: int, depth: float) -> bytes:
    """Convert a .pth stream to an ONNX model: normalised NCHW pictures of this size in, probabilities out."""
    weights = {name: array for name, array in read_torch_stream(stream).items() if not name.endswith(NO_WEIGHT)}
    layers = _Layers(Graph("efficientnet-lite"), weights, size)
    value = layers.relu6(layers.convolution("pictures", "_conv_stem", "_bn0", stride=2))
    for index, (stride, repeats) in enumerate(_blocks(depth)):
        inner = _bottleneck(layers, value, f"_blocks.{index}", stride)
        value = layers.graph.node("Add", [inner, value]) if repeats else inner
    value = layers.relu6(layers.convolution(value, "_conv_head", "_bn1"))
    value = _classify(layers, value)
    if layers.weights:
        raise UserError(f"expected another EfficientNet-Lite, got one with the surplus weight {min(layers.weights)!r}")
    return layers.graph.model({"pictures": (3, size, size)}, {"probabilities": (value, (CLASSES,))})


def _blocks(depth: float) -> Iterator[tuple[int, bool]]:
    """The stride of each block, and whether it repeats the block before it (all but the first of a stage)."""
    for stage, (count, stride) in enumerate(STAGES):
        scaled = 0 < stage < len(STAGES) - 1
        yield stride, False
        yield from [(1, True)] * (math.ceil(count * depth) - 1 if scaled else count - 1)


def _bottleneck(layers: _Layers, value: str, name: str, stride: int) -> str:
    """An inverted bottleneck: expand (not in the first stage), depthwise convolution, project."""
    if f"{name}._expand_conv.weight" in layers.weights:
        value = layers.relu6(layers.convolution(value, f"{name}._expand_conv", f"{name}._bn0"))
    value = layers.relu6(layers.convolution(value, f"{name}._depthwise_conv", f"{name}._bn1", stride))
    return layers.convolution(value, f"{name}._project_conv", f"{name}._bn2")


def _classify(layers: _Layers, value: str) -> str:
    graph = layers.graph
    features = graph.node("Flatten", [graph.node("GlobalAveragePool", [value])])
    constants = [graph.constant(name, layers.take(name)) for name in ("_fc.weight", "_fc.bias")]
    return graph.node("Softmax", [graph.node("Gemm", [features, *constants], {"transB": 1})])
