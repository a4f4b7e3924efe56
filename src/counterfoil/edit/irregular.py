"""Drawn textures without a regular repeat: clouds, veins, cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.tiles import fractal, grid, nearest_points, noise, scattered, step, stripes, wave

Floats = NDArray[np.float32]
TURN = 2 * np.pi


def marbled() -> Floats:
    """Veins bent by clouds."""
    across, down = grid()
    phase = across * 3 + down * 2 + 1.8 * fractal(3, 11)
    return np.asarray((1 - wave(phase.astype(np.float32)) ** 3), np.float32)


def swirly() -> Floats:
    """Stripes bent by noise."""
    across, down = grid()
    return stripes((across + 0.5 * noise(4, 21) + 0.25 * np.sin(TURN * down)).astype(np.float32), 0.5, 6)


def blotchy() -> Floats:
    """Large flecks with ragged rims."""
    return step(((fractal(5, 31, 3) - 0.5) / 8).astype(np.float32))


def stained() -> Floats:
    """Soft dark clouds."""
    return np.asarray(np.clip(1.3 - 1.2 * fractal(3, 41, 4) ** 2, 0, 1), np.float32)


def wrinkled() -> Floats:
    """Ridges where noise changes sign."""
    ridges = np.abs(2 * fractal(4, 51, 4) - 1)
    return np.asarray(np.clip(np.sqrt(ridges) * 1.1, 0, 1), np.float32)


def veined() -> Floats:
    """Thin branching lines."""
    ridges = np.abs(2 * fractal(3, 61, 5) - 1)
    return step((ridges / 6 - 0.012).astype(np.float32))


def cracked() -> Floats:
    """Gaps between the cells of scattered points."""
    first, second, _ = nearest_points(scattered(6, 71) + 0.01)
    return step(second - first - np.float32(0.014))


def crystalline() -> Floats:
    """Those cells in shades of their own."""
    first, second, which = nearest_points(scattered(7, 81))
    shades = np.random.default_rng(82).random(49).astype(np.float32)
    return np.asarray(np.where(second - first < 0.006, np.float32(1), shades[which] * np.float32(0.8)), np.float32)


def bubbly() -> Floats:
    """Rings about scattered points."""
    first, _, _ = nearest_points(scattered(8, 91))
    return np.asarray(np.clip(1.2 - np.abs(first - 0.045) * 40, 0.1, 1), np.float32)


def honeycombed() -> Floats:
    """Walls between hexagons."""
    rows, columns = np.divmod(np.arange(8 * 8), 8)
    points = np.stack([(columns + 0.5 * (rows % 2)) / 8 + 0.03, (rows + 0.5) / 8], axis=1)
    first, second, _ = nearest_points(points % 1)
    return step(second - first - np.float32(0.022))


def freckled() -> Floats:
    """Dots of many sizes."""
    first, _, which = nearest_points(scattered(11, 101))
    radius = np.random.default_rng(102).uniform(0.004, 0.022, 121).astype(np.float32)
    return step(first - radius[which])
