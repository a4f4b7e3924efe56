"""The nodes of an ONNX graph by the values that they give, the shapes of these, and the means over places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper, shape_inference

from counterfoil.types import Preprocessing

Axes: TypeAlias = Literal["channels first", "channels last"]
Shape: TypeAlias = "tuple[int | None, ...]"  # None for a length that is not known


@dataclass(frozen=True, kw_only=True)
class PlaceMean:
    """A mean over the places of a picture: over rows and columns, or over tokens in reading order."""

    before: str  # name of the features of every place
    after: str  # name of their mean
    axes: Axes
    keeps_places: bool = False  # whether the mean keeps axes of length one
    tokens: int | None = None  # how many, where one axis holds the places; None: rows and columns are two axes

    @property
    def place_axes(self) -> list[int]:
        """The axes over which the mean is taken."""
        first = 2 if self.axes == "channels first" else 1
        return [first] if self.tokens is not None else [first, first + 1]


class GraphReader:
    """The nodes of an ONNX graph by the values that they give, and its constants."""

    def __init__(self, model: Any, preprocessing: Preprocessing) -> None:
        self.model, self.graph, self.preprocessing = model, model.graph, preprocessing
        self.node_of = {name: node for node in self.graph.node for name in node.output}
        self._tensors = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant":
                (value,) = self.attributes(node).values()
                is_tensor = isinstance(value, TensorProto)
                self._tensors[node.output[0]] = value if is_tensor else numpy_helper.from_array(np.asarray(value))

    def is_constant(self, name: str) -> bool:
        """Whether a value is stored in the file."""
        return name in self._tensors

    def constant(self, name: str) -> NDArray[Any]:
        """A stored value."""
        return np.asarray(numpy_helper.to_array(self._tensors[name]))

    def variable_inputs(self, node: NodeProto) -> list[str]:
        """The inputs of a node that depend on the picture; not those that only say what shape it shall have."""
        given = node.input[:1] if node.op_type in ("Reshape", "Squeeze", "Unsqueeze") else node.input
        return list(dict.fromkeys(name for name in given if name and not self.is_constant(name)))

    def attributes(self, node: NodeProto) -> dict[str, Any]:
        """The attributes of a node by name."""
        return {item.name: helper.get_attribute_value(item) for item in node.attribute}

    def shape(self, name: str) -> Shape:
        """The shape of a value for one picture; empty where it cannot be inferred."""
        return self._shapes.get(name, ())

    @cached_property
    def _shapes(self) -> Mapping[str, Shape]:
        sized = onnx.ModelProto()
        sized.CopyFrom(self.model)
        height, width = self.preprocessing.size
        lengths = (1, height, width, 3) if self.preprocessing.layout == "NHWC" else (1, 3, height, width)
        for given in sized.graph.input:
            axes = given.type.tensor_type.shape.dim
            if given.name not in self._tensors and len(axes) == len(lengths):
                for axis, length in zip(axes, lengths, strict=True):
                    axis.dim_value = axis.dim_value or length
        inferred = shape_inference.infer_shapes(sized, data_prop=True).graph
        values = [*inferred.value_info, *inferred.input, *inferred.output]
        return {
            value.name: tuple(axis.dim_value or None for axis in value.type.tensor_type.shape.dim) for value in values
        }

    def find_grid(self, tokens: int) -> tuple[int, int] | None:
        """The rows and columns of tokens in reading order, in the shape of the picture; None where they form none."""
        height, width = self.preprocessing.size
        rows = round((tokens * height / width) ** 0.5)
        columns = tokens // max(rows, 1)
        return (rows, columns) if rows * columns == tokens and rows * width == columns * height else None

    def find_mean(self, node: NodeProto) -> PlaceMean | None:
        """The node as a mean over places; None for other nodes."""
        shape, kind = self.shape(node.input[0]) if node.input else (), node.op_type
        if kind == "GlobalAveragePool" or (kind == "AveragePool" and self._covers_all(node, shape)):
            return self._make_mean(node, shape, list(range(2, len(shape) or 4)), keeps_places=True)
        if kind != "ReduceMean" or len(shape) not in (3, 4):
            return None
        settings = self.attributes(node)
        given = settings.get("axes")
        if given is None and len(node.input) > 1 and self.is_constant(node.input[1]):
            given = self.constant(node.input[1]).tolist()
        places = sorted(axis % len(shape) for axis in given or ())
        return self._make_mean(node, shape, places, keeps_places=bool(settings.get("keepdims", 1)))

    def _make_mean(self, node: NodeProto, shape: Shape, places: list[int], *, keeps_places: bool) -> PlaceMean | None:
        axes: dict[tuple[int, ...], Axes] = {
            (2, 3): "channels first", (1, 2): "channels last", (2,): "channels first", (1,): "channels last",
        }  # fmt: skip
        if tuple(places) not in axes or len(places) != (len(shape) or 4) - 2:
            return None
        of_tokens = len(places) == 1
        if of_tokens and shape[3 - places[0]] == 1:  # over the channels of one place, as a norm takes it
            return None
        return PlaceMean(
            before=node.input[0], after=node.output[0], axes=axes[tuple(places)], keeps_places=keeps_places,
            tokens=shape[places[0]] or 0 if of_tokens else None,
        )  # fmt: skip

    def _covers_all(self, node: NodeProto, shape: Shape) -> bool:
        """Whether a pooling window is the whole feature map."""
        settings = self.attributes(node)
        return len(shape) == 4 and tuple(settings["kernel_shape"]) == shape[2:] and not any(settings.get("pads", ()))


def cut_model(model: Any, given: str, wanted: str) -> bytes:
    """The part of a model from one value to another, as a model of its own."""
    node_of = {name: node for node in model.graph.node for name in node.output}
    waiting, needed = [wanted], {given}
    while waiting:
        name = waiting.pop()
        if name and name not in needed:
            needed.add(name)
            waiting += node_of[name].input if name in node_of else []
    nodes = [node for node in model.graph.node if (needed - {given}) & set(node.output)]
    stored = [tensor for tensor in model.graph.initializer if tensor.name in needed]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, None)] for name in (given, wanted))
    graph = helper.make_graph(nodes, "part", inputs, outputs, stored)
    part = helper.make_model(
        graph, ir_version=model.ir_version, opset_imports=model.opset_import, functions=model.functions
    )
    content: bytes = part.SerializeToString()
    return content
