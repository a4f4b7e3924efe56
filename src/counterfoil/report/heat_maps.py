"""Heat maps: drops by attribute and model, and accuracy by the object's position in the picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from counterfoil.report.chart_parts import Style, assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import excludes_zero
from counterfoil.report.words import capitalize_first, format_interval, format_number, name_attribute, pluralize
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.confidence import ModelPositionMap
from counterfoil.types import Drop

_STRONGEST = 60.0  # percent of colour: text on it must be readable
_LEAST_FULL_HEAT = 10.0  # points for the full colour, at least: tiny drops must not look strong
_FULL_PLACE_HEAT = 40.0  # points from the mean that give a cell the strongest colour
_ACROSS = {3: ("left", "middle", "right")}
_DOWN = {3: ("top", "middle", "bottom")}


class Cell(NamedTuple):
    """The drop of one model for one attribute."""

    style: Style
    drop: float
    interval: str
    letters: str  # of the tied group; models that share one do not differ
    significant: bool
    heat: float  # percent of colour

    @property
    def is_worse(self) -> bool:
        """Whether accuracy falls."""
        return self.drop > 0


class HeatMap(NamedTuple):
    """One row per attribute, one column per model."""

    styles: list[Style]
    rows: list[tuple[str, list[Cell | None]]]
    lettered: bool


def build_heat_map(content: ReportContent) -> HeatMap | None:
    """Build the map with all edits and levels of an attribute together; None with one model or nothing to show."""
    rows = [row for row in content.attribute_drops if row.attribute != "presence" and row.n >= FEWEST_PHOTOS]
    styles = list(assign_styles([row.model for row in content.drops]).values())
    if len(styles) < 2 or not rows:
        return None
    full = max(_LEAST_FULL_HEAT, *(abs(row.drop) for row in rows))
    by_cell = {(row.attribute, row.model): row for row in rows}
    lines = [
        (
            capitalize_first(name_attribute(name)),
            [_cell(by_cell.get((name, style.model)), style, full, content) for style in styles],
        )
        for name in dict.fromkeys(row.attribute for row in rows)
    ]
    if content.means:
        means = [_mean_cell(content.means.get(style.model), style, full) for style in styles]
        lines.append(("Mean of the edits", means))
    return HeatMap(styles, lines, any(content.letters.values()))


def _cell(row: Drop | None, style: Style, full: float, content: ReportContent) -> Cell | None:
    if row is None or math.isnan(row.drop):
        return None
    letters = content.letters.get((row.attribute, row.model), "")
    return Cell(style, row.drop, format_interval(row), letters, is_significant(row), _heat(row.drop, full))


def _mean_cell(row: Estimate | None, style: Style, full: float) -> Cell | None:
    """ImageNet-E's summary: every edit and level counts once, control and diagnostics left out."""
    if row is None or row.n < FEWEST_PHOTOS or math.isnan(row.value):
        return None
    return Cell(style, row.value, format_interval(row), "", excludes_zero(row), _heat(row.value, full))


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

    model: str
    caption: str
    rows: list[list[PlaceCell]]


def build_place_grids(maps: Sequence[ModelPositionMap], kind: str) -> list[PlaceGrid]:
    """Build the maps of one kind that have a number for at least two cells."""
    return [_place_grid(row) for row in maps if row.kind == kind and (row.positions.n >= FEWEST_PHOTOS).sum() > 1]


def _place_grid(row: ModelPositionMap) -> PlaceGrid:
    accuracy, n = row.positions
    total = int(n.sum())
    mean = float((accuracy * n)[n > 0].sum() / total)
    cells = len(n)
    rows = [
        [_place_cell(float(accuracy[y, x]), int(n[y, x]), mean, _place_name(y, x, cells)) for x in range(cells)]
        for y in range(cells)
    ]
    return PlaceGrid(row.model, f"right on {format_number(mean)} % of {pluralize(total, 'picture')}", rows)


def _place_cell(accuracy: float, n: int, mean: float, name: str) -> PlaceCell:
    if n < FEWEST_PHOTOS or math.isnan(accuracy):
        return PlaceCell("", n, 0.0, False, f"{name}: too few, n = {n}")
    label = f"{name}: {format_number(accuracy)} %, n = {n}"
    return PlaceCell(format_number(accuracy, 0), n, _heat(accuracy - mean, _FULL_PLACE_HEAT), accuracy < mean, label)


def _place_name(row: int, column: int, cells: int) -> str:
    if cells in _ACROSS:
        return f"{_DOWN[cells][row]} {_ACROSS[cells][column]}"
    return f"row {row + 1} of {cells} from the top, column {column + 1} from the left"
