"""A small builder of ONNX models: nodes with one output each, float32 weights, a free batch axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.embedded.networks.wire import bytes_field, float_field, integer_field, text_field

IR_VERSION = 8
OPERATOR_SET = 13
FLOAT = 1  # TensorProto.DataType
ATTRIBUTE_FLOAT, ATTRIBUTE_INTEGER, ATTRIBUTE_INTEGERS = 1, 2, 7  # AttributeProto.AttributeType

AttributeValue: TypeAlias = "int | float | Sequence[int]"
Shape: TypeAlias = "Sequence[int | str]"  # a name stands for an axis of any length


class Graph:
    """A network in the making; values are known by their names."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[bytes] = []
        self._initializers: dict[str, bytes] = {}

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """Store an array under a name; the same name twice must mean the same array."""
        encoded = _tensor(name, array)
        if self._initializers.setdefault(name, encoded) != encoded:
            raise ValueError(f"two different constants are called {name!r}")
        return name

    def node(self, operator: str, inputs: Sequence[str], attributes: Mapping[str, AttributeValue] | None = None) -> str:
        """Add an operator and return the name of its output."""
        output = f"{operator}_{len(self._nodes)}"
        fields = [text_field(1, value) for value in inputs]
        fields += [text_field(2, output), text_field(3, output), text_field(4, operator)]
        fields += [bytes_field(5, _attribute(name, value)) for name, value in (attributes or {}).items()]
        self._nodes.append(b"".join(fields))
        return output

    def model(self, inputs: Mapping[str, Shape], outputs: Mapping[str, tuple[str, Shape]]) -> bytes:
        """The finished model; shapes without the batch axis, outputs as public name: (value, shape)."""
        for public, (value, _) in outputs.items():
            self._nodes.append(text_field(1, value) + text_field(2, public) + text_field(4, "Identity"))
        graph = [bytes_field(1, node) for node in self._nodes]
        graph.append(text_field(2, self.name))
        graph += [bytes_field(5, tensor) for tensor in self._initializers.values()]
        graph += [bytes_field(11, _value(name, shape)) for name, shape in inputs.items()]
        graph += [bytes_field(12, _value(name, shape)) for name, (_, shape) in outputs.items()]
        opset = text_field(1, "") + integer_field(2, OPERATOR_SET)
        head = integer_field(1, IR_VERSION) + text_field(2, "counterfoil")
        return head + bytes_field(7, b"".join(graph)) + bytes_field(8, opset)


def _tensor(name: str, array: NDArray[Any]) -> bytes:
    dimensions = b"".join(integer_field(1, size) for size in array.shape)
    raw = np.asarray(array, dtype="<f4").tobytes()
    return dimensions + integer_field(2, FLOAT) + text_field(8, name) + bytes_field(9, raw)


def _attribute(name: str, value: AttributeValue) -> bytes:
    if isinstance(value, float):
        return text_field(1, name) + float_field(2, value) + integer_field(20, ATTRIBUTE_FLOAT)
    if isinstance(value, int):
        return text_field(1, name) + integer_field(3, value) + integer_field(20, ATTRIBUTE_INTEGER)
    integers = b"".join(integer_field(8, item) for item in value)
    return text_field(1, name) + integers + integer_field(20, ATTRIBUTE_INTEGERS)


def _value(name: str, shape: Shape) -> bytes:
    sizes = ("batch", *shape)
    dimensions = [text_field(2, size) if isinstance(size, str) else integer_field(1, size) for size in sizes]
    encoded_shape = b"".join(bytes_field(1, dimension) for dimension in dimensions)
    tensor_type = integer_field(1, FLOAT) + bytes_field(2, encoded_shape)
    return text_field(1, name) + bytes_field(2, bytes_field(1, tensor_type))
