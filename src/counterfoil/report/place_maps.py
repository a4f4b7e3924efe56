"""Maps of accuracy by the object's position in the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.report.chart_parts import Style
from counterfoil.report.words import format_number, pluralize
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.study.confidence import ModelPositionMap

_STRONGEST = 60.0  # percent of colour: text on it must be readable
_FULL_PLACE_HEAT = 40.0  # points from the mean that give a cell the strongest colour
_ACROSS = {3: ("left", "middle", "right")}
_DOWN = {3: ("top", "middle", "bottom")}


def _heat(difference: float, full: float) -> float:
    """Percent of colour; `full` is the difference with the strongest colour."""
    return round(min(_STRONGEST, _STRONGEST * abs(difference) / full), 1)


class PlaceCell(NamedTuple):
    """One part of the picture."""

    value: str  # empty where too few objects were there
    n: int
    heat: float
    is_worse: bool
    label: str


class PlaceGrid(NamedTuple):
    """The map of one model, rows from the top."""

    style: Style
    caption: str
    rows: list[list[PlaceCell]]


def build_place_grids(maps: Sequence[ModelPositionMap], kind: str, styles: Mapping[str, Style]) -> list[PlaceGrid]:
    """Build the maps of one kind that have a number for at least two cells."""
    enough = [row for row in maps if row.kind == kind and (row.positions.n >= FEWEST_PHOTOS).sum() > 1]
    return [_place_grid(row, styles[row.model]) for row in enough]


def _place_grid(row: ModelPositionMap, style: Style) -> PlaceGrid:
    accuracy, n = row.positions
    total = int(n.sum())
    mean = float((accuracy * n)[n > 0].sum() / total)
    cells = len(n)
    rows = [
        [_place_cell(float(accuracy[y, x]), int(n[y, x]), mean, _place_name(y, x, cells)) for x in range(cells)]
        for y in range(cells)
    ]
    return PlaceGrid(style, f"right on {format_number(mean)} % of {pluralize(total, 'picture')}", rows)


def _place_cell(accuracy: float, n: int, mean: float, name: str) -> PlaceCell:
    if n < FEWEST_PHOTOS or math.isnan(accuracy):
        return PlaceCell("", n, 0.0, False, f"{name}: too few, n = {n}")
    label = f"{name}: {format_number(accuracy)} %, n = {n}"
    return PlaceCell(format_number(accuracy, 0), n, _heat(accuracy - mean, _FULL_PLACE_HEAT), accuracy < mean, label)


def _place_name(row: int, column: int, cells: int) -> str:
    if cells in _ACROSS:
        return f"{_DOWN[cells][row]} {_ACROSS[cells][column]}"
    return f"row {row + 1} of {cells} from the top, column {column + 1} from the left"
