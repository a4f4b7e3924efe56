"""The operations of a composition in torch, each for a batch of layers of one size.

Every operation follows OpenCV's arithmetic: whole numbers where OpenCV has whole numbers, so that levels are equal, and
the same order of roundings in floating point, where a sum in another order may round to the next level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import (
    HUES,
    Covered,
    Flat,
    FootShaded,
    Grey,
    HueStepped,
    HueTurned,
    LayerPart,
    Levelled,
    Noisy,
    ObjectLayer,
    Pasted,
    PictureLayer,
    Placed,
    Plane,
    Repainted,
    Smoothed,
    SmoothedObject,
)
from counterfoil.edits.cutout import Move, Window, refine
from counterfoil.plugins import import_extra

Tensor = Any  # of torch, which is imported on first use
Floats = NDArray[np.float32]
_LUMA = (9798, 19235, 3735, 15)  # OpenCV's weights of red, green and blue in 2^-15
_FIXED = 256  # OpenCV's weights of a Gaussian over bytes are in 2^-8
L = TypeVar("L", bound=PictureLayer)


class TorchTables:
    """What does not depend on pictures, on one device: matrices of filters and tables of colours, made on first use."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._filters: dict[tuple[Any, ...], Tensor] = {}

    @cached_property
    def torch(self) -> Any:
        """The package."""
        return import_extra("torch", "torch")

    def upload(self, plane: NDArray[Any]) -> Tensor:
        """An array on the device."""
        ready = np.ascontiguousarray(plane)
        if not ready.flags.writeable:  # torch warns of planes that it could write to
            ready = ready.copy()
        return self.torch.from_numpy(ready).to(self.device)

    def filter(self, make: Callable[..., NDArray[Any]], *settings: Any) -> Tensor:
        """The matrix that a function gives for these settings, which names it."""
        key = make, *settings
        if key not in self._filters:
            self._filters[key] = self.upload(make(*settings))
        return self._filters[key]

    def convert(self, code: int, colours: Tensor) -> Tensor:
        """OpenCV's conversion of byte colours, (..., 3), by a table of all of them."""
        table = self.filter(_tabulate_colours, code)
        red, green, blue = (colours[..., channel].int() for channel in range(3))
        return table[(red << 16) + (green << 8) + blue]


def _tabulate_colours(code: int) -> NDArray[np.uint8]:
    """What OpenCV makes of every colour, (2^24, 3); some 50 MB."""
    levels = np.arange(256, dtype=np.uint8)
    cube = np.empty((256, 256, 256, 3), np.uint8)
    cube[..., 0], cube[..., 1], cube[..., 2] = levels[:, None, None], levels[None, :, None], levels
    return np.asarray(cv2.cvtColor(cube.reshape(4096, 4096, 3), code), np.uint8).reshape(-1, 3)


class LayerBatch(Protocol):
    """What an operation gets besides its layers: the pictures of the layers that they are made of."""

    tables: TorchTables

    def colours_of(self, layers: Sequence[PictureLayer]) -> Tensor:
        """Their pictures side by side, (n, height, width, 3) bytes."""

    def planes(self, arrays: Sequence[NDArray[Any]]) -> Tensor:
        """Arrays of one shape side by side; one that occurs more than once is sent once."""


Operation = Callable[[LayerBatch, Sequence[Any]], Tensor]  # layers of one kind, size and key to (n, height, width, 3)


def _copy_planes(batch: LayerBatch, layers: Sequence[Plane]) -> Tensor:
    return batch.planes([layer.pixels for layer in layers])


def _fill(batch: LayerBatch, layers: Sequence[Flat]) -> Tensor:
    colours = batch.tables.upload(np.array([layer.colour for layer in layers], np.uint8))
    return colours[:, None, None].expand(len(layers), *layers[0].shape, 3)


def _cut_parts(batch: LayerBatch, layers: Sequence[LayerPart]) -> Tensor:
    rows, columns = layers[0].window
    return batch.colours_of([layer.of for layer in layers])[:, rows, columns]


