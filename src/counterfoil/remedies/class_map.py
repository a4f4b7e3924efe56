"""The last layer of an ONNX classifier, and the class map: which places of a picture speak for a class.

Walking back from the output, the classifier's last matrix product is found first (a linear layer, or a convolution of
one pixel), then the mean over places before it. What lies between the two (a second layer, an activation) treats every
picture by itself, so it can be applied to every place by itself: the weights of a class times the result is the class
map (CAM, Zhou et al. 2016). Where the mean comes after the product, the product itself is the map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

from counterfoil.remedies.graph_reader import GraphReader, PlaceMean

_PASSED = {"Softmax", "LogSoftmax", "Identity", "Cast", "Dropout", "Reshape", "Flatten", "Squeeze"}
_ACTIVATIONS = {"Relu", "LeakyRelu", "Clip", "HardSwish"}


class UnknownStructureError(Exception):
    """A network whose parts could not be found; says why."""


@dataclass(frozen=True, kw_only=True)
class LastLayer:
    """The last matrix product of a classifier."""

    features: str  # name of its input: (n, width), or the features of every place where `places` is given
    weights_name: str
    bias_name: str  # "" where there is none
    rows_are_classes: bool  # of the stored weights
    weights: NDArray[np.float32]  # (classes, width)
    bias: NDArray[np.float32]  # (classes,)
    places: PlaceMean | None = None  # where the mean over places comes after the product: the places of `features`
    activation: str = ""  # the operator between the product and that mean


@dataclass(frozen=True, kw_only=True)
class ClassMap:
    """Where the class map is in a network."""

    layer: LastLayer
    mean: PlaceMean
    grid: tuple[int, int] | None  # rows and columns of the tokens; None where the features have rows and columns
    head: tuple[NodeProto, ...]  # from the mean to the last product, in order


@dataclass(kw_only=True)
class _Tail:
    """What was passed on the way from the output to the last product."""

    bias_name: str = ""
    mean: PlaceMean | None = None
    activation: str = ""

    def passes(self, reader: GraphReader, node: NodeProto) -> bool:
        """Note what the node is; False where nothing of the kind may follow the last product."""
        constants = [item for item in node.input if item and reader.is_constant(item)]
        if self.mean is None and (mean := reader.find_mean(node)) is not None:
            self.mean = mean
        elif node.op_type == "Add" and len(constants) == 1 and not self.bias_name:
            self.bias_name = constants[0]
        elif self.mean is not None and node.op_type in _ACTIVATIONS and not self.activation:
            self.activation = node.op_type
        elif node.op_type not in _PASSED:
            return False
        return True


def find_last_layer(reader: GraphReader) -> LastLayer:
    """The last matrix product before the output; raises `UnknownStructureError` where something else comes first."""
    name, tail = reader.graph.output[0].name, _Tail()
    while (node := reader.node_of.get(name)) is not None:
        if node.op_type in ("Gemm", "MatMul", "Conv") and reader.is_constant(node.input[1]):
            return _read_layer(reader, node, tail)
        variable = reader.variable_inputs(node)
        if len(variable) != 1 or not tail.passes(reader, node):
            raise UnknownStructureError(f"its output comes from the operator {node.op_type}, not from a linear layer")
        name = variable[0]
    raise UnknownStructureError("no linear layer was found before its output")


def _read_layer(reader: GraphReader, node: NodeProto, tail: _Tail) -> LastLayer:
    stored, rows_are_classes = _read_weights(reader, node)
    weights = stored if rows_are_classes else stored.T
    bias_name = tail.bias_name
    if node.op_type != "MatMul" and len(node.input) > 2 and reader.is_constant(node.input[2]):
        if bias_name:
            raise UnknownStructureError("something is added to its last layer's scores besides the layer's bias")
        bias_name = node.input[2]
    bias = reader.constant(bias_name).reshape(-1) if bias_name else np.zeros(len(weights))
    return LastLayer(
        features=node.input[0], weights_name=node.input[1], bias_name=bias_name, rows_are_classes=rows_are_classes,
        weights=np.asarray(weights, np.float32), bias=np.asarray(bias, np.float32),
        places=_find_places(reader, node, tail), activation=tail.activation,
    )  # fmt: skip


def _read_weights(reader: GraphReader, node: NodeProto) -> tuple[NDArray[np.float32], bool]:
    """The stored matrix, and whether its rows are the classes."""
    settings, stored = reader.attributes(node), reader.constant(node.input[1])
    if node.op_type == "Conv":
        moves = any(settings.get("pads", ())) or any(step != 1 for step in settings.get("strides", ()))
        if stored.shape[2:] != (1, 1) or settings.get("group", 1) != 1 or moves:
            raise UnknownStructureError("its last layer is a convolution of more than one pixel")
        return stored[:, :, 0, 0], True
    if settings.get("transA", 0) or settings.get("alpha", 1.0) != 1.0 or settings.get("beta", 1.0) != 1.0:
        raise UnknownStructureError("its last layer is scaled or transposed")
    if stored.ndim != 2:
        raise UnknownStructureError(f"its last layer has weights with {stored.ndim} axes, not 2")
    return stored, bool(settings.get("transB", 0))


def _find_places(reader: GraphReader, node: NodeProto, tail: _Tail) -> PlaceMean | None:
    """The places of the product's own input, where the mean comes after it; None where the mean comes before."""
    name = node.input[0]
    shape, is_convolution = reader.shape(name), node.op_type == "Conv"
    if tail.mean is None:
        if is_convolution and shape[2:] != (1, 1):
            raise UnknownStructureError("its last layer is a convolution over places of which no mean is taken")
        return None
    if len(shape) not in (3, 4):
        raise UnknownStructureError("its last layer is followed by a mean that is not one over places")
    return PlaceMean(
        before=name, after=name, axes="channels first" if is_convolution else "channels last",
        tokens=shape[1] or 0 if len(shape) == 3 else None,
    )  # fmt: skip


def find_class_map(reader: GraphReader) -> ClassMap:
    """The mean over places that feeds the last layer, or follows it; raises `UnknownStructureError` without one."""
    layer = find_last_layer(reader)
    if layer.places is not None:
        return ClassMap(layer=layer, mean=layer.places, grid=_find_grid(reader, layer.places), head=())
    head: set[str] = set()
    pooled: dict[str, PlaceMean] = {}
    waiting = [layer.features]
    while waiting:
        name = waiting.pop()
        node = reader.node_of.get(name)
        if node is None:
            raise UnknownStructureError("its last layer is not fed by a mean over the places of a feature map")
        if mean := reader.find_mean(node):
            pooled[name] = mean
        elif name not in head:
            head.add(name)
            waiting += reader.variable_inputs(node)
    if len(pooled) != 1:
        raise UnknownStructureError(f"its last layer is fed by {len(pooled)} means over places, not by one")
    (mean,) = pooled.values()
    nodes = tuple(item for item in reader.graph.node if head & set(item.output))
    return ClassMap(layer=layer, mean=mean, grid=_find_grid(reader, mean), head=nodes)


def _find_grid(reader: GraphReader, mean: PlaceMean) -> tuple[int, int] | None:
    """The rows and columns of the tokens; raises `UnknownStructureError` where they do not cover the picture."""
    if mean.tokens is None:
        return None
    grid = reader.find_grid(mean.tokens)
    if grid is None or mean.tokens == 0:
        raise UnknownStructureError(
            f"its last layer is fed by a mean over {mean.tokens or 'an unknown number of'} tokens, which form no grid"
            " of the picture's shape"
        )
    return grid
