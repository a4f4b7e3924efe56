"""Remedies that show the network fixed views and average: crops, and the preprocessing that ImageNet-E looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.errors import UserError
from counterfoil.remedies.network_file import NetworkFile, WrittenNetwork, describe_network
from counterfoil.remedies.photo_graph import Box, PhotoGraph

CORNERS_AND_CENTRE = ((0.5, 0.5), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))  # x, y: 0 left or top, 1 the other


@dataclass(frozen=True, kw_only=True)
class FixedView:
    """One view of a photo: a square of a share of the shorter side at a place, or the network's own view."""

    scale: float | None = None  # None: the view that the network is shown without a remedy
    x: float = 0.5
    y: float = 0.5
    mirrored: bool = False
    squeezed: bool = False  # the whole photo, squeezed to the network's shape

    def __post_init__(self) -> None:
        if self.scale is not None and not 0 < self.scale <= 1:
            raise UserError(f"expected the scale of a crop above 0 and at most 1, got {self.scale:g}")


@dataclass(frozen=True, kw_only=True)
class CropSettings:
    """The views of the remedy `crops`: the whole view, and crops of each scale at the places, each also mirrored."""

    scales: tuple[float, ...] = (0.6,)
    places: tuple[tuple[float, float], ...] = CORNERS_AND_CENTRE
    mirrored: bool = False

    @property
    def views(self) -> tuple[FixedView, ...]:
        """The views, the whole one first."""
        plain = (FixedView(), *(FixedView(scale=scale, x=x, y=y) for scale in self.scales for x, y in self.places))
        return plain if not self.mirrored else (*plain, *(_mirror(view) for view in plain))


def _mirror(view: FixedView) -> FixedView:
    return FixedView(scale=view.scale, x=view.x, y=view.y, mirrored=True, squeezed=view.squeezed)


_TEN_CROP = tuple(
    FixedView(scale=0.875, x=x, y=y, mirrored=mirrored) for mirrored in (False, True) for x, y in CORNERS_AND_CENTRE
)
PREPROCESSING: Mapping[str, tuple[FixedView, ...]] = {
    "squeeze": (FixedView(squeezed=True),),
    "full-crop": (FixedView(scale=1.0),),
    "mirror": (FixedView(), FixedView(mirrored=True)),
    "ten-crop": _TEN_CROP,
}  # other preprocessing by name: no training, and no second look at a place that depends on the photo


def build_views(network: NetworkFile, views: Sequence[FixedView], name: str) -> WrittenNetwork:
    """The network's mean answer over fixed views, as one file."""
    graph = PhotoGraph(network)
    answers = [graph.ask(_show(graph, view)).probabilities for view in views]
    note = f"{name}: {'one other view' if len(views) == 1 else f'mean over {len(views)} fixed views'}"
    return WrittenNetwork(
        content=graph.model(graph.mean(answers)), passes=len(views), note=note,
        description=describe_network(network, takes_photo=True, note=note),
    )  # fmt: skip


def _show(graph: PhotoGraph, view: FixedView) -> str:
    levels = graph.whole_view(squeeze=view.squeezed) if view.scale is None else graph.crop(place_box(graph, view))
    return graph.mirror(levels) if view.mirrored else levels


def place_box(graph: PhotoGraph, view: FixedView) -> Box:
    """The box of a crop, in pixels of the photo."""
    assert view.scale is not None
    scale = graph.constant([view.scale])
    side = graph.whole(graph.node("Mul", [graph.number(graph.shorter), scale]))
    side = graph.node("Max", [side, graph.constant([1], np.int64)])
    left, top = (
        graph.whole(graph.node("Mul", [graph.number(graph.node("Sub", [whole, side])), graph.constant([share])]))
        for whole, share in ((graph.width, view.x), (graph.height, view.y))
    )
    return Box(left, top, side)
