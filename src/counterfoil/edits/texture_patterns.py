"""Thirty drawn textures by name, as seamless tiles, and the functions that draw them."""

from __future__ import annotations

import colorsys
import difflib
from collections.abc import Callable, Mapping
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError

SIDE = 512  # pixels of a tile
TURN = 2 * np.pi
SHARPNESS = 0.012  # width of the step between dark and light, as a share of the tile

Floats = NDArray[np.float32]


def grid() -> tuple[Floats, Floats]:
    """Across and down over one tile, 0..1."""
    ends = (np.arange(SIDE, dtype=np.float32) + np.float32(0.5)) / np.float32(SIDE)
    across, down = np.meshgrid(ends, ends)
    return across, down


def step(distance: Floats) -> Floats:
    """A soft step: light where the distance, in tiles, is above 0, dark below."""
    return np.asarray(np.clip(distance / np.float32(SHARPNESS) + np.float32(0.5), 0, 1), np.float32)


def wave(phase: Floats) -> Floats:
    """A triangle between 0 and 1; it repeats with every whole number."""
    return np.asarray(np.abs(2 * (phase - np.floor(phase)) - 1), np.float32)


def stripes(phase: Floats, dark: float, count: int) -> Floats:
    """`count` stripes per tile, of which this share is dark."""
    return step((wave(phase * count) - np.float32(dark)) / (2 * count))


def noise(cells: int, seed: int, tall: int | None = None) -> Floats:
    """Random values on `cells` x `tall` lattice points with a smooth surface between them, 0..1."""
    rows = cells if tall is None else tall
    lattice = np.random.default_rng(seed).random((rows, cells)).astype(np.float32)
    rim = 2
    padded = np.pad(lattice, rim, mode="wrap")
    step_across, step_down = SIDE / cells, SIDE / rows
    size = (round(padded.shape[1] * step_across), round(padded.shape[0] * step_down))
    smooth = np.asarray(cv2.resize(padded, size, interpolation=cv2.INTER_CUBIC), np.float32)
    top, left = round(rim * step_down), round(rim * step_across)
    return np.clip(smooth[top : top + SIDE, left : left + SIDE], 0, 1)


def fractal(cells: int, seed: int, octaves: int = 5) -> Floats:
    """Noise on ever finer lattices, each half as strong, stretched to 0..1."""
    layers = [noise(cells << k, seed + k) * np.float32(0.5**k) for k in range(octaves)]
    return stretch(sum(layers[1:], layers[0]))


def stretch(plane: Floats) -> Floats:
    """The plane scaled to 0..1 between its first and last percentile."""
    low, high = np.percentile(plane, (1, 99))
    return np.asarray(np.clip((plane - low) / max(float(high - low), 1e-6), 0, 1), np.float32)


def scatter_points(cells: int, seed: int) -> NDArray[np.float64]:
    """One point at random in each cell of a lattice, (cells * cells, 2), across and down in 0..1."""
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(np.arange(cells * cells), cells)
    return (np.stack([columns, rows], axis=1) + 0.1 + 0.8 * rng.random((cells * cells, 2))) / cells


