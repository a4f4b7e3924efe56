"""Textures that are drawn, not photographed: tiles from 0 (dark) to 1 (light), named as ImageNet-D names them."""

from __future__ import annotations

import colorsys
import difflib
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from counterfoil.edit import irregular
from counterfoil.edit.tiles import SIDE, grid, step, stretched, stripes, wave
from counterfoil.errors import UserError

Floats = NDArray[np.float32]
TURN = 2 * np.pi


def _striped() -> Floats:
    return stripes(grid()[0], 0.5, 7)


def _banded() -> Floats:
    down = grid()[1]
    return np.asarray((stripes(down, 0.45, 4) * np.float32(0.6) + stripes(down, 0.8, 12) * np.float32(0.4)), np.float32)


def _lined() -> Floats:
    return stripes(grid()[1], 0.18, 14)


def _grooved() -> Floats:
    return np.asarray(np.sqrt(wave(grid()[0] * 12)), np.float32)


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
    """Rows of round dots, every other row shifted by half: the distance to the dots' rims."""
    across, down = grid()
    row = np.floor(down * count)
    shift = np.where(row % 2 == 1, np.float32(0.5), np.float32(0))
    x, y = (across * count + shift) % 1 - 0.5, (down * count) % 1 - 0.5
    return np.asarray(((np.hypot(x, y) - radius) / count), np.float32)


def _dotted() -> Floats:
    return step(_dots(14, 0.28))


def _polka_dotted() -> Floats:
    return 1 - step(_dots(6, 0.3))


def _perforated() -> Floats:
    return step(_dots(10, 0.3))


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
    return stretched(best)


def _woven(count: int = 14) -> Floats:
    across, down = grid()
    x, y = across * count, down * count
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
    "banded": _banded, "blotchy": irregular.blotchy, "bubbly": irregular.bubbly, "chequered": _chequered,
    "cracked": irregular.cracked, "crosshatched": _crosshatched, "crystalline": irregular.crystalline,
    "dotted": _dotted, "freckled": irregular.freckled, "grid": _grid, "grooved": _grooved,
    "honeycombed": irregular.honeycombed, "knitted": _knitted, "lined": _lined, "marbled": irregular.marbled,
    "meshed": _meshed, "perforated": _perforated, "pleated": _pleated, "polka-dotted": _polka_dotted,
    "scaly": _scaly, "spiralled": _spiralled, "stained": irregular.stained, "striped": _striped,
    "studded": _studded, "swirly": irregular.swirly, "veined": irregular.veined, "waffled": _waffled,
    "woven": _woven, "wrinkled": irregular.wrinkled, "zigzagged": _zigzagged,
}  # fmt: skip


@lru_cache(maxsize=len(PATTERNS))
def pattern(name: str) -> Floats:
    """The tile of this name, (512, 512), read-only; its edges fit together."""
    tile = np.ascontiguousarray(PATTERNS[name](), np.float32)
    tile.flags.writeable = False
    return tile


def check_pattern(name: str) -> None:
    """Refuse a name that no pattern has."""
    if name not in PATTERNS:
        near = difflib.get_close_matches(name, PATTERNS, n=3, cutoff=0.4) or list(PATTERNS)
        raise UserError(f"texture: expected one of the drawn patterns, got {name!r}; did you mean {' or '.join(near)}?")


def drawn_colours(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A dark and a light colour of different hues, in levels 0..255."""
    hue, apart = rng.random(), rng.uniform(0.2, 0.5)
    dark = colorsys.hsv_to_rgb(hue, rng.uniform(0.5, 0.9), rng.uniform(0.25, 0.5))
    light = colorsys.hsv_to_rgb((hue + apart) % 1, rng.uniform(0.15, 0.6), rng.uniform(0.85, 1))
    return np.array(dark, np.float32) * np.float32(255), np.array(light, np.float32) * np.float32(255)
