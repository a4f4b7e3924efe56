"""MI-GAN's graph in a form that ONNX Runtime computes faster, to the same bits.

Runtime keeps the planes of convolutions in blocks of channels and has to unpack and pack them again around every other
operation. Two of those can be convolutions themselves: a product with one number is a convolution of each channel with
one weight, into which the following clip is merged, and zeros around the planes are the padding of the convolution
that follows. Neither changes a sum or a rounding.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.store.files import hash_file, write_atomically

_log = logging.getLogger(__name__)
VERSION = 1  # of this rewriting, in the name of the file
_ELEMENTWISE = ("LeakyRelu", "Mul", "Clip", "Add", "Resize", "Pad")  # keep the number of channels
_SIDES = [2, 3, 6, 7]  # of ONNX's eight paddings: before and after, down and across


def open_inpainting_session(weights: Path) -> Any:
    """A session of MI-GAN with its graph rewritten; the rewritten graph is kept in the cache."""
    file = cache_folder() / "networks" / f"{weights.stem}-fused-{VERSION}.onnx"
    record = file.with_suffix(".sha256")
    if record.is_file() and file.is_file() and hash_file(file) == record.read_text(encoding="ascii").strip():
        return open_onnx_session(file)
    model = fuse_scaling(weights.read_bytes())
    try:
        write_atomically(file, model)
        write_atomically(record, hashlib.sha256(model).hexdigest() + "\n")
    except OSError as error:
        _log.info("the rewritten graph of MI-GAN is not kept: %s", error)
    return open_onnx_session(model)


def fuse_scaling(model: bytes) -> bytes:
    """The network with products by one number and zero paddings as parts of convolutions."""
    import onnx  # imported here: slow to start, and a full cache does not need it

    network = onnx.load_from_string(model)
    rewriting = _Rewriting(network.graph, onnx)
    rewriting.merge_paddings()
    rewriting.replace_products()
    return bytes(network.SerializeToString())


class _Rewriting:
    """A graph with its constants, and who makes and who takes each value."""

    def __init__(self, graph: Any, onnx: Any) -> None:
        self._graph, self._onnx = graph, onnx
        self._makers = {name: node for node in graph.node for name in node.output}
        self._takers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in node.input:
                self._takers.setdefault(name, []).append(node)
        self._constants = self._read_constants()

    def _read_constants(self) -> Mapping[str, NDArray[Any]]:
        read = self._onnx.numpy_helper.to_array
        constants = {tensor.name: read(tensor) for tensor in self._graph.initializer}
        for node in self._graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = read(node.attribute[0].t)
            elif node.op_type == "Identity" and node.input[0] in constants:
                constants[node.output[0]] = constants[node.input[0]]
        return constants

    def merge_paddings(self) -> None:
        """Let convolutions pad their input where a node before them adds nothing but zeros."""
        found = [node for node in self._graph.node if node.op_type == "Pad" and self._pads_for_convolution(node)]
        for node, pads in zip(found, self._compute([node.input[1] for node in found]), strict=True):
            (convolution,) = self._takers[node.output[0]]
            sides = [int(pads[side]) for side in _SIDES]
            own = [attribute for attribute in convolution.attribute if attribute.name == "pads"]
            if pads.sum() != sum(sides) or min(sides) < 0 or any(number for pad in own for number in pad.ints):
                continue  # channels are padded, planes are cut, or the convolution pads already
            for attribute in own:
                convolution.attribute.remove(attribute)
            convolution.attribute.append(self._onnx.helper.make_attribute("pads", sides))
            convolution.input[0] = node.input[0]
            self._graph.node.remove(node)

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

    def replace_products(self) -> None:
        """Make a product with one number, between an activation and a clip, a convolution of each channel."""
        for place, node in enumerate(self._graph.node):
            if not self._scales_activation(node):
                continue
            channels = self._count_channels(node.input[0])
            weights = np.full((channels, 1, 1, 1), self._constants[node.input[1]].item(), np.float32)
            name = f"{node.name}/weights"
            self._graph.initializer.append(self._onnx.numpy_helper.from_array(weights, name))
            replaced = self._onnx.helper.make_node(
                "Conv", [node.input[0], name], list(node.output), name=node.name, group=channels, kernel_shape=[1, 1]
            )
            self._graph.node[place].CopyFrom(replaced)

    def _scales_activation(self, node: Any) -> bool:
        if node.op_type != "Mul" or node.input[1] not in self._constants:
            return False
        before, after = self._makers.get(node.input[0]), self._takers.get(node.output[0], [])
        between = before is not None and before.op_type == "LeakyRelu" and [one.op_type for one in after] == ["Clip"]
        return between and self._constants[node.input[1]].size == 1

    def _count_channels(self, name: str) -> int:
        maker = self._makers[name]
        while maker.op_type in _ELEMENTWISE:
            maker = self._makers[maker.input[0]]
        return int(self._constants[maker.input[1]].shape[0])
