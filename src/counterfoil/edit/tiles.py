"""What drawn textures are made of: steps, waves, noise and scattered points, without a seam where tiles meet."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE = 512  # pixels of a tile
SHARPNESS = 0.012  # width of the step between dark and light, as a share of the tile

Floats = NDArray[np.float32]


def grid() -> tuple[Floats, Floats]:
    """Across and down over one tile, 0..1."""
    ends = (np.arange(SIDE, dtype=np.float32) + np.float32(0.5)) / np.float32(SIDE)
    across, down = np.meshgrid(ends, ends)
    return across, down


def step(distance: Floats) -> Floats:
    """Light where the distance, in tiles, is above 0, dark below, a soft step between."""
    return np.asarray(np.clip(distance / np.float32(SHARPNESS) + np.float32(0.5), 0, 1), np.float32)


def wave(phase: Floats) -> Floats:
    """A triangle between 0 and 1; it repeats with every whole number."""
    return np.asarray(np.abs(2 * (phase - np.floor(phase)) - 1), np.float32)


def stripes(phase: Floats, dark: float, count: int) -> Floats:
    """`count` stripes a tile, this share of each dark."""
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
    return stretched(sum(layers[1:], layers[0]))


def stretched(plane: Floats) -> Floats:
    """The plane scaled to 0..1 between its outermost percents."""
    low, high = np.percentile(plane, (1, 99))
    return np.asarray(np.clip((plane - low) / max(float(high - low), 1e-6), 0, 1), np.float32)


def scattered(cells: int, seed: int) -> NDArray[np.float64]:
    """One point at random in each cell of a lattice, (cells * cells, 2), across and down in 0..1."""
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(np.arange(cells * cells), cells)
    return (np.stack([columns, rows], axis=1) + 0.1 + 0.8 * rng.random((cells * cells, 2))) / cells


def nearest_points(points: NDArray[np.float64]) -> tuple[Floats, Floats, NDArray[np.intp]]:
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
