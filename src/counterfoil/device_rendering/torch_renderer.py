"""Pictures of compositions made on a device, many at once, and what a run needs of each.

Layers of one kind and size are made together, whichever picture they belong to, so that a batch of many pictures is a
few dozen calls. Planes that pictures share are sent once. What comes back is each picture, the pixels of its object in
every row and column, how much it differs from the pictures before, and the inputs that networks take of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.device_rendering.torch_corruptions import CORRUPTION_OPERATIONS, corruption_key
from counterfoil.device_rendering.torch_operations import (
    OPERATIONS,
    LayerBatch,
    Operation,
    Tensor,
    TorchTables,
    group_key,
    place_objects,
    weigh_across,
    weigh_down,
)
from counterfoil.edits.composition import Composition, PictureLayer, Placed, Plane
from counterfoil.edits.visible_change import VISIBLE_DISTANCE, VISIBLE_STEP
from counterfoil.models.pillow_resize import weigh_side
from counterfoil.models.preprocessing import InputGeometry
from counterfoil.object_mask import HARD

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PictureRequest:
    """One picture to make."""

    composition: Composition
    before: tuple[Bytes, ...] = ()  # pictures of the same size that it is compared with
    by_level: bool = False  # whether a change of level is enough to count, without one of colour that is seen


class MadePicture(NamedTuple):
    """What came of one request."""

    image: Bytes
    rows: Counts  # the object's pixels in each row
    columns: Counts
    changed: tuple[int, ...]  # pixels that differ visibly from each of the pictures before
    inputs: tuple[Bytes, ...]  # for each geometry that was asked for, levels (height, width, 3)
    moved: bool = False  # whether its object was moved

    @property
    def left_picture(self) -> bool:
        """Whether an object was moved out of the picture."""
        return self.moved and not self.rows.any()


@dataclass(frozen=True)
class TorchRenderer:
    """Makes pictures with torch; the tables that it needs are kept between calls. For one thread at a time."""

    device: str
    _tables: list[TorchTables] = field(default_factory=list, repr=False, compare=False)

    @property
    def tables(self) -> TorchTables:
        """Made on first use: a forked process cannot use a GPU."""
        if not self._tables:
            self._tables.append(TorchTables(self.device))
        return self._tables[0]

    def __call__(
        self, requests: Sequence[PictureRequest], geometries: Sequence[InputGeometry] = ()
    ) -> list[MadePicture]:
        """The pictures in order."""
        with self.tables.torch.inference_mode():
            batch = _Batch(self.tables)
            batch.make([request.composition.image for request in requests])
            made: dict[int, MadePicture] = {}
            for places in _group_by_shape(requests):
                finished = _finish(batch, [requests[place] for place in places], geometries)
                made |= dict(zip(places, finished, strict=True))
            return [made[place] for place in range(len(requests))]


def _group_by_shape(requests: Sequence[PictureRequest]) -> Iterator[list[int]]:
    """The places of requests whose pictures have one size and are compared with as many others."""
    groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, request in enumerate(requests):
        groups[request.composition.image.shape, len(request.before), request.by_level].append(place)
    yield from groups.values()


_ALL: Mapping[type[PictureLayer], Operation] = {**OPERATIONS, **CORRUPTION_OPERATIONS}
_KNOWN = frozenset({Placed, *_ALL})


def _draw_here(batch: LayerBatch, layers: Sequence[PictureLayer]) -> Tensor:
    """Layers of a kind that torch is not told of, such as a plug-in's: drawn on the CPU."""
    return batch.planes([layer.draw() for layer in layers])


class _Batch:
    """The layers of some pictures on the device, by identity, while the pictures are made."""

    def __init__(self, tables: TorchTables) -> None:
        self.tables = tables
        self._colours: dict[int, Tensor] = {}  # (height, width, 3) bytes, by layer
        self._alphas: dict[int, Tensor] = {}  # of objects that were moved, by layer
        # by array, which is kept so that its id is not used again
        self._uploaded: dict[int, tuple[NDArray[Any], Tensor]] = {}

    def make(self, layers: Sequence[PictureLayer]) -> None:
        """Make layers and all that they are made of, the innermost first."""
        for level in _order_by_depth(layers):
            groups: defaultdict[tuple[object, ...], list[PictureLayer]] = defaultdict(list)
            for layer in level:
                groups[type(layer), layer.shape, group_key(layer), corruption_key(layer)].append(layer)
            for group in groups.values():
                self._make_group(group)

    def _make_group(self, group: Sequence[PictureLayer]) -> None:
        if isinstance(group[0], Placed):
            made, alphas = place_objects(self, [layer for layer in group if isinstance(layer, Placed)])
            self._alphas.update(zip(map(id, group), alphas, strict=True))
        else:
            made = _ALL.get(type(group[0]), _draw_here)(self, group)
        self._colours.update(zip(map(id, group), made, strict=True))

    def colours_of(self, layers: Sequence[PictureLayer]) -> Tensor:
        """The pictures of layers that are made, side by side."""
        return self.tables.torch.stack([self._colours[id(layer)] for layer in layers])

    def planes(self, arrays: Sequence[NDArray[Any]]) -> Tensor:
        """Arrays of one shape side by side; one that occurs more than once is sent once."""
        for array in arrays:
            if id(array) not in self._uploaded:
                self._uploaded[id(array)] = array, self.tables.upload(array)
        return self.tables.torch.stack([self._uploaded[id(array)][1] for array in arrays])

    def alpha_of(self, composition: Composition) -> Tensor:
        """The alpha of a picture's object, (height, width)."""
        if composition.alpha is None:
            return self._alphas[id(composition.image)]
        return self.planes([composition.alpha])[0]


