"""Objects that the photo's border cuts: which borders do, and maps that keep the cut at its border.

Shrunk, moved or turned freely, such an object shows the flat edge where the photo ended. It can shrink towards its
border or corner, move along its border, and turn as far as the cut stays outside; else the edit is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import Matrix, place_alpha
from counterfoil.edits.geometry import object_box
from counterfoil.errors import Unusable
from counterfoil.object_mask import hard_object

Side: TypeAlias = Literal["top", "bottom", "left", "right"]
SIDES: tuple[Side, ...] = ("top", "bottom", "left", "right")
SHORTEST_CUT = 0.02  # of a border's length: a toe that touches the border is not cut by it
LINE = 0.01  # of the shorter side: an object reaches further into the picture than a line along its border
VISIBLE = 0.75  # share of the object that must stay in the picture when it turns about its border

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


def find_cut_sides(hard: Flags) -> tuple[Side, ...]:
    """The borders along which the object is cut; a thin line along a border, as trimaps have it, is no object."""
    depth = min(*(length - 1 for length in hard.shape), max(2, round(LINE * min(hard.shape))))
    cut = {side: _edge(hard, side) & _edge(hard, side, depth) for side in SIDES}
    return tuple(side for side in SIDES if cut[side].sum() > max(2, SHORTEST_CUT * len(cut[side])))


def _edge(hard: Flags, side: Side, depth: int = 0) -> NDArray[np.bool_]:
    """The pixels along a border, or along a line so many pixels inside of it."""
    lines = {"top": hard[depth], "bottom": hard[-1 - depth], "left": hard[:, depth], "right": hard[:, -1 - depth]}
    return np.asarray(lines[side])


def name_sides(sides: Sequence[Side]) -> str:
    """The borders in words: "bottom and left"."""
    return " and ".join(sides)


def refuse_cut(sides: Sequence[Side], doing: str) -> None:
    """Raises `Unusable` where the object is cut by these borders and the edit would show the cut."""
    if sides:
        raise Unusable(f"the photo's border cuts the object ({name_sides(sides)}): {doing} would show the cut")


def anchor_point(alpha: Bytes, sides: Sequence[Side], at_foot: bool = False) -> tuple[float, float]:
    """The point about which the object shrinks: on the border or in the corner that cuts it.

    Along the border it is the middle of the object's box, or its foot. Shrunk towards the upper border an object would
    hang in the air: that is refused.
    """
    if "top" in sides or {"left", "right"} <= set(sides):
        refuse_cut(sides, "shrinking it")
    height, width = alpha.shape
    box = object_box(alpha)
    across, down = box.centre
    down = float(box.top + box.height - 1) if at_foot else down
    places: dict[Side, float] = {"left": -0.5, "right": width - 0.5, "top": -0.5, "bottom": height - 0.5}
    for side in sides:
        if side in ("left", "right"):
            across = places[side]
        else:
            down = places[side]
    return across, down


def turn_about_border(alpha: Bytes, first: Matrix, angle: float, side: Side) -> Matrix:
    """The object after `first`, which keeps its cut at the border, turned and sunk until the cut is outside.

    Raises `Unusable` where too little of the object would stay in the picture.
    """
    placed = place_alpha(alpha, first)
    edge = np.flatnonzero(_edge(hard_object(placed), side))
    if not len(edge):
        raise Unusable("the object leaves its border")
    height, width = alpha.shape
    middle, half = (edge[0] + edge[-1]) / 2, (edge[-1] - edge[0] + 1) / 2
    upright = side in ("top", "bottom")
    border = {"top": -0.5, "bottom": height - 0.5, "left": -0.5, "right": width - 0.5}[side]
    centre = (middle, border) if upright else (border, middle)
    sunk = half * abs(math.sin(math.radians(angle))) * (1 if side in ("bottom", "right") else -1)
    matrix = _turn(first, centre, angle)
    matrix[1 if upright else 0, 2] += sunk
    left = np.count_nonzero(hard_object(place_alpha(alpha, matrix)))
    if left < VISIBLE * np.count_nonzero(hard_object(placed)):
        refuse_cut([side], f"turning it by {angle:g} degrees")
    return matrix


def _turn(first: Matrix, centre: tuple[float, float], angle: float) -> Matrix:
    """`first`, then a turn about a point, anticlockwise in degrees."""
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    x, y = centre
    turn = np.array([[cosine, sine, x - cosine * x - sine * y], [-sine, cosine, y + sine * x - cosine * y]], np.float64)
    return np.hstack([turn[:, :2] @ first[:, :2], turn[:, :2] @ first[:, 2:] + turn[:, 2:]])