def _change_levels(batch: LayerBatch, layers: Sequence[Levelled]) -> Tensor:
    torch, colours = batch.tables.torch, batch.colours_of([layer.of for layer in layers])
    wide = [np.broadcast_to(each.table.reshape(256, -1), (256, 3)) for each in layers]
    tables = batch.tables.upload(np.stack(wide))
    flat = colours.reshape(len(layers), -1, 3)
    return torch.gather(tables, 1, flat.long()).reshape(colours.shape)


def _make_grey(batch: LayerBatch, layers: Sequence[Grey]) -> Tensor:
    colours = batch.colours_of([layer.of for layer in layers]).int()
    red, green, blue, bits = _LUMA
    luma = colours[..., 0] * red + colours[..., 1] * green + colours[..., 2] * blue
    levels = ((luma + (1 << (bits - 1))) >> bits).to(batch.tables.torch.uint8)
    return levels[..., None].expand(colours.shape)


def _turn_hues(batch: LayerBatch, layers: Sequence[HueTurned]) -> Tensor:
    torch = batch.tables.torch
    colours = batch.colours_of([layer.of for layer in layers]).float() / 255
    angles = batch.tables.upload(np.array([layer.degrees for layer in layers], np.float32))[:, None, None]
    value, least = colours.amax(3), colours.amin(3)
    spread = value - least
    red, green, blue = (colours[..., channel] for channel in range(3))
    sixty = 60 / (spread + torch.finfo(torch.float32).eps)
    of_blue = (red - green) * sixty + 240
    hue = torch.where(
        value == red, (green - blue) * sixty, torch.where(value == green, (blue - red) * sixty + 120, of_blue)
    )
    hue = (hue + angles + 360) % 360 / 60
    # The colour of a hue: each channel falls from the value by the spread as its distance on the circle grows.
    turned = [value - spread * _lack(hue, place) for place in (5, 3, 1)]
    return round_levels(torch.stack(turned, 3) * 255)


def _lack(hue: Tensor, place: int) -> Tensor:
    """How much of the spread a channel lacks at a hue in sixths of the circle."""
    step = (hue + place) % 6
    return step.minimum(4 - step).clamp(0, 1)


def _step_hues(batch: LayerBatch, layers: Sequence[HueStepped]) -> Tensor:
    colours = batch.colours_of([layer.of for layer in layers])
    hsv = batch.tables.convert(cv2.COLOR_RGB2HSV, colours)
    shape = hsv.shape[1:3]
    steps = [np.broadcast_to(np.asarray(layer.turn, np.int32), layer_shape(layer.turn, shape)) for layer in layers]
    turn = batch.tables.upload(np.stack(steps))
    hue = (hsv[..., 0].int() + turn) % HUES if layers[0].keep else turn.expand(hsv.shape[:3])
    turned = batch.tables.torch.stack([hue.to(hsv.dtype), hsv[..., 1], hsv[..., 2]], 3)
    return batch.tables.convert(cv2.COLOR_HSV2RGB, turned)


def layer_shape(turn: NDArray[Any] | int, shape: Sequence[int]) -> tuple[int, ...]:
    """One step for all pixels, or one for each."""
    return (1, 1) if np.size(turn) == 1 else tuple(shape)


def _smooth(batch: LayerBatch, layers: Sequence[Smoothed]) -> Tensor:
    first, (height, width) = layers[0], layers[0].shape
    down, across = (batch.tables.filter(_fixed_gaussian, side, first.kernel, first.sigma) for side in (height, width))
    sums = weigh_down(weigh_across(batch.colours_of([layer.of for layer in layers]).float(), across), down)
    half = _FIXED * _FIXED / 2
    return ((sums + half) / (_FIXED * _FIXED)).floor().to(batch.tables.torch.uint8)


def weigh_across(colours: Tensor, matrix: Tensor) -> Tensor:
    """Colours, (n, height, width, channels), weighed along the width by a matrix (result, width)."""
    return matrix @ colours


