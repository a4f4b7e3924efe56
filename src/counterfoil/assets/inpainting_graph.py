"""MI-GAN's network, taken out of its file and rewritten so that ONNX Runtime computes it faster.

The file cuts a square out of the picture, resizes it to 512 x 512 pixels, fills it and puts it back. Here the network
takes planes of any size whose sides are multiples of `STEP` and at most `FULL`; OpenCV does the rest
(`edits/inpainting_network.py`). A picture of 384 pixels is not enlarged first, which saves half of the work.

Runtime keeps the planes of convolutions in blocks of channels and has to unpack and pack them again around most other
operations. So there are as few of those as possible:

- Zeros around planes become the padding of the convolution that follows.
- The factor after an activation goes into the weights before it: LeakyReLU of a multiple is that multiple.
- The bounds of activations (256, for half precision) are left out: planes stay far below.
- Noise that is too faint to change a level of the picture is not added.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.derived_file import keep_derived
from counterfoil.assets.onnx_session import open_onnx_session

VERSION = 2  # of this rewriting, in the name of the file
FULL, STEP = 512, 128  # sides of the planes: the most, and what they are multiples of
FAINT = 1.2e-4  # standard deviation of noise that is not added
PLANES, PAINTED = "planes", "painted"  # input and output of the network
_SIDES = [2, 3, 6, 7]  # of ONNX's eight paddings: before and after, down and across
_LIMIT = 256.0


class NetworkEnds(NamedTuple):
    """Where a network begins and ends in a graph: names of values."""

    first: str
    last: str


MIGAN = NetworkEnds("/Concat_23_output_0", "/model/synthesis/b512/Add_1_output_0")


def open_inpainting_session(weights: Path) -> Any:
    """A session of MI-GAN's network: (1, 4, height, width), what is known less 0.5 and its colours from -1 to 1."""
    name = f"networks/{weights.stem}-network-{VERSION}.onnx"
    return open_onnx_session(keep_derived(name, lambda: extract_network(weights.read_bytes())))


def extract_network(model: bytes, ends: NetworkEnds = MIGAN) -> bytes:
    """The network alone, for planes of any size, with as little as possible between its convolutions."""
    import onnx  # imported here: slow to start, and a full cache does not need it

    network = onnx.load_from_string(model)
    rewriting = _Rewriting(network.graph, onnx)
    rewriting.merge_paddings()
    rewriting.drop_bounds()
    rewriting.drop_faint_noise()
    rewriting.merge_factors()
    rewriting.cut_planes()
    return rewriting.extract(ends, network.opset_import[0].version)


