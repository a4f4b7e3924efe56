"""The remedy `zoom`: look again, at the place that speaks for the answer, and average both looks.

The class map of the network's own answer gives a box; the same network sees that box at the photo's resolution, and
the probabilities of both views are averaged. Nothing is trained. Where a network has no class map, the box is the one
of five fixed places where the network is surest, which takes six passes instead of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import NodeProto

from counterfoil.assets.onnx_session import RUNTIME_FAULTS, open_onnx_session
from counterfoil.errors import UserError
from counterfoil.remedies.class_map import ClassMap, UnknownStructureError
from counterfoil.remedies.fixed_views import CORNERS_AND_CENTRE, FixedView, place_box
from counterfoil.remedies.graph_reader import cut_model
from counterfoil.remedies.network_file import NetworkFile, WrittenNetwork, describe_network
from counterfoil.remedies.photo_graph import Box, PhotoGraph, ViewAnswer

_CELLS = 56  # the map is enlarged to this many cells a side
_CHECKED = 3  # places on which the head is tried
_SMALLEST = 48  # pixels along a side of the box


@dataclass(frozen=True, kw_only=True)
class ZoomSettings:
    """How the box is found; the defaults were fixed before the first photo was judged."""

    share: float = 0.5  # of the map's maximum: cells above it are inside the box
    grow: float = 1.3  # the box is enlarged by this factor
    least_side: float = 0.3  # of the photo's shorter side

    def __post_init__(self) -> None:
        for name, value, most in (("share", self.share, 1.0), ("least_side", self.least_side, 1.0)):
            if not 0 < value <= most:
                raise UserError(f"expected {name} above 0 and at most {most:g}, got {value:g}")
        if self.grow < 1:
            raise UserError(f"expected grow of at least 1, got {self.grow:g}")


class MapNames(NamedTuple):
    """The values of a class map inside a graph."""

    rows: str  # the features of every place, as if each were a picture of its own
    features: str  # the same, before the last product, (places, width)
    values: str  # the map of the answer's class, (1, 1, rows, columns), without the negative parts


def build_zoom(network: NetworkFile, settings: ZoomSettings) -> WrittenNetwork:
    """The network with a second look, as one file."""
    try:
        return _build_map_zoom(network, network.class_map, settings)
    except UnknownStructureError as error:
        return _build_search(network, str(error))


def _build_map_zoom(network: NetworkFile, found: ClassMap, settings: ZoomSettings) -> WrittenNetwork:
    graph = PhotoGraph(network)
    first = graph.ask(graph.whole_view())
    names = _class_map(graph, first, found)
    box = _find_box(graph, names.values, settings)
    second = graph.ask(graph.crop(box))
    note = "mean of the whole view and a box around the class map of its answer: two passes"
    content = graph.model(graph.mean([first.probabilities, second.probabilities]), box)
    _check_head(network, found, onnx.load_from_string(content), names)
    return WrittenNetwork(
        content=content, description=describe_network(network, takes_photo=True, note=note), passes=2, note=note
    )


def _class_map(graph: PhotoGraph, answer: ViewAnswer, found: ClassMap) -> MapNames:
    mean, layer = found.mean, found.layer
    before = answer.names[mean.before]
    if mean.axes == "channels first":
        before = graph.node("Transpose", [before], {"perm": [0, 2, 1] if found.grid else [0, 2, 3, 1]})
    shape = graph.node("Shape", [before])  # (1, rows, columns, channels) or (1, tokens, channels)
    last = 2 if found.grid else 3
    channels = graph.node("Slice", [shape, graph.constant([last], np.int64), graph.constant([last + 1], np.int64)])
    places = graph.node("Concat", [graph.constant([-1], np.int64), channels], {"axis": 0})
    rows = graph.node("Reshape", [before, places])  # (places, channels)
    if mean.keeps_places:
        rows = graph.node("Unsqueeze", [rows, graph.constant(mean.place_axes, np.int64)])
    features = _apply_head(graph, answer, found, rows)
    best = graph.node("ArgMax", [answer.probabilities], {"axis": -1, "keepdims": 0})  # (1,)
    row = graph.node("Gather", [layer.weights_name, best], {"axis": 0 if layer.rows_are_classes else 1})
    row = graph.node("Reshape", [row, graph.constant([-1, 1], np.int64)])
    values = graph.node("Relu", [graph.node("MatMul", [features, row])])  # (places, 1)
    if found.grid:
        target = graph.constant([1, 1, *found.grid], np.int64)
    else:
        rows_columns = graph.node("Slice", [shape, graph.constant([1], np.int64), graph.constant([3], np.int64)])
        target = graph.node("Concat", [graph.constant([1, 1], np.int64), rows_columns], {"axis": 0})
    return MapNames(rows, features, graph.node("Reshape", [values, target]))


def _apply_head(graph: PhotoGraph, answer: ViewAnswer, found: ClassMap, rows: str) -> str:
    """What lies between the mean and the last product, applied to every place as if it were a picture of its own."""
    names = {**answer.names, found.mean.after: rows}
    for node in found.head:
        inputs = [names.get(name, name) for name in node.input]
        names[node.output[0]] = _repeat_node(graph, node, inputs)
    return graph.node("Flatten", [names[found.layer.features]], {"axis": 1})


def _repeat_node(graph: PhotoGraph, node: NodeProto, inputs: list[str]) -> str:
    if node.op_type in ("Reshape", "Flatten", "Squeeze"):  # whose shape may name the number of pictures
        return graph.node("Flatten", inputs[:1], {"axis": 1})
    reader = graph.network.reader
    if node.op_type == "Gather" and len(reader.shape(node.input[0])) == 1 and reader.is_constant(node.input[1]):
        order = reader.constant(node.input[1])  # of a picture's own numbers, which an export may put into a line
        picked = graph.node("Gather", [inputs[0], graph.constant(order.reshape(-1), np.int64)], {"axis": 1})
        return graph.node("Reshape", [picked, graph.constant([-1, *order.shape[1:]], np.int64)])
    if node.op_type in ("Constant", "Dropout", "Identity") or len(node.output) == 1:
        return graph.repeat(node, inputs)
    raise UnknownStructureError(f"its head holds the operator {node.op_type} with several results")


def _check_head(network: NetworkFile, found: ClassMap, built: Any, names: MapNames) -> None:
    """Raises `UnknownStructureError` where the head gives other features for several places than for each alone."""
    if not found.head:
        return
    shape = network.reader.shape(found.mean.after)
    if None in shape or not shape:
        raise UnknownStructureError("the shape of its mean over places is not known")
    places = np.random.default_rng(0).normal(0, 1, (_CHECKED, *(length or 0 for length in shape[1:])))
    values = places.astype(np.float32)
    try:
        alone = open_onnx_session(cut_model(network.proto, found.mean.after, found.layer.features))
        together = open_onnx_session(cut_model(built, names.rows, names.features))
        wanted = [alone.run(None, {found.mean.after: values[[place]]})[0].reshape(-1) for place in range(_CHECKED)]
        given = together.run(None, {names.rows: values})[0]
        same = given.shape == np.shape(wanted) and np.allclose(given, wanted, rtol=1e-3, atol=1e-4)
    except RUNTIME_FAULTS:
        same = False
    if not same:
        raise UnknownStructureError("its last layers cannot be applied to each place by itself")


def _find_box(graph: PhotoGraph, values: str, settings: ZoomSettings) -> Box:
    """The square around the cells above a share of the maximum, in pixels of the photo."""
    cells = graph.constant([1, 1, _CELLS, _CELLS], np.int64)
    enlarged = graph.node("Resize", [values, "", "", cells], {"mode": "cubic"})
    most = graph.node("ReduceMax", [enlarged], {"keepdims": 1})
    level = graph.node("Mul", [most, graph.constant(settings.share)])
    inside = graph.number(graph.node("GreaterOrEqual", [enlarged, level]))
    size = [graph.number(side) for side in (graph.height, graph.width)]
    shorter = graph.number(graph.shorter)
    spans = [_measure_span(graph, inside, axis, (size[axis], shorter)) for axis in (0, 1)]
    side = graph.node("Mul", [graph.node("Max", [extent for _, extent in spans]), graph.constant([settings.grow])])
    side = graph.node("Max", [side, graph.node("Mul", [shorter, graph.constant([settings.least_side])])])
    side = graph.node("Max", [side, graph.constant([_SMALLEST])])
    side = graph.whole(graph.node("Min", [side, shorter]))
    top, left = (
        _clip_start(graph, centre, side, whole)
        for (centre, _), whole in zip(spans, (graph.height, graph.width), strict=True)
    )
    return Box(left, top, side)


def _measure_span(graph: PhotoGraph, inside: str, axis: int, photo: tuple[str, str]) -> tuple[str, str]:
    """Centre and extent of the cells along an axis, in pixels of the photo."""
    side, shorter = photo
    other = graph.constant([3 - axis], np.int64)
    line = graph.node("Reshape", [graph.node("ReduceMax", [inside, other]), graph.constant([_CELLS], np.int64)])
    first, last = (
        graph.number(graph.node("ArgMax", [line], {"axis": 0, "keepdims": 1, "select_last_index": late}))
        for late in (0, 1)
    )
    end = graph.node("Add", [last, graph.constant([1.0])])
    wanted = graph.network.preprocessing
    shown = (
        side if wanted.resize is None
        else graph.node("Mul", [shorter, graph.constant([wanted.size[axis] / wanted.resize])])
    )  # fmt: skip
    cell = graph.node("Mul", [shown, graph.constant([1 / _CELLS])])
    offset = graph.node("Mul", [graph.node("Sub", [side, shown]), graph.constant([0.5])])
    middle = graph.node("Mul", [graph.node("Add", [first, end]), graph.constant([0.5])])
    centre = graph.node("Add", [graph.node("Mul", [middle, cell]), offset])
    return centre, graph.node("Mul", [graph.node("Sub", [end, first]), cell])


def _clip_start(graph: PhotoGraph, centre: str, side: str, whole: str) -> str:
    """Where a box around a centre begins, moved into the photo."""
    half = graph.node("Mul", [graph.number(side), graph.constant([0.5])])
    start = graph.node("Max", [graph.node("Sub", [centre, half]), graph.constant([0.0])])
    return graph.node("Min", [graph.whole(start), graph.node("Sub", [whole, side])])


def _build_search(network: NetworkFile, reason: str) -> WrittenNetwork:
    """Without a class map: the surest of five fixed places."""
    graph = PhotoGraph(network)
    first = graph.ask(graph.whole_view())
    boxes = [place_box(graph, FixedView(scale=0.5, x=x, y=y)) for x, y in CORNERS_AND_CENTRE]
    answers = [graph.ask(graph.crop(box)).probabilities for box in boxes]
    every = graph.node("Concat", answers, {"axis": 0})
    surest = graph.node("ArgMax", [graph.node("ReduceMax", [every, graph.constant([1], np.int64)], {"keepdims": 0})],
                        {"axis": 0, "keepdims": 1})  # fmt: skip
    second = graph.node("Gather", [every, surest], {"axis": 0})
    chosen = Box(*(
        graph.node("Gather", [graph.node("Concat", list(parts), {"axis": 0}), surest], {"axis": 0})
        for parts in zip(*boxes, strict=True)
    ))  # fmt: skip
    passes = 1 + len(boxes)
    note = f"no class map ({reason}): mean of the whole view and the surest of {len(boxes)} places, {passes} passes"
    return WrittenNetwork(
        content=graph.model(graph.mean([first.probabilities, second]), chosen),
        description=describe_network(network, takes_photo=True, note=note), passes=passes, note=note,
    )  # fmt: skip