def _order_by_depth(layers: Sequence[PictureLayer]) -> list[list[PictureLayer]]:
    """All layers by how many operations they are away from planes; each once."""
    depths: dict[int, tuple[int, PictureLayer]] = {}

    def visit(layer: PictureLayer) -> int:
        if id(layer) not in depths:
            inputs = layer.inputs if type(layer) in _KNOWN else ()
            depths[id(layer)] = 1 + max(map(visit, inputs), default=-1), layer
        return depths[id(layer)][0]

    deepest = max((visit(layer) for layer in layers), default=-1)
    levels: list[list[PictureLayer]] = [[] for _ in range(deepest + 1)]
    for depth, layer in depths.values():
        levels[depth].append(layer)
    return levels


def _finish(
    batch: _Batch, requests: Sequence[PictureRequest], geometries: Sequence[InputGeometry]
) -> list[MadePicture]:
    """The pictures of one size, measured, prepared and brought back."""
    torch = batch.tables.torch
    pictures = batch.colours_of([request.composition.image for request in requests])
    hard = torch.stack([batch.alpha_of(request.composition) for request in requests]) >= HARD
    rows, columns = (_fetch(hard.sum(axis)) for axis in (2, 1))
    changed = [_count_changed(batch, requests, pictures, place) for place in range(len(requests[0].before))]
    counts = np.stack(changed, axis=1).tolist() if changed else [[] for _ in requests]
    inputs = [_fetch(_prepare(batch, pictures, geometry)) for geometry in geometries]
    images = _fetch_pictures(requests, pictures)
    moved = [request.composition.alpha is None for request in requests]
    return [
        MadePicture(images[i], rows[i], columns[i], tuple(counts[i]), tuple(levels[i] for levels in inputs), moved[i])
        for i in range(len(requests))
    ]


def _fetch(tensor: Tensor) -> NDArray[Any]:
    """An array of the device's memory."""
    return np.asarray(tensor.cpu().numpy())


def _fetch_pictures(requests: Sequence[PictureRequest], pictures: Tensor) -> list[Bytes]:
    """The pictures; those that the request holds already are not brought back."""
    images = [request.composition.image for request in requests]
    wanted = [place for place, image in enumerate(images) if not isinstance(image, Plane)]
    fetched = dict(zip(wanted, _fetch(pictures[wanted]), strict=True)) if wanted else {}
    return [image.pixels if isinstance(image, Plane) else fetched[place] for place, image in enumerate(images)]


def _count_changed(batch: _Batch, requests: Sequence[PictureRequest], pictures: Tensor, place: int) -> Counts:
    """The pixels that differ visibly from one of the pictures before, as `measure_change` counts them."""
    torch, tables = batch.tables.torch, batch.tables
    before = batch.planes([request.before[place] for request in requests])
    changed = ((pictures.short() - before.short()).abs() >= VISIBLE_STEP).any(3)
    if not requests[0].by_level:
        first, second = (tables.convert(cv2.COLOR_RGB2LAB, each).short() for each in (before, pictures))
        scale = torch.tensor((100 / 255, 1, 1), device=pictures.device)
        distances = (((first - second).abs().float() * scale) ** 2).sum(3)
        changed &= distances >= VISIBLE_DISTANCE**2
    return _fetch(changed.sum((1, 2)))


def _prepare(batch: _Batch, pictures: Tensor, geometry: InputGeometry) -> Tensor:
    """The pictures at a network's size, as Pillow resizes them: across, rounded, and down, rounded."""
    height, width = (int(length) for length in pictures.shape[1:3])
    kept = geometry.place(width, height)
    across = batch.tables.filter(_weigh_side, width, kept.width, kept.left, kept.columns, geometry.interpolation)
    down = batch.tables.filter(_weigh_side, height, kept.height, kept.top, kept.rows, geometry.interpolation)
    narrow = _join_parts(*weigh_across(pictures.float(), across).chunk(2, 2))
    return _join_parts(*weigh_down(narrow, down).chunk(2, 1)).byte()


_PART_BITS, _WEIGHT_BITS = 11, 22  # of Pillow's weights, which are whole numbers


def _join_parts(high: Tensor, low: Tensor) -> Tensor:
    """Levels from the sums over both parts of the weights: rounded as Pillow does, a half upwards."""
    sums = (high.int() << _PART_BITS) + low.int() + (1 << (_WEIGHT_BITS - 1))
    return (sums >> _WEIGHT_BITS).clamp(0, 255).float()


@lru_cache(maxsize=64)
def _weigh_side(length: int, resized: int, skipped: int, kept: int, interpolation: Any) -> NDArray[np.float32]:
    """The weights in two parts, one below the other, whose sums over levels are whole numbers that f32 holds."""
    weights = np.rint(weigh_side(length, resized, skipped, kept, interpolation) * 2**_WEIGHT_BITS)
    high = np.floor(weights / 2**_PART_BITS)
    return np.concatenate([high, weights - high * 2**_PART_BITS]).astype(np.float32)