def weigh_down(colours: Tensor, matrix: Tensor) -> Tensor:
    """The same along the height."""
    count, _, width, channels = colours.shape
    return (matrix @ colours.flatten(2)).reshape(count, len(matrix), width, channels)


@lru_cache(maxsize=64)
def _fixed_gaussian(length: int, kernel: int, sigma: float) -> Floats:
    """A Gaussian over bytes along a side, in OpenCV's whole numbers of 2^-8; mirrored at the ends."""
    middle, reach = 2 * kernel, kernel // 2
    line = np.zeros((2 * kernel + 1, 4 * kernel + 1), np.uint8)
    line[:, middle] = 255
    seen = np.asarray(cv2.GaussianBlur(line, (kernel, kernel), sigma)[kernel], np.float64)
    weights = np.rint(seen[middle - reach : middle + reach + 1] * _FIXED / 255)
    return mirror_weights(np.asarray(weights, np.float32), length)


@lru_cache(maxsize=64)
def _plain_gaussian(length: int, kernel: int, sigma: float) -> Floats:
    """A Gaussian in floating point along a side, mirrored at the ends."""
    return mirror_weights(np.asarray(cv2.getGaussianKernel(kernel, sigma)[:, 0], np.float32), length)


def mirror_weights(weights: Floats, length: int) -> Floats:
    """The matrix (length, length) of a filter whose side is mirrored about its first and last pixel."""
    places = _reach_places(weights, length)
    period = max(1, 2 * (length - 1))
    return _spread_weights(weights, np.abs((places + length - 1) % period - (length - 1)) if length > 1 else 0 * places)


def repeat_weights(weights: Floats, length: int) -> Floats:
    """The matrix of a filter whose side goes on as its first and last pixel."""
    return _spread_weights(weights, np.clip(_reach_places(weights, length), 0, length - 1))


def _reach_places(weights: Floats, length: int) -> NDArray[np.int_]:
    return np.arange(length)[:, None] + np.arange(len(weights)) - len(weights) // 2


def _spread_weights(weights: Floats, places: NDArray[np.int_]) -> Floats:
    matrix = np.zeros((len(places), len(places)), np.float32)
    np.add.at(matrix, (np.arange(len(places))[:, None], places), weights)
    return matrix


def _smooth_objects(batch: LayerBatch, layers: Sequence[SmoothedObject]) -> Tensor:
    first = layers[0]
    weighed = _take_objects(batch, layers, first.cut.window)
    down, across = (batch.tables.filter(_plain_gaussian, side, first.kernel, first.sigma) for side in first.shape)
    sums = weigh_down(weigh_across(weighed, across), down)
    return round_levels(sums[..., :3] / sums[..., 3:].clamp(min=1e-6))


def _add_noise(batch: LayerBatch, layers: Sequence[Noisy]) -> Tensor:
    return round_levels(
        batch.colours_of([layer.of for layer in layers]).float() + batch.planes([layer.noise for layer in layers])
    )


def _cover(batch: LayerBatch, layers: Sequence[Covered]) -> Tensor:
    behind = batch.colours_of([layer.of for layer in layers]).float()
    rows = batch.tables.upload(np.stack([layer.rows for layer in layers]))[:, :, None, None]
    columns = batch.tables.upload(np.stack([layer.columns for layer in layers]))[:, None, :, None]
    colours = batch.tables.upload(np.array([layer.colour for layer in layers], np.float32))[:, None, None]
    return round_levels(behind + rows * columns * (colours - behind))


def _shade_feet(batch: LayerBatch, layers: Sequence[FootShaded]) -> Tensor:
    behind = batch.colours_of([layer.of for layer in layers]).float()
    touch = batch.tables.upload(np.stack([layer.shadow.touch for layer in layers]))
    middle = batch.tables.upload(np.stack([layer.shadow.middle for layer in layers]))
    spreads, strengths = (
        batch.tables.upload(np.array(values, np.float32))[:, None, None]
        for values in ([layer.shadow.spread for layer in layers], [layer.strength for layer in layers])
    )
    rows = batch.tables.torch.arange(behind.shape[1], device=behind.device, dtype=behind.dtype)[None, :, None]
    profile = (-(((rows - middle) / spreads) ** 2)).exp()
    return round_levels(behind * (1 - strengths * (profile * touch))[..., None])


