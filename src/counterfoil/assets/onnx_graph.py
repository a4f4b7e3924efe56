"""A small builder of ONNX models.

Import this module inside the functions that build a graph: a network in the cache does not need `onnx`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

IR_VERSION = 8
OPERATOR_SET = 13

AttributeValue: TypeAlias = "int | float | str | Sequence[int]"
Shape: TypeAlias = "Sequence[int | str]"  # a name stands for an axis of any length


class Graph:
    """An ONNX graph being built; values are referred to by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """Store an array under a name, which must not already hold another array."""
        tensor = numpy_helper.from_array(np.asarray(array, np.float32), name)
        if self._initializers.setdefault(name, tensor) != tensor:
            raise ValueError(f"two different constants are called {name!r}")
        return name

    def integers(self, values: Sequence[int]) -> str:
        """Store whole numbers, such as a shape; equal ones once."""
        name = f"integers_{'_'.join(map(str, values))}"
        self._initializers.setdefault(name, numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def node(self, operator: str, inputs: Sequence[str], attributes: Mapping[str, AttributeValue] | None = None) -> str:
        """Add an operator and return the name of its output."""
        output = f"{operator}_{len(self._nodes)}"
        node = helper.make_node(operator, inputs, [output], name=output)
        # make_node would sort the attributes and so change the file's bytes, of which the digest is made.
        node.attribute.extend(helper.make_attribute(name, value) for name, value in (attributes or {}).items())
        self._nodes.append(node)
        return output

    def model(self, inputs: Mapping[str, Shape], outputs: Mapping[str, tuple[str, Shape]]) -> bytes:
        """The finished model; shapes without the batch axis, outputs as public name: (value, shape)."""
        named = [helper.make_node("Identity", [value], [public]) for public, (value, _) in outputs.items()]
        graph = helper.make_graph(
            [*self._nodes, *named],
            self.name,
            [_value(name, shape) for name, shape in inputs.items()],
            [_value(name, shape) for name, (_, shape) in outputs.items()],
            list(self._initializers.values()),
        )
        opset = helper.make_opsetid("", OPERATOR_SET)
        model = helper.make_model(graph, ir_version=IR_VERSION, producer_name="counterfoil", opset_imports=[opset])
        encoded: bytes = model.SerializeToString(deterministic=True)
        return encoded


def _value(name: str, shape: Shape) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
