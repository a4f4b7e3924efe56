"""The last layer of an ONNX classifier, and the class map: which places of a picture speak for a class.

Walking back from the output, the classifier's last matrix product is found first, then the mean over places before it.
What lies between the two (a second layer, an activation) treats every picture by itself, so it can be applied to every
place by itself: the weights of a class times the result is the class map (CAM, Zhou et al. 2016).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper, numpy_helper, shape_inference

_PASSED = {"Softmax", "LogSoftmax", "Identity", "Cast", "Dropout", "Reshape", "Flatten", "Squeeze"}
_WEIGHTED = {"Gemm", "MatMul"}
Axes: TypeAlias = Literal["channels first", "channels last"]


class UnknownStructureError(Exception):
    """A network whose parts could not be found; says why."""


@dataclass(frozen=True, kw_only=True)
class LastLayer:
    """The last matrix product of a classifier."""

    product: str  # name of the output of the product
    logits: str  # name of its output with the bias
    features: str  # name of its input, (n, width)
    weights_name: str
    bias_name: str  # "" where there is none
    rows_are_classes: bool  # of the stored weights
    weights: NDArray[np.float32]  # (classes, width)
    bias: NDArray[np.float32]  # (classes,)


@dataclass(frozen=True, kw_only=True)
class ClassMap:
    """Where the class map is in a network."""

    layer: LastLayer
    before: str  # name of the features of every place, (1, channels, rows, columns) or (1, rows, columns, channels)
    after: str  # name of their mean
    axes: Axes
    keeps_places: bool  # whether the mean keeps axes of length one
    head: tuple[NodeProto, ...]  # from the mean to the last product, in order


class GraphReader:
    """The nodes of an ONNX graph by the values that they give, and its constants."""

    def __init__(self, model: Any) -> None:
        self.model, self.graph = model, model.graph
        self.node_of = {name: node for node in self.graph.node for name in node.output}
        self._tensors = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            values = [item.t for item in node.attribute if node.op_type == "Constant" and item.name == "value"]
            if values:
                self._tensors[node.output[0]] = values[0]

    def is_constant(self, name: str) -> bool:
        """Whether a value is stored in the file."""
        return name in self._tensors

    def constant(self, name: str) -> NDArray[Any]:
        """A stored value."""
        return np.asarray(numpy_helper.to_array(self._tensors[name]))

    def variable_inputs(self, node: NodeProto) -> list[str]:
        """The inputs of a node that depend on the picture."""
        return list(dict.fromkeys(name for name in node.input if name and not self.is_constant(name)))

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """The number of axes of each value, as far as it can be inferred."""
        inferred = shape_inference.infer_shapes(self.model).graph
        values = [*inferred.value_info, *inferred.input, *inferred.output]
        return {value.name: len(value.type.tensor_type.shape.dim) for value in values}


def find_last_layer(reader: GraphReader) -> LastLayer:
    """The last matrix product before the output; raises `UnknownStructureError` where something else comes first."""
    name, bias_name = reader.graph.output[0].name, ""
    logits = ""
    while (node := reader.node_of.get(name)) is not None:
        if node.op_type in _WEIGHTED and reader.is_constant(node.input[1]):
            return _read_layer(reader, node, logits or name, bias_name)
        variable = reader.variable_inputs(node)
        constants = [item for item in node.input if item and reader.is_constant(item)]
        if node.op_type == "Add" and len(variable) == 1 and len(constants) == 1 and not bias_name:
            bias_name, logits = constants[0], name
        elif node.op_type not in _PASSED or len(variable) != 1:
            raise UnknownStructureError(f"its output comes from the operator {node.op_type}, not from a linear layer")
        name = variable[0]
    raise UnknownStructureError("no linear layer was found before its output")


def _read_layer(reader: GraphReader, node: NodeProto, logits: str, bias_name: str) -> LastLayer:
    settings = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    if settings.get("transA", 0) or settings.get("alpha", 1.0) != 1.0 or settings.get("beta", 1.0) != 1.0:
        raise UnknownStructureError("its last layer is scaled or transposed")
    stored, rows_are_classes = reader.constant(node.input[1]), bool(settings.get("transB", 0))
    if stored.ndim != 2:
        raise UnknownStructureError(f"its last layer has weights with {stored.ndim} axes, not 2")
    weights = stored if rows_are_classes else stored.T
    if node.op_type == "Gemm" and len(node.input) > 2 and reader.is_constant(node.input[2]):
        bias_name = node.input[2]
    bias = reader.constant(bias_name).reshape(-1) if bias_name else np.zeros(len(weights))
    return LastLayer(
        product=node.output[0], logits=logits, features=node.input[0], weights_name=node.input[1], bias_name=bias_name,
        rows_are_classes=rows_are_classes, weights=np.asarray(weights, np.float32), bias=np.asarray(bias, np.float32),
    )  # fmt: skip


def find_class_map(reader: GraphReader) -> ClassMap:
    """The mean over places that feeds the last layer; raises `UnknownStructureError` where there is none."""
    layer = find_last_layer(reader)
    head: set[str] = set()
    pooled: dict[str, tuple[NodeProto, Axes]] = {}
    waiting = [layer.features]
    while waiting:
        name = waiting.pop()
        node = reader.node_of.get(name)
        if node is None:
            raise UnknownStructureError("its last layer is not fed by a mean over the places of a feature map")
        if axes := _pooling_axes(reader, node):
            pooled[name] = node, axes
        elif name not in head:
            head.add(name)
            waiting += reader.variable_inputs(node)
    if len(pooled) != 1:
        raise UnknownStructureError(f"its last layer is fed by {len(pooled)} means over places, not by one")
    ((name, (node, axes)),) = pooled.items()
    settings = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    return ClassMap(
        layer=layer, before=node.input[0], after=name, axes=axes,
        keeps_places=node.op_type == "GlobalAveragePool" or bool(settings.get("keepdims", 1)),
        head=tuple(item for item in reader.graph.node if head & set(item.output)),
    )  # fmt: skip


def _pooling_axes(reader: GraphReader, node: NodeProto) -> Axes | None:
    """Where the channels are, if the node is a mean over places; None for other nodes."""
    if node.op_type == "GlobalAveragePool":
        return "channels first"
    if node.op_type != "ReduceMean" or reader.ranks.get(node.input[0]) != 4:
        return None
    given = {item.name: helper.get_attribute_value(item) for item in node.attribute}.get("axes")
    if given is None and len(node.input) > 1 and reader.is_constant(node.input[1]):
        given = reader.constant(node.input[1]).tolist()
    places = sorted(axis % 4 for axis in given or ())
    return "channels first" if places == [2, 3] else "channels last" if places == [1, 2] else None