def _shares(batch: LayerBatch, layers: Sequence[Any]) -> Tensor:
    """The objects' alpha as a share of 1, (n, height, width, 1)."""
    return batch.planes([layer.cut.alpha for layer in layers]).float()[..., None] / 255


def _paste(batch: LayerBatch, layers: Sequence[Pasted]) -> Tensor:
    behind = batch.colours_of([layer.behind for layer in layers]).float()
    own = batch.colours_of([layer.cut.colours for layer in layers]).float()
    return round_levels((own - behind) * _shares(batch, layers) + behind)


def _repaint(batch: LayerBatch, layers: Sequence[Repainted]) -> Tensor:
    rows, columns = layers[0].cut.window
    result = batch.colours_of([layer.photo for layer in layers]).clone()
    own = batch.colours_of([layer.cut.colours for layer in layers])[:, rows, columns].float()
    change = batch.colours_of([layer.colours for layer in layers]).float() - own
    changed = result[:, rows, columns].float() + change * _shares(batch, layers)[:, rows, columns]
    result[:, rows, columns] = round_levels(changed)
    return result


def place_objects(batch: LayerBatch, layers: Sequence[Placed]) -> tuple[Tensor, Tensor]:
    """The pictures with their objects moved, and the objects' alpha there, (n, height, width)."""
    torch = batch.tables.torch
    moves = [layer.move for layer in layers]
    taken = _take_objects(batch, layers, moves[0].source)
    moved = _embed(batch, _sample(batch, taken, moves), moves, layers[0].shape)
    alpha = (moved[..., 3:].clamp(0, 1) * 255).round()
    # Cubic sampling overshoots: premultiplied colour is clipped to what the alpha allows.
    own = moved[..., :3].clamp(min=0).minimum(alpha)
    behind = batch.colours_of([layer.behind for layer in layers]).float()
    return round_levels(own + behind * (1 - alpha / 255)), alpha[..., 0].to(torch.uint8)


def _take_objects(batch: LayerBatch, layers: Sequence[Placed | SmoothedObject], window: Window) -> Tensor:
    """The objects in their window, their colours weighed by alpha: (n, height, width, 4)."""
    rows, columns = window
    share = batch.planes([layer.cut.alpha for layer in layers])[:, rows, columns].float()[..., None] / 255
    own = batch.colours_of([layer.cut.colours for layer in layers])[:, rows, columns].float()
    return batch.tables.torch.cat([own * share, share], 3)


def _sample(batch: LayerBatch, taken: Tensor, moves: Sequence[Move]) -> Tensor:
    """The moved objects, (n, height, width, 4), each from the corner of its target window."""
    torch, times = batch.tables.torch, moves[0].samples
    sizes = [(move.target[0].stop - move.target[0].start, move.target[1].stop - move.target[1].start) for move in moves]
    tall, wide = max(1, *(size[0] for size in sizes)), max(1, *(size[1] for size in sizes))
    maps = np.stack([np.linalg.inv(refine(move.matrix, times)) for move in moves])  # from the new picture to the old
    back = batch.tables.upload(maps.astype(np.float32))
    down = torch.arange(tall * times, device=taken.device, dtype=torch.float32)[None, :, None]
    across = torch.arange(wide * times, device=taken.device, dtype=torch.float32)[None, None, :]
    ends = [
        back[:, axis, 0, None, None] * across + back[:, axis, 1, None, None] * down + back[:, axis, 2, None, None]
        for axis in range(3)
    ]
    mode = "bicubic" if times == 1 else "bilinear"
    places = torch.stack([ends[0] / ends[2], ends[1] / ends[2]], 3)
    sampled = sample(batch.tables, taken, places, (mode, "zeros")).permute(0, 3, 1, 2)
    means = sampled if times == 1 else torch.nn.functional.avg_pool2d(sampled, times)
    return means.permute(0, 2, 3, 1)


