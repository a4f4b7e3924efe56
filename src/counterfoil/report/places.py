"""Accuracy by where the object stands in the picture; the template draws it as a small table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from counterfoil.analyse import FEWEST_PHOTOS, PositionMap
from counterfoil.report.wording import number, number_of

Kind: TypeAlias = Literal["moved", "unedited"]

_STRONGEST = 60.0  # percent of colour: text on it must stay readable
_FULL = 40.0  # points from the mean that give the strongest colour
_ACROSS = {3: ("left", "middle", "right")}
_DOWN = {3: ("top", "middle", "bottom")}


class PlaceMap(NamedTuple):
    """Where one model is right: objects that were moved there, or that stood there in the unedited photos."""

    model: str
    kind: Kind
    found: PositionMap


class PlaceCell(NamedTuple):
    """One part of the picture."""

    value: str  # empty where too few objects stood there
    n: int
    heat: float
    worse: bool
    told: str


class PlaceGrid(NamedTuple):
    """The map of one model, rows from the top."""

    model: str
    told: str
    rows: list[list[PlaceCell]]


def place_grids(maps: Sequence[PlaceMap], kind: str) -> list[PlaceGrid]:
    """The maps of one kind that tell places apart at all."""
    return [_grid(row) for row in maps if row.kind == kind and (row.found.n >= FEWEST_PHOTOS).sum() > 1]


def place_record(row: PlaceMap) -> dict[str, object]:
    """One map as plain JSON, rows from the top; null where no object stood."""
    accuracy = [
        [None if math.isnan(value) else round(value, 4) for value in line] for line in row.found.accuracy.tolist()
    ]
    return {"model": row.model, "pictures": row.kind, "accuracy": accuracy, "n": row.found.n.tolist()}


def _grid(row: PlaceMap) -> PlaceGrid:
    accuracy, n = row.found
    total = int(n.sum())
    mean = float((accuracy * n)[n > 0].sum() / total)
    cells = len(n)
    rows = [
        [_cell(float(accuracy[y, x]), int(n[y, x]), mean, _named(y, x, cells)) for x in range(cells)]
        for y in range(cells)
    ]
    return PlaceGrid(row.model, f"right on {number(mean)} % of {number_of(total, 'picture')}", rows)


def _cell(accuracy: float, n: int, mean: float, name: str) -> PlaceCell:
    if n < FEWEST_PHOTOS or math.isnan(accuracy):
        return PlaceCell("", n, 0.0, False, f"{name}: too few, n = {n}")
    heat = round(min(_STRONGEST, _STRONGEST * abs(accuracy - mean) / _FULL), 1)
    return PlaceCell(number(accuracy, 0), n, heat, accuracy < mean, f"{name}: {number(accuracy)} %, n = {n}")


def _named(row: int, column: int, cells: int) -> str:
    if cells in _ACROSS:
        return f"{_DOWN[cells][row]} {_ACROSS[cells][column]}"
    return f"row {row + 1} of {cells} from the top, column {column + 1} from the left"
