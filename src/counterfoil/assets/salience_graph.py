"""U2-Netp's graph up to its second map: a coarser answer for less than half of the work.

The network gives six maps, each made from planes of half the sides of the one before, and joins them into a seventh.
More than half of the work is the decoder at full size, which only the first map and the joined one need. The second is
as sharp as the questions of the judge of fills ask for. Sizes of enlarged planes are written into the graph as whole
factors, so that ONNX Runtime keeps the planes of convolutions in blocks of channels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.assets.derived_file import keep_derived
from counterfoil.assets.onnx_session import open_onnx_session

VERSION = 1  # of this rewriting, in the name of the file
SIDE = 320  # of the network's input
MAP = 2  # of the graph's outputs: the joined map, the one at full size, the one at half of it, ...


def open_coarse_salience_session(weights: Path) -> Any:
    """A session of U2-Netp up to its second map."""
    name = f"networks/{weights.stem}-coarse-{VERSION}.onnx"
    return open_onnx_session(keep_derived(name, lambda: take_second_map(weights.read_bytes())))


def take_second_map(model: bytes) -> bytes:
    """The part of the network that its second map needs, with fixed factors in place of computed sizes."""
    import onnx  # imported here: slow to start, and a full cache does not need it

    network = onnx.load_from_string(model)
    graph, wanted = network.graph, network.graph.output[MAP].name
    _fix_factors(onnx, network)
    needed, kept = {wanted}, []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    initializers = [tensor for tensor in graph.initializer if tensor.name in needed]
    outputs = [onnx.helper.make_tensor_value_info(wanted, onnx.TensorProto.FLOAT, None)]
    inputs = [value for value in graph.input if value.name in needed and value.name not in _names_of(initializers)]
    part = onnx.helper.make_graph(kept[::-1], "coarse salience", inputs, outputs, initializers)
    opsets = [onnx.helper.make_opsetid("", network.opset_import[0].version)]
    return bytes(onnx.helper.make_model(part, opset_imports=opsets, ir_version=8).SerializeToString())


def _names_of(tensors: Any) -> set[str]:
    return {tensor.name for tensor in tensors}


def _fix_factors(onnx: Any, network: Any) -> None:
    """Let every node that enlarges planes do so by a factor that is written in the graph."""
    graph = network.graph
    enlarging = [node for node in graph.node if node.op_type == "Resize"]
    sides = _measure_sides(onnx, network, [name for node in enlarging for name in (node.input[0], node.output[0])])
    for node in enlarging:
        factor, rest = divmod(sides[node.output[0]], sides[node.input[0]])
        if rest:
            continue  # an odd side that was rounded up: the size stays computed
        factors = onnx.numpy_helper.from_array(np.array([1, 1, factor, factor], np.float32), f"{node.name}/factors")
        graph.initializer.append(factors)
        del node.input[2:]
        node.input.append(factors.name)
        for attribute in node.attribute:
            if attribute.name == "coordinate_transformation_mode":
                attribute.s = b"half_pixel"  # the same for planes of more than one pixel


def _measure_sides(onnx: Any, network: Any, names: list[str]) -> dict[str, int]:
    """The heights of these planes, which are squares, for the network's own size of input."""
    probe = onnx.ModelProto()
    probe.CopyFrom(network)
    wanted = list(dict.fromkeys(names))
    del probe.graph.output[:]
    float32 = onnx.TensorProto.FLOAT
    probe.graph.output.extend(onnx.helper.make_tensor_value_info(name, float32, None) for name in wanted)
    session = open_onnx_session(probe.SerializeToString())
    given = {session.get_inputs()[0].name: np.zeros((1, 3, SIDE, SIDE), np.float32)}
    return {name: int(plane.shape[2]) for name, plane in zip(wanted, session.run(wanted, given), strict=True)}