_STEPS = 32  # of a pixel, to which OpenCV rounds places before version 5


@lru_cache(maxsize=1)
def _takes_steps() -> bool:
    """Whether the OpenCV that is installed rounds the places that it samples, tried on a ramp."""
    ramp = np.tile(np.arange(8, dtype=np.float32), (8, 1))
    moved = cv2.warpAffine(ramp, np.array([[1, 0, 0.4 / _STEPS], [0, 1, 0]]), (8, 8), flags=cv2.INTER_LINEAR)
    return bool(moved[4, 4] == ramp[4, 4])


def sample(tables: TorchTables, colours: Tensor, places: Tensor, how: tuple[str, str]) -> Tensor:
    """Colours, (n, height, width, channels), at places (n, rows, columns, 2) across and down, in pixels."""
    height, width = colours.shape[1:3]
    if _takes_steps():
        places = (places * _STEPS + 0.5).floor() / _STEPS
    # torch counts from -1, the middle of the first pixel, to 1, that of the last
    ends = places * tables.torch.tensor((2 / max(1, width - 1), 2 / max(1, height - 1)), device=colours.device) - 1
    mode, padding = how
    sampled = tables.torch.nn.functional.grid_sample(
        colours.permute(0, 3, 1, 2), ends, mode=mode, padding_mode=padding, align_corners=True
    )
    return sampled.permute(0, 2, 3, 1)


def _embed(batch: LayerBatch, moved: Tensor, moves: Sequence[Move], shape: tuple[int, int]) -> Tensor:
    """The moved objects at their places in pictures of a size, zero elsewhere."""
    torch = batch.tables.torch
    inside, taken = [], []
    for axis, length in enumerate(shape):
        ends = batch.tables.upload(np.array([(move.target[axis].start, move.target[axis].stop) for move in moves]))
        place = torch.arange(length, device=moved.device)[None]
        inside.append((place >= ends[:, :1]) & (place < ends[:, 1:]))
        taken.append((place - ends[:, :1]).clamp(0, moved.shape[1 + axis] - 1))
    number = torch.arange(len(moves), device=moved.device)[:, None, None]
    shown = inside[0][:, :, None] & inside[1][:, None, :]
    return moved[number, taken[0][:, :, None], taken[1][:, None, :]] * shown[..., None]


def round_levels(values: Tensor) -> Tensor:
    """Bytes, a half to the even level, clipped."""
    return values.round().clamp(0, 255).byte()


def group_key(layer: PictureLayer) -> tuple[object, ...]:
    """What layers of one batch have in common besides their kind and size."""
    if isinstance(layer, Smoothed | SmoothedObject):
        settings: tuple[object, ...] = (layer.kernel, layer.sigma)
        return (*settings, *_object_key(layer.cut)) if isinstance(layer, SmoothedObject) else settings
    if isinstance(layer, LayerPart):
        return layer.of.shape, _ends(layer.window)
    if isinstance(layer, Repainted):
        return (_ends(layer.cut.window),)
    if isinstance(layer, HueStepped):
        return layer.keep, np.size(layer.turn)
    if isinstance(layer, Placed):
        return *_object_key(layer.cut), layer.move.samples
    return ()


def _object_key(cut: ObjectLayer) -> tuple[object, ...]:
    """The size of an object's own photo, which may be another than its new picture's, and its window there."""
    return cut.alpha.shape, _ends(cut.window)


def _ends(window: Window) -> tuple[int, int, int, int]:
    rows, columns = window
    return rows.start, rows.stop, columns.start, columns.stop


OPERATIONS: dict[type[PictureLayer], Operation] = {
    Plane: _copy_planes,
    Flat: _fill,
    LayerPart: _cut_parts,
    Levelled: _change_levels,
    Grey: _make_grey,
    HueTurned: _turn_hues,
    HueStepped: _step_hues,
    Smoothed: _smooth,
    SmoothedObject: _smooth_objects,
    Noisy: _add_noise,
    Covered: _cover,
    FootShaded: _shade_feet,
    Pasted: _paste,
    Repainted: _repaint,
}
