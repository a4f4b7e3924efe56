"""The operations of ImageNet-C's corruptions in torch, each for a batch of layers of one size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np

from counterfoil.device_rendering.torch_operations import (
    Floats,
    LayerBatch,
    Operation,
    Tensor,
    mirror_weights,
    repeat_weights,
    round_levels,
    sample,
    weigh_across,
    weigh_down,
)
from counterfoil.edits.composition import PictureLayer
from counterfoil.edits.corruptions.corruption_layers import (
    COLUMNS,
    FRACTION_BITS,
    Blended,
    Brightened,
    Convolved,
    Displaced,
    PhotonCounted,
    Shuffled,
    SoftTruncated,
    Struck,
    Trailed,
    Veiled,
    ZoomBlurred,
    map_to_middle,
    tabulate_counts,
    weigh_trail,
)

_LUMA = (0.299, 0.587, 0.114)  # in floating point


def _colours(batch: LayerBatch, layers: Sequence[Any]) -> Tensor:
    return batch.colours_of([layer.of for layer in layers])


def _truncate(values: Tensor) -> Tensor:
    """As `truncate_levels`: rounded after nearly half a level is taken away."""
    return round_levels(values - 0.499)


def _count_photons(batch: LayerBatch, layers: Sequence[PhotonCounted]) -> Tensor:
    torch, tables, first = batch.tables.torch, tabulate_counts(layers[0].photons), layers[0]
    numbers = batch.planes([layer.numbers.view(np.int32) for layer in layers])
    column = (numbers >> FRACTION_BITS) & (COLUMNS - 1)
    cell = _colours(batch, layers).int() * COLUMNS + column
    keep, other = batch.tables.upload(tables.keep.astype(np.int32)), batch.tables.upload(tables.other)
    fraction = numbers & (2**FRACTION_BITS - 1)
    count = torch.where(fraction < keep[cell], column, other[cell].int())
    return batch.tables.upload(first.levels)[count]


def _strike(batch: LayerBatch, layers: Sequence[Struck]) -> Tensor:
    torch, bound = batch.tables.torch, layers[0].bound
    numbers = batch.planes([layer.numbers.view(np.int16) for layer in layers]).int() & 0xFFFF
    white = torch.full((), 255, dtype=torch.uint8, device=numbers.device)
    spoilt = torch.where(numbers < bound, white, _colours(batch, layers))
    return torch.where(numbers < bound // 2, torch.zeros_like(white), spoilt)


def _convolve(batch: LayerBatch, layers: Sequence[Convolved]) -> Tensor:
    """Row by row of the kernel: each is a matrix along the width, moved down."""
    colours, kernel = _colours(batch, layers).float(), layers[0].kernel
    height, width = layers[0].shape
    total, none = 0.0, np.zeros(len(kernel), np.float32)
    for number, weights in enumerate(kernel):
        one = none.copy()
        one[number] = 1
        down, across = batch.tables.upload(mirror_weights(one, height)), mirror_weights(weights, width)
        total = total + weigh_down(weigh_across(colours, batch.tables.upload(across)), down)
    return _truncate(total)


def _brighten(batch: LayerBatch, layers: Sequence[Brightened]) -> Tensor:
    colours, added = _colours(batch, layers), layers[0].added
    value = colours.amax(3, keepdim=True)
    bright = _truncate(colours.float() * batch.tables.upload(layers[0].factors)[value.int()])
    return bright.masked_fill(value == 0, int(added))


def _trail(batch: LayerBatch, layers: Sequence[Trailed]) -> Tensor:
    torch, reach = batch.tables.torch, 2 * layers[0].radius
    height, width = layers[0].shape
    planes = _colours(batch, layers).float().permute(0, 3, 1, 2)
    wide = torch.nn.functional.pad(planes, (reach, reach, reach, reach), mode="replicate")
    totals = torch.zeros_like(planes)
    for layer, plane, total in zip(layers, wide, totals, strict=True):  # each has an angle of its own
        for (down, right), weight in weigh_trail(layer.radius, layer.sigma, layer.angle).items():
            moved = plane[:, reach + down : reach + down + height, reach + right : reach + right + width]
            total.add_(moved, alpha=weight)
    return _truncate(totals.permute(0, 2, 3, 1))


def _veil(batch: LayerBatch, layers: Sequence[Veiled]) -> Tensor:
    colours, share = _colours(batch, layers).float(), layers[0].share
    shares = batch.tables.upload(np.array([layer.share for layer in layers], np.float32))[:, None, None, None]
    veil = batch.planes([layer.veil for layer in layers])[..., None]
    if not layers[0].whiten:
        return _truncate(colours * shares + veil)
    luma = batch.tables.upload(np.array(_LUMA, np.float32))
    white = colours.maximum((colours * luma).sum(3, keepdim=True) * 1.5 + 127.5)
    return _truncate(colours * share + white * (1 - share) + veil)


def _blend(batch: LayerBatch, layers: Sequence[Blended]) -> Tensor:
    first, other = layers[0], batch.planes([layer.other for layer in layers]).float()
    return round_levels(_colours(batch, layers).float() * first.own_share + other * first.other_share + first.offset)


def _displace(batch: LayerBatch, layers: Sequence[Displaced]) -> Tensor:
    height, width = layers[0].shape
    across = _mirror_places(batch.planes([layer.across for layer in layers]), width)
    down = _mirror_places(batch.planes([layer.down for layer in layers]), height)
    mirrored, colours = batch.tables.torch.stack([across, down], 3), _colours(batch, layers).float()
    return round_levels(sample(batch.tables, colours, mirrored, ("bilinear", "border")))


def _mirror_places(places: Tensor, length: int) -> Tensor:
    """Places along a side that is mirrored about the outer edges of its first and last pixel."""
    return length - ((places + 0.5) % (2 * length) - length).abs() - 0.5


def _soften(batch: LayerBatch, layers: Sequence[SoftTruncated]) -> Tensor:
    first, tables = layers[0], batch.tables
    down, across = (tables.filter(_repeated_gaussian, side, first.radius, first.sigma) for side in first.shape)
    return _truncate(weigh_down(weigh_across(_colours(batch, layers).float(), across), down))


def _repeated_gaussian(length: int, radius: int, sigma: float) -> Floats:
    """A Gaussian along a side whose ends are repeated."""
    weights = np.asarray(cv2.getGaussianKernel(2 * radius + 1, sigma, cv2.CV_32F)[:, 0], np.float32)
    return repeat_weights(weights, length)


def _shuffle(batch: LayerBatch, layers: Sequence[Shuffled]) -> Tensor:
    colours = _colours(batch, layers)
    sources = batch.planes([layer.sources for layer in layers]).long()[..., None].expand(-1, -1, 3)
    return batch.tables.torch.gather(colours.flatten(1, 2), 1, sources).reshape(colours.shape)


def _blur_by_zoom(batch: LayerBatch, layers: Sequence[ZoomBlurred]) -> Tensor:
    torch, first = batch.tables.torch, layers[0]
    colours = _colours(batch, layers).float()
    height, width = first.shape
    down = torch.arange(height, device=colours.device, dtype=torch.float32)[:, None].expand(height, width)
    across = torch.arange(width, device=colours.device, dtype=torch.float32).expand(height, width)
    total = 2.0 * colours
    for number in range(1, first.count):
        (wide, _, left), (_, tall, top) = map_to_middle(first.shape, 1 + number * first.step).tolist()
        places = torch.stack([across * wide + left, down * tall + top], 2).expand(len(layers), height, width, 2)
        total = total + sample(batch.tables, colours, places, ("bilinear", "border")).round()
    return _truncate(total / (first.count + 1))


def corruption_key(layer: PictureLayer) -> tuple[object, ...]:
    """What layers of one batch of a corruption have in common besides their kind and size."""
    if isinstance(layer, PhotonCounted):
        return (layer.photons,)
    if isinstance(layer, Struck):
        return (layer.bound,)
    if isinstance(layer, Convolved):
        return (layer.kernel.tobytes(),)
    if isinstance(layer, Brightened):
        return (layer.added,)
    if isinstance(layer, Trailed):
        return (layer.radius,)
    if isinstance(layer, Veiled):
        return layer.whiten, layer.share if layer.whiten else 0
    if isinstance(layer, Blended):
        return layer.own_share, layer.other_share, layer.offset
    if isinstance(layer, SoftTruncated):
        return (layer.sigma,)
    return (layer.count, layer.step) if isinstance(layer, ZoomBlurred) else ()


CORRUPTION_OPERATIONS: Mapping[type[PictureLayer], Operation] = {
    PhotonCounted: _count_photons,
    Struck: _strike,
    Convolved: _convolve,
    Brightened: _brighten,
    Trailed: _trail,
    Veiled: _veil,
    Blended: _blend,
    Displaced: _displace,
    SoftTruncated: _soften,
    Shuffled: _shuffle,
    ZoomBlurred: _blur_by_zoom,
}