class _Rewriting:
    """A graph with its constants, and who makes and who takes each value."""

    def __init__(self, graph: Any, onnx: Any) -> None:
        self._graph, self._onnx = graph, onnx
        self._constants = self._read_constants()
        self._index()

    def _index(self) -> None:
        self._makers: dict[str, Any] = {name: node for node in self._graph.node for name in node.output}
        self._takers: dict[str, list[Any]] = {}
        for node in self._graph.node:
            for name in node.input:
                self._takers.setdefault(name, []).append(node)

    def _read_constants(self) -> dict[str, NDArray[Any]]:
        read = self._onnx.numpy_helper.to_array
        constants = {tensor.name: read(tensor) for tensor in self._graph.initializer}
        for node in self._graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = read(node.attribute[0].t)
            elif node.op_type == "Identity" and node.input[0] in constants:
                constants[node.output[0]] = constants[node.input[0]]
        return constants

    def _leave_out(self, nodes: list[Any]) -> None:
        """Remove nodes; who took their results takes their first inputs."""
        before = {node.output[0]: node.input[0] for node in nodes}
        kept = [node for node in self._graph.node if node.output[0] not in before]
        for node in kept:
            for place, name in enumerate(node.input):
                while name in before:
                    name = before[name]
                node.input[place] = name
        self._replace_nodes(kept)

    def _replace_nodes(self, nodes: list[Any]) -> None:
        copies = [self._onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del self._graph.node[:]
        self._graph.node.extend(copies)
        self._index()

    def merge_paddings(self) -> None:
        """Let convolutions pad their input where a node before them adds nothing but zeros."""
        padding = [node for node in self._graph.node if node.op_type == "Pad" and self._pads_for_convolution(node)]
        merged = []
        for node, pads in zip(padding, self._compute([node.input[1] for node in padding]), strict=True):
            (convolution,) = self._takers[node.output[0]]
            sides = [int(pads[side]) for side in _SIDES]
            own = [attribute for attribute in convolution.attribute if attribute.name == "pads"]
            if pads.sum() != sum(sides) or min(sides) < 0 or any(number for pad in own for number in pad.ints):
                continue  # channels are padded, planes are cut, or the convolution pads already
            for attribute in own:
                convolution.attribute.remove(attribute)
            convolution.attribute.append(self._onnx.helper.make_attribute("pads", sides))
            merged.append(node)
        self._leave_out(merged)

    def _pads_for_convolution(self, node: Any) -> bool:
        mode = [attribute.s for attribute in node.attribute if attribute.name == "mode"]
        filled = len(node.input) > 2 and node.input[2]
        takers = self._takers.get(node.output[0], [])
        return mode in ([], [b"constant"]) and not filled and [taker.op_type for taker in takers] == ["Conv"]

    def _compute(self, names: list[str]) -> list[NDArray[np.int64]]:
        """The values of these names, which depend on constants alone."""
        needed: set[int] = set()
        open_names = list(names)
        while open_names:
            maker = self._makers.get(open_names.pop())
            if maker is not None and id(maker) not in needed:
                needed.add(id(maker))
                open_names += maker.input
        helper, integers = self._onnx.helper, self._onnx.TensorProto.INT64
        nodes = [node for node in self._graph.node if id(node) in needed]
        outputs = [helper.make_tensor_value_info(name, integers, None) for name in dict.fromkeys(names)]
        graph = helper.make_graph(nodes, "paddings", [], outputs, list(self._small_constants()))
        part = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        values = open_onnx_session(part.SerializeToString()).run(None, {}) if names else []
        return [dict(zip(dict.fromkeys(names), values, strict=True))[name] for name in names]

    def _small_constants(self) -> Any:
        return (tensor for tensor in self._graph.initializer if np.prod(tensor.dims) <= len("NCHW") * 4)

    def drop_bounds(self) -> None:
        """Leave out the bounds of activations, which hold for numbers of 16 bits."""
        self._leave_out([node for node in self._graph.node if node.op_type == "Clip" and self._is_bound(node)])

    def _is_bound(self, node: Any) -> bool:
        low, high = (self._constants.get(name) for name in (*node.input[1:], "", "")[:2])
        return low is not None and high is not None and (low.item(), high.item()) == (-_LIMIT, _LIMIT)

    def drop_faint_noise(self) -> None:
        """Leave out noise that is not seen: a plane that is added to all channels."""
        self._leave_out([node for node in self._graph.node if self._adds_plane(node) and self._noise_of(node) < FAINT])

    def _adds_plane(self, node: Any) -> bool:
        return node.op_type == "Add" and len(node.input) == 2 and self._is_plane(node.input[1])

    def _noise_of(self, node: Any) -> float:
        return float(self._constants[node.input[1]].std())

    def _is_plane(self, name: str) -> bool:
        """Whether it is a constant square that is as large as the planes it is used with."""
        shape = self._constants[name].shape if name in self._constants else ()
        return len(shape) >= 2 and shape[-1] == shape[-2] > 1 and np.prod(shape) == shape[-1] ** 2

    def merge_factors(self) -> None:
        """Multiply the weights before an activation instead of what it gives."""
        merged = [node for node in self._graph.node if self._scales_activation(node) and self._scale_before(node)]
        self._leave_out(merged)

    def _scales_activation(self, node: Any) -> bool:
        if node.op_type != "Mul" or node.input[1] not in self._constants:
            return False
        before = self._makers.get(node.input[0])
        return before is not None and before.op_type == "LeakyRelu" and self._constants[node.input[1]].size == 1

    def _scale_before(self, product: Any) -> bool:
        """Multiply noise and weights before the activation; false where something else takes what they give."""
        factor = np.float32(self._constants[product.input[1]].item())
        node, noises = self._makers[product.input[0]], []
        while node.op_type != "Conv":
            if node.op_type not in ("LeakyRelu", "Add") or len(self._takers[node.output[0]]) > 1:
                return False
            if node.op_type == "Add":
                noises.append(node)
            node = self._makers[node.input[0]]
        if len(self._takers[node.output[0]]) > 1 or not all(self._adds_plane(noise) for noise in noises):
            return False
        for scaled in (*noises, node):
            for place, name in enumerate(scaled.input):
                if place:
                    scaled.input[place] = self._add_constant(f"{scaled.name}/{name}", self._constants[name] * factor)
        return True

    def _add_constant(self, name: str, values: NDArray[Any]) -> str:
        self._constants[name] = values
        return name

    def cut_planes(self) -> None:
        """Cut constant planes to the size of the input: they are as large as those of its largest size."""
        self._add_constant("zeros", np.zeros(2, np.int64))
        self._add_constant("sides", np.array([-2, -1], np.int64))
        make, cuts = self._onnx.helper.make_node, [self._onnx.helper.make_node("Shape", [PLANES], ["size"], start=2)]
        sizes: Mapping[int, str] = {}
        for node in self._graph.node:
            if node.op_type not in ("Mul", "Add") or not any(map(self._is_plane, node.input)):
                continue
            place = next(place for place, name in enumerate(node.input) if self._is_plane(name))
            scale = FULL // self._constants[node.input[place]].shape[-1]
            if scale not in sizes:
                sizes = {**sizes, scale: f"size/{scale}"}
                divisor = self._add_constant(f"scale/{scale}", np.array([scale], np.int64))
                cuts.append(make("Div", ["size", divisor], [sizes[scale]]))
            cut = f"{node.name}/plane"
            cuts.append(make("Slice", [node.input[place], "zeros", sizes[scale], "sides"], [cut]))
            node.input[place] = cut
        self._replace_nodes([*cuts, *self._graph.node])

    def extract(self, ends: NetworkEnds, opset: int) -> bytes:
        """The nodes between two values, with the constants that they take."""
        needed, kept = {ends.last}, []
        for node in reversed(self._graph.node):
            if needed.intersection(node.output) and node.op_type not in ("Constant", "Identity"):
                kept.append(node)
                needed.update(name for name in node.input if name != ends.first)
        for node in kept:
            for names, before, after in ((node.input, ends.first, PLANES), (node.output, ends.last, PAINTED)):
                for place, name in enumerate(names):
                    if name == before:
                        names[place] = after
        helper, float32 = self._onnx.helper, self._onnx.TensorProto.FLOAT
        constants = [
            self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)
            for name, values in self._constants.items() if name in needed
        ]  # fmt: skip
        given = helper.make_tensor_value_info(PLANES, float32, [1, None, "height", "width"])
        painted = helper.make_tensor_value_info(PAINTED, float32, [1, None, "height", "width"])
        graph = helper.make_graph(kept[::-1], "network", [given], [painted], constants)
        opsets = [helper.make_opsetid("", opset)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
