"""A graph around a network: it takes the photo, shows the network several views of it, and averages its answers.

The input is the photo at its own size, (1, 3, height, width), RGB in levels 0..255. Every view is resized inside the
graph as Pillow would resize it, so the file needs no code beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from counterfoil.remedies.class_map import UnknownStructureError
from counterfoil.remedies.network_file import NetworkFile

PHOTO, SCORES, BOX = "photo", "probabilities", "box"
_IR_VERSION = 8
_LONG_AGO = -(2**62)  # the end of a slice that runs backwards over a whole axis
Attributes: TypeAlias = "Mapping[str, int | float | str | Sequence[int]]"


class Box(NamedTuple):
    """A square in the photo, as names of whole numbers of pixels, each of shape (1,)."""

    left: str
    top: str
    side: str


class ViewAnswer(NamedTuple):
    """What the network gives for one view."""

    probabilities: str  # (1, classes)
    names: Mapping[str, str]  # the network's values by their names in its own file


def check_repeatable(network: NetworkFile) -> None:
    """Raises `UnknownStructureError` for a network whose nodes cannot stand several times in one graph."""
    for node in network.proto.graph.node:
        if any(item.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for item in node.attribute):
            raise UnknownStructureError(f"its operator {node.op_type} holds a graph of its own")


class PhotoGraph:
    """A graph being built around a network; values are referred to by name."""

    def __init__(self, network: NetworkFile) -> None:
        self.network = network
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {item.name: item for item in network.proto.graph.initializer}
        self._asked = 0
        shape = self.node("Shape", [PHOTO])
        self.height, self.width = (self.node("Slice", [shape, *self._span(axis)]) for axis in (2, 3))
        self.shorter = self.node("Min", [self.height, self.width])
        self.levels = self.node("Cast", [PHOTO], {"to": TensorProto.UINT8})

    def node(self, operator: str, inputs: Sequence[str], attributes: Attributes | None = None) -> str:
        """Add an operator and return the name of its output."""
        output = f"view.{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, **(attributes or {})))
        return output

    def repeat(self, node: NodeProto, inputs: Sequence[str]) -> str:
        """Add a node of the network once more, with other inputs; returns the name of its first output."""
        copy, prefix = NodeProto(), f"again_{len(self._nodes)}."
        copy.CopyFrom(node)
        copy.name = prefix + (node.name or node.output[0])
        copy.input[:] = inputs
        copy.output[:] = [prefix + name if name else "" for name in node.output]
        self._nodes.append(copy)
        return prefix + str(node.output[0])

    def constant(self, value: Any, kind: Any = np.float32) -> str:
        """The name of a constant; equal ones are stored once."""
        array = np.asarray(value, kind)
        name = f"constant.{array.dtype}.{array.shape}.{array.tolist()}"
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(array, name)
        return name

    def whole(self, value: str) -> str:
        """A number cut to a whole one."""
        return self.node("Cast", [value], {"to": TensorProto.INT64})

    def number(self, value: str) -> str:
        """A whole number as a fraction can be computed with."""
        return self.node("Cast", [value], {"to": TensorProto.FLOAT})

    def _span(self, axis: int) -> list[str]:
        return [self.constant([axis], np.int64), self.constant([axis + 1], np.int64)]

    def resize(self, levels: str, height: str, width: str) -> str:
        """Levels at another size, averaged where it is smaller."""
        cubic = self.network.preprocessing.interpolation != "bilinear"  # Lanczos has no operator: the nearest one
        settings: dict[str, int | float | str] = {"antialias": 1, "mode": "cubic" if cubic else "linear"}
        settings |= {"cubic_coeff_a": -0.5, "exclude_outside": 1} if cubic else {}
        sizes = self.node("Concat", [self.constant([1, 3], np.int64), height, width], {"axis": 0})
        return self.node("Resize", [levels, "", "", sizes], settings)

    def crop(self, box: Box) -> str:
        """A square of the photo, squeezed to the network's size."""
        bottom, right = (self.node("Add", [start, box.side]) for start in (box.top, box.left))
        starts = self.node("Concat", [box.top, box.left], {"axis": 0})
        ends = self.node("Concat", [bottom, right], {"axis": 0})
        part = self.node("Slice", [self.levels, starts, ends, self.constant([2, 3], np.int64)])
        return self.resize(part, *self._network_size)

    def whole_view(self, *, squeeze: bool = False) -> str:
        """What the network is shown without a remedy; `squeeze` shows the whole photo whatever its shape."""
        wanted = self.network.preprocessing
        if squeeze or wanted.resize is None:
            return self.resize(self.levels, *self._network_size)
        resized = self.constant([wanted.resize], np.int64)
        sides = [
            self.node("Div", [self.node("Mul", [side, resized]), self.shorter]) for side in (self.height, self.width)
        ]
        levels = self.resize(self.levels, *sides)
        starts = [
            self._centre_start(side, length)
            for side, length in zip(sides, self.network.preprocessing.size, strict=True)
        ]
        start = self.node("Concat", starts, {"axis": 0})
        end = self.node("Add", [start, self.constant(wanted.size, np.int64)])
        return self.node("Slice", [levels, start, end, self.constant([2, 3], np.int64)])

    def _centre_start(self, side: str, length: int) -> str:
        spare = self.number(self.node("Sub", [side, self.constant([length], np.int64)]))
        return self.whole(self.node("Round", [self.node("Mul", [spare, self.constant([0.5])])]))

    @property
    def _network_size(self) -> tuple[str, str]:
        height, width = self.network.preprocessing.size
        return self.constant([height], np.int64), self.constant([width], np.int64)

    def mirror(self, levels: str) -> str:
        """Levels with left and right exchanged."""
        ends = [self.constant([value], np.int64) for value in (-1, _LONG_AGO, 3, -1)]
        return self.node("Slice", [levels, *ends])

    def ask(self, levels: str) -> ViewAnswer:
        """Show a view to the network: its nodes once more, its weights shared."""
        self._asked += 1
        prefix = f"{self._asked}."
        proto = self.network.proto.graph
        names = {item.name: item.name for item in proto.initializer}
        given = next(item.name for item in proto.input if item.name not in names)
        names[given] = self._normalise(levels)
        for node in proto.node:
            names |= {name: prefix + name for name in node.output if name}
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.name = prefix + (node.name or node.output[0])
            copy.input[:] = [names[name] if name else "" for name in node.input]
            copy.output[:] = [names[name] if name else "" for name in node.output]
            self._nodes.append(copy)
        scores = names[proto.output[0].name]
        if self.network.gives_logits:
            scores = self.node("Softmax", [scores], {"axis": -1})
        return ViewAnswer(scores, names)

    def _normalise(self, levels: str) -> str:
        wanted = self.network.preprocessing
        value = self.number(levels)
        if wanted.colour_order == "BGR":
            value = self.node("Gather", [value, self.constant([2, 1, 0], np.int64)], {"axis": 1})
        mean, std = (self.constant(np.reshape(part, (1, 3, 1, 1))) for part in (wanted.mean, wanted.std))
        value = self.node("Div", [self.node("Sub", [value, mean]), std])
        return self.node("Transpose", [value], {"perm": [0, 2, 3, 1]}) if wanted.layout == "NHWC" else value

    def mean(self, answers: Sequence[str]) -> str:
        """The mean of the probabilities of several views."""
        return answers[0] if len(answers) == 1 else self.node("Mean", answers)

    def model(self, scores: str, box: Box | None = None) -> bytes:
        """The finished file: the probabilities, and the box that was looked at where there is one."""
        outputs = [helper.make_tensor_value_info(SCORES, TensorProto.FLOAT, [1, len(self.network.labels)])]
        nodes = [*self._nodes, helper.make_node("Identity", [scores], [SCORES])]
        if box is not None:
            nodes.append(helper.make_node("Concat", list(box), [BOX], axis=0))
            outputs.append(helper.make_tensor_value_info(BOX, TensorProto.INT64, [3]))
        photo = helper.make_tensor_value_info(PHOTO, TensorProto.FLOAT, [1, 3, "height", "width"])
        graph = helper.make_graph(nodes, "counterfoil-remedy", [photo], outputs, list(self._constants.values()))
        built = helper.make_model(
            graph, ir_version=max(_IR_VERSION, self.network.proto.ir_version), producer_name="counterfoil",
            opset_imports=self.network.proto.opset_import, functions=self.network.proto.functions,
        )  # fmt: skip
        content: bytes = built.SerializeToString(deterministic=True)
        return content


def box_pixels(values: NDArray[np.int64]) -> tuple[int, int, int]:
    """Left, top and side of the box that a file gives as its second output."""
    left, top, side = (int(value) for value in values)
    return left, top, side
