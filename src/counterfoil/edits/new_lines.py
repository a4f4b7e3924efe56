"""Lines that a fill invents: a rod, a wire, the edge of something, where the rest of the photo shows no such lines."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE = 256  # shorter side at which lines are looked for
BLUR = 0.8  # pixels, before that
LENGTH, WIDTH, ASIDE = 17, 3, 3  # pixels: of a piece of a line, and how far beside its middle its surroundings begin
TURNS = 12  # directions in which lines are looked for
DEEP = 4  # pixels inside the hole from which on a line is the fill's own and not the rim
CLEAR_OF_HOLE = 6  # pixels outside, beyond which lines are the photo's
NEAR = 0.3  # of the shorter side: lines so near the hole count as its surroundings
CLEAREST = 99.7  # percentile of the hole's places that stands for its clearest line: less of them is a speck
USUAL = 99.0  # percentile of the photo's places that stands for its clear lines
FAINTEST = 2.0  # levels of L*: fainter lines are not seen
FEWEST = 50  # pixels below which nothing is said

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class _Small(NamedTuple):
    """A small copy of a filled picture."""

    light: Floats
    hole: Flags
    ignore: Flags


def measure_new_lines(image: Bytes, hole: Flags, ignore: Flags | None = None) -> float:
    """The clearest line inside the hole, relative to the clear lines of the rest of the photo.

    About 1 where the fill shows what the photo shows elsewhere; 0 where hole or surroundings are too small to tell.
    """
    small = _reduce(image, hole, ignore)
    clearness = _find_lines(small.light)
    deep = _distance_from(~small.hole) > DEEP
    away = _distance_from(small.hole)
    outside = (away > CLEAR_OF_HOLE) & ~small.ignore
    if min(np.count_nonzero(deep), np.count_nonzero(outside)) < FEWEST:
        return 0.0
    usual = [FAINTEST, float(np.percentile(clearness[outside], USUAL))]
    near = outside & (away < NEAR * min(small.hole.shape))
    if np.count_nonzero(near) >= FEWEST:
        usual.append(float(np.percentile(clearness[near], USUAL)))
    return float(np.percentile(clearness[deep], CLEAREST)) / max(usual)


def _reduce(image: Bytes, hole: Flags, ignore: Flags | None) -> _Small:
    height, width = hole.shape
    scale = min(1.0, SIDE / min(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.GaussianBlur(cv2.resize(image, size, interpolation=cv2.INTER_AREA), (0, 0), BLUR)
    light = cv2.cvtColor(np.asarray(small, np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)[..., 0]
    flags = [
        np.asarray(cv2.resize(plane.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)) > 0
        for plane in (hole, np.zeros_like(hole) if ignore is None else ignore)
    ]
    return _Small(np.ascontiguousarray(light), flags[0], flags[1])


def _find_lines(light: Floats) -> Floats:
    """By how much each place lies on a line that is lighter, or darker, than both its sides; in levels of L*."""
    clearest = np.zeros_like(light)
    for angle in np.arange(TURNS) * (np.pi / TURNS):
        means = np.asarray(
            cv2.filter2D(light, -1, _draw_line(float(angle)), borderType=cv2.BORDER_REPLICATE), np.float32
        )
        step = (-np.sin(angle) * ASIDE, np.cos(angle) * ASIDE)  # right and down, across the line
        one, other = (means - _shift(means, (side * step[0], side * step[1])) for side in (-1, 1))
        line = np.where(one * other > 0, np.minimum(np.abs(one), np.abs(other)), np.float32(0))
        np.maximum(clearest, line, out=clearest)
    return clearest


def _draw_line(angle: float) -> Floats:
    """The mean along a piece of a line in this direction."""
    reach = LENGTH // 2 + 1
    down, right = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    along = right * np.cos(angle) + down * np.sin(angle)
    across = down * np.cos(angle) - right * np.sin(angle)
    piece = (np.abs(along) <= LENGTH / 2) & (np.abs(across) <= WIDTH / 2)
    return np.asarray(piece / np.count_nonzero(piece), np.float32)


def _shift(plane: Floats, step: tuple[float, float]) -> Floats:
    """The values of a plane a step further right and down."""
    matrix = np.array([[1, 0, step[0]], [0, 1, step[1]]], np.float64)
    method = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    moved = cv2.warpAffine(plane, matrix, plane.shape[::-1], flags=method, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(moved, np.float32)


def _distance_from(flags: Flags) -> Floats:
    return np.asarray(cv2.distanceTransform((~flags).astype(np.uint8), cv2.DIST_L2, 5), np.float32)
