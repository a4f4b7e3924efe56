"""The remedy `zoom`: look again, at the place that speaks for the answer, and average both looks.

The class map of the network's own answer gives a box; the same network sees that box at the photo's resolution, and
the probabilities of both views are averaged. Nothing is trained. Where a network has no class map, the box is the one
of five fixed places where the network is surest, which takes six passes instead of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from counterfoil.errors import UserError
from counterfoil.remedies.class_map import ClassMap, UnknownStructureError
from counterfoil.remedies.fixed_views import CORNERS_AND_CENTRE, FixedView, place_box
from counterfoil.remedies.network_file import NetworkFile, WrittenNetwork, describe_network
from counterfoil.remedies.photo_graph import Box, PhotoGraph, ViewAnswer

_CELLS = 56  # the map is enlarged to this many cells a side
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


def build_zoom(network: NetworkFile, settings: ZoomSettings) -> WrittenNetwork:
    """The network with a second look, as one file."""
    graph = PhotoGraph(network)
    first = graph.ask(graph.whole_view())
    try:
        found: ClassMap | None = network.class_map
        reason = ""
    except UnknownStructureError as error:
        found, reason = None, str(error)
    if found is None:
        return _build_search(graph, first, reason)
    box = _find_box(graph, _class_map(graph, first, found), settings)
    second = graph.ask(graph.crop(box))
    note = "mean of the whole view and a box around the class map of its answer: two passes"
    return WrittenNetwork(
        content=graph.model(graph.mean([first.probabilities, second.probabilities]), box),
        description=describe_network(network, takes_photo=True, note=note), passes=2, note=note,
    )  # fmt: skip


def _class_map(graph: PhotoGraph, answer: ViewAnswer, found: ClassMap) -> str:
    """The map of the answer's class over places, (1, 1, rows, columns), without the negative parts."""
    before, layer = answer.names[found.before], found.layer
    if found.axes == "channels first":
        before = graph.node("Transpose", [before], {"perm": [0, 2, 3, 1]})
    shape = graph.node("Shape", [before])  # (1, rows, columns, channels)
    channels = graph.node("Slice", [shape, graph.constant([3], np.int64), graph.constant([4], np.int64)])
    places = graph.node("Concat", [graph.constant([-1], np.int64), channels], {"axis": 0})
    rows = graph.node("Reshape", [before, places])  # (places, channels)
    if found.keeps_places and found.axes == "channels first":
        rows = graph.node("Unsqueeze", [rows, graph.constant([2, 3], np.int64)])
    elif found.keeps_places:
        rows = graph.node("Unsqueeze", [rows, graph.constant([1, 2], np.int64)])
    features = _apply_head(graph, answer, found, rows)
    best = graph.node("ArgMax", [answer.probabilities], {"axis": -1, "keepdims": 0})  # (1,)
    row = graph.node("Gather", [layer.weights_name, best], {"axis": 0 if layer.rows_are_classes else 1})
    row = graph.node("Reshape", [row, graph.constant([-1, 1], np.int64)])
    values = graph.node("Relu", [graph.node("MatMul", [features, row])])  # (places, 1)
    rows_columns = graph.node("Slice", [shape, graph.constant([1], np.int64), graph.constant([3], np.int64)])
    target = graph.node("Concat", [graph.constant([1, 1], np.int64), rows_columns], {"axis": 0})
    return graph.node("Reshape", [values, target])


def _apply_head(graph: PhotoGraph, answer: ViewAnswer, found: ClassMap, rows: str) -> str:
    """What lies between the mean and the last product, applied to every place as if it were a picture of its own."""
    names = {**answer.names, found.after: rows}
    for node in found.head:
        inputs = [names.get(name, name) for name in node.input]
        names[node.output[0]] = _repeat_node(graph, node, inputs)
    return names[found.layer.features]


def _repeat_node(graph: PhotoGraph, node: NodeProto, inputs: list[str]) -> str:
    if node.op_type in ("Reshape", "Flatten", "Squeeze"):  # whose shape may name the number of pictures
        return graph.node("Flatten", inputs[:1], {"axis": 1})
    if node.op_type in ("Constant", "Dropout", "Identity") or len(node.output) == 1:
        return graph.repeat(node, inputs)
    raise UnknownStructureError(f"its head holds the operator {node.op_type} with several results")


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


def _build_search(graph: PhotoGraph, first: ViewAnswer, reason: str) -> WrittenNetwork:
    """Without a class map: the surest of five fixed places."""
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
        description=describe_network(graph.network, takes_photo=True, note=note), passes=passes, note=note,
    )  # fmt: skip