def find_nearest_points(points: NDArray[np.float64]) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Distance of every place to the nearest and the second nearest point, and which is the nearest."""
    across, down = grid()
    first = np.full(across.shape, 9, np.float32)
    second, which = first.copy(), np.zeros(across.shape, np.intp)
    for i, (x, y) in enumerate(points.astype(np.float32)):
        dx, dy = np.abs(across - x), np.abs(down - y)
        distance = np.hypot(np.minimum(dx, 1 - dx), np.minimum(dy, 1 - dy))
        nearer = distance < first
        second = np.where(nearer, first, np.minimum(second, distance))
        first, which = np.where(nearer, distance, first), np.where(nearer, i, which)
    return first, second, which


def _marbled() -> Floats:
    """Veins bent by clouds."""
    across, down = grid()
    phase = across * 3 + down * 2 + 1.8 * fractal(3, 11)
    return np.asarray((1 - wave(phase.astype(np.float32)) ** 3), np.float32)


def _swirly() -> Floats:
    """Stripes bent by noise."""
    across, down = grid()
    return stripes((across + 0.5 * noise(4, 21) + 0.25 * np.sin(TURN * down)).astype(np.float32), 0.5, 6)


def _cracked() -> Floats:
    """Gaps between the cells of scattered points."""
    first, second, _ = find_nearest_points(scatter_points(6, 71) + 0.01)
    return step(second - first - np.float32(0.014))


def _crystalline() -> Floats:
    """The cells of scattered points, each in its own shade."""
    first, second, which = find_nearest_points(scatter_points(7, 81))
    shades = np.random.default_rng(82).random(49).astype(np.float32)
    return np.asarray(np.where(second - first < 0.006, np.float32(1), shades[which] * np.float32(0.8)), np.float32)


def _bubbly() -> Floats:
    """Rings about scattered points."""
    first, _, _ = find_nearest_points(scatter_points(8, 91))
    return np.asarray(np.clip(1.2 - np.abs(first - 0.045) * 40, 0.1, 1), np.float32)


def _honeycombed() -> Floats:
    """Walls between hexagons."""
    rows, columns = np.divmod(np.arange(8 * 8), 8)
    points = np.stack([(columns + 0.5 * (rows % 2)) / 8 + 0.03, (rows + 0.5) / 8], axis=1)
    first, second, _ = find_nearest_points(points % 1)
    return step(second - first - np.float32(0.022))


def _freckled() -> Floats:
    """Dots of many sizes."""
    first, _, which = find_nearest_points(scatter_points(11, 101))
    radius = np.random.default_rng(102).uniform(0.004, 0.022, 121).astype(np.float32)
    return step(first - radius[which])


def _banded() -> Floats:
    down = grid()[1]
    return np.asarray((stripes(down, 0.45, 4) * np.float32(0.6) + stripes(down, 0.8, 12) * np.float32(0.4)), np.float32)


def _pleated() -> Floats:
    across = grid()[0] * 7
    return np.asarray((across - np.floor(across)) ** np.float32(0.7), np.float32)


def _grid() -> Floats:
    across, down = grid()
    return np.minimum(stripes(across, 0.2, 8), stripes(down, 0.2, 8))


def _crosshatched() -> Floats:
    across, down = grid()
    return np.minimum(stripes(across + down, 0.22, 10), stripes(across - down, 0.22, 10))


def _chequered() -> Floats:
    across, down = grid()
    product = np.sin(TURN * 4 * across) * np.sin(TURN * 4 * down)
    return step((product * np.float32(1 / (TURN * 4))).astype(np.float32))


def _zigzagged() -> Floats:
    across, down = grid()
    return stripes((down + wave(across * 6) / 12).astype(np.float32), 0.5, 7)


def _dots(count: int, radius: float) -> Floats:
    """The distance to the rims of round dots in rows, every other row shifted by half."""
    across, down = grid()
    row = np.floor(down * count)
    shift = np.where(row % 2 == 1, np.float32(0.5), np.float32(0))
    x, y = (across * count + shift) % 1 - 0.5, (down * count) % 1 - 0.5
    return np.asarray(((np.hypot(x, y) - radius) / count), np.float32)


def _studded() -> Floats:
    depth = np.clip(-_dots(8, 0.36) * 8 / 0.36, 0, 1)
    return np.asarray(np.where(depth > 0, 0.45 + 0.55 * np.sqrt(depth), 0.25), np.float32)


def _waffled() -> Floats:
    across, down = grid()
    return np.asarray(np.clip(1.15 - 1.3 * np.minimum(wave(across * 8), wave(down * 8)), 0, 1), np.float32)


def _scaly() -> Floats:
    across, down = grid()
    rows, best = 8, np.zeros((SIDE, SIDE), np.float32)
    for lower in (1, 0):  # the scale of the row above lies over that of the row below
        row = np.floor(down * rows) + lower
        x = (across * rows + np.where(row % 2 == 1, 0.5, 0)) % 1 - 0.5
        distance = np.hypot(x, (down * rows - row) + 0.35)
        best = np.where(distance < 0.75, np.clip(1 - distance, 0.15, 1), best).astype(np.float32)
    return stretch(best)


def _woven() -> Floats:
    across, down = grid()
    x, y = across * 14, down * 14
    over = (np.floor(x) + np.floor(y)) % 2 == 0
    thread = np.where(over, np.sin(np.pi * (y % 1)), np.sin(np.pi * (x % 1)))
    arch = np.where(over, np.sin(np.pi * (x % 1)), np.sin(np.pi * (y % 1)))
    return np.asarray((np.sqrt(np.abs(thread)) * (0.55 + 0.45 * np.abs(arch))), np.float32)


def _knitted() -> Floats:
    across, down = grid()
    x, y = across * 12, down * 16
    slant = np.abs((x % 1) - 0.5) * 1.6
    loop = np.abs(np.sin(np.pi * (y + slant)))
    return np.asarray((np.sqrt(loop) * (0.5 + 0.5 * np.sqrt(np.abs(np.sin(TURN * x))))), np.float32)


def _meshed() -> Floats:
    across, down = grid()
    bent = np.sin(TURN * 9 * down) / 40
    return np.minimum(
        stripes((across + bent).astype(np.float32), 0.3, 9), stripes((across - bent).astype(np.float32), 0.3, 9)
    )


def _spiralled() -> Floats:
    across, down = grid()
    x, y = (across * 2) % 1 - 0.5, (down * 2) % 1 - 0.5
    turns = np.arctan2(y, x) / TURN + np.hypot(x, y) * 6
    return step(((wave(turns.astype(np.float32)) - 0.5) / 24).astype(np.float32))


PATTERNS: Mapping[str, Callable[[], Floats]] = {
    "banded": _banded,
    "blotchy": lambda: step(((fractal(5, 31, 3) - 0.5) / 8).astype(np.float32)),
    "bubbly": _bubbly,
    "chequered": _chequered,
    "cracked": _cracked,
    "crosshatched": _crosshatched,
    "crystalline": _crystalline,
    "dotted": lambda: step(_dots(14, 0.28)),
    "freckled": _freckled,
    "grid": _grid,
    "grooved": lambda: np.asarray(np.sqrt(wave(grid()[0] * 12)), np.float32),
    "honeycombed": _honeycombed,
    "knitted": _knitted,
    "lined": lambda: stripes(grid()[1], 0.18, 14),
    "marbled": _marbled,
    "meshed": _meshed,
    "perforated": lambda: step(_dots(10, 0.3)),
    "pleated": _pleated,
    "polka-dotted": lambda: 1 - step(_dots(6, 0.3)),
    "scaly": _scaly,
    "spiralled": _spiralled,
    "stained": lambda: np.asarray(np.clip(1.3 - 1.2 * fractal(3, 41, 4) ** 2, 0, 1), np.float32),
    "striped": lambda: stripes(grid()[0], 0.5, 7),
    "studded": _studded,
    "swirly": _swirly,
    "veined": lambda: step((np.abs(2 * fractal(3, 61, 5) - 1) / 6 - 0.012).astype(np.float32)),
    "waffled": _waffled,
    "woven": _woven,
    "wrinkled": lambda: np.asarray(np.clip(np.sqrt(np.abs(2 * fractal(4, 51, 4) - 1)) * 1.1, 0, 1), np.float32),
    "zigzagged": _zigzagged,
}


@lru_cache(maxsize=len(PATTERNS))
def draw_pattern(name: str) -> Floats:
    """The seamless tile of this name, (512, 512), read-only."""
    tile = np.ascontiguousarray(PATTERNS[name](), np.float32)
    tile.flags.writeable = False
    return tile


def check_pattern(name: str) -> None:
    """Raises `UserError` for an unknown pattern."""
    if name not in PATTERNS:
        near = difflib.get_close_matches(name, PATTERNS, n=3, cutoff=0.4) or list(PATTERNS)
        raise UserError(f"texture: expected one of the drawn patterns, got {name!r}; did you mean {' or '.join(near)}?")


def draw_colours(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A dark and a light colour of different hues, in levels 0..255."""
    hue, apart = rng.random(), rng.uniform(0.2, 0.5)
    dark = colorsys.hsv_to_rgb(hue, rng.uniform(0.5, 0.9), rng.uniform(0.25, 0.5))
    light = colorsys.hsv_to_rgb((hue + apart) % 1, rng.uniform(0.15, 0.6), rng.uniform(0.85, 1))
    return np.array(dark, np.float32) * np.float32(255), np.array(light, np.float32) * np.float32(255)
