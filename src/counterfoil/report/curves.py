"""Reliability panels and confidence rows; dose curves; accuracy by position in the picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from counterfoil.report.charts import Axis, Style, Tick, logarithmic_axis, snug_axis, straight_axis, styles
from counterfoil.report.words import attribute_name, interval, number, number_of
from counterfoil.statistics.calibration import ConfidenceChange, ReliabilityPoint
from counterfoil.statistics.dose import DosePoint, dose_curve
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.confidence import Confidences, ModelPositionMap
from counterfoil.types import Drop

SIDE = 180  # pixels of a reliability chart
_PARTS = ("confidence", "accuracy", "calibration_error")  # as `Confidence` has them


class ReliabilityMark(NamedTuple):
    """Answers of like confidence, in pixels from the top left."""

    x: float
    y: float
    told: str


class ReliabilityPanel(NamedTuple):
    """The chart of one model with what it shows in words."""

    style: Style
    before: list[ReliabilityMark]
    after: list[ReliabilityMark]
    told: list[str]


class ConfidenceRow(NamedTuple):
    """One attribute of one model, as the table has it."""

    model: str
    attribute: str
    change: ConfidenceChange
    margin: Estimate | None


def reliability_panels(confidences: Confidences, looks: Mapping[str, Style], edited: str) -> list[ReliabilityPanel]:
    """One small chart per model; `edited` is what the pictures are called that are no unedited photos."""
    return [
        ReliabilityPanel(
            looks[curve.model],
            [_mark(point, "unedited") for point in curve.before],
            [_mark(point, edited) for point in curve.after],
            [_told(name, points) for name, points in (("unedited", curve.before), (edited, curve.after)) if points],
        )
        for curve in confidences.curves
    ]


def confidence_rows(confidences: Confidences) -> list[ConfidenceRow]:
    """The attributes that rest on enough photos, with their margins."""
    margins = {(row.model, row.condition.attribute): row.loss for row in confidences.margins}
    return [
        ConfidenceRow(row.model, attribute_name(row.attribute), row, margins.get((row.model, row.attribute)))
        for row in confidences.changes
        if row.excess_rise.n >= FEWEST_PHOTOS
    ]


def confidence_record(row: ConfidenceRow) -> dict[str, object]:
    """One row as plain values, not rounded."""
    before, after = row.change.before, row.change.after
    estimates = {"excess_rise": row.change.excess_rise, "error_rise": row.change.error_rise, "margin_loss": row.margin}
    return {
        "model": row.model,
        "attribute": row.change.attribute,
        "n": row.change.excess_rise.n,
        **{f"{name}_before": value for name, value in zip(_PARTS, before, strict=True)},
        **{f"{name}_after": value for name, value in zip(_PARTS, after, strict=True)},
        **{f"{name}{part}": value for name, found in estimates.items() for part, value in _flat(found)},
    }


def _flat(row: Estimate | None) -> Iterator[tuple[str, float | None]]:
    yield "", row.value if row else None
    yield "_low", row.ci_low if row else None
    yield "_high", row.ci_high if row else None


def bounded(row: Estimate) -> str:
    """A number with its interval."""
    return f"{number(row.value)} {interval(row)}"


def clear(row: Estimate) -> bool:
    """Whether an interval leaves out zero."""
    return row.ci_low > 0 or row.ci_high < 0


def _mark(point: ReliabilityPoint, name: str) -> ReliabilityMark:
    told = f"{name}: says {number(point.said)} %, right on {number(point.right)} % of {point.n} answers"
    return ReliabilityMark(round(SIDE * point.said / 100, 1), round(SIDE * (1 - point.right / 100), 1), told)


def _told(name: str, points: Sequence[ReliabilityPoint]) -> str:
    n = sum(point.n for point in points)
    said, right = (sum(getattr(point, part) * point.n for point in points) / n for part in ("said", "right"))
    excess = said - right
    way = f"{number(abs(excess))} points too {'sure' if excess >= 0 else 'modest'}"
    return f"{name.capitalize()}: says {number(said)} %, right on {number(right)} %: {way}."


_HEIGHT = 300  # pixels
_DODGE = 7  # pixels between the whiskers of two models at one dose


class DoseMark(NamedTuple):
    """One point of a dose curve; x in percent of the width, y in pixels."""

    x: float
    y: float
    low: float
    high: float
    filled: bool
    told: str


class DoseLine(NamedTuple):
    """The dose curve of one model."""

    style: Style
    shift: float  # pixels to the right, so that whiskers of several models stand side by side
    original: float  # pixels from the top: accuracy on the unedited photos
    marks: list[DoseMark]


class DoseChart(NamedTuple):
    """Accuracy against the strength of an edit: for size the object's share of the picture, else the level."""

    edit: str
    unit: str
    height: int
    x_ticks: list[Tick]
    y_ticks: list[Tick]  # `at` in pixels from the top
    lines: list[DoseLine]


def dose_charts(drops: Sequence[Drop]) -> list[DoseChart]:
    """The dose curve of every edit that has two levels with a number or more, size first."""
    edits = sorted(dict.fromkeys(row.edit for row in drops), key=lambda edit: edit != "size")
    points = [(edit, [point for point in dose_curve(drops, edit) if _drawable(point, edit)]) for edit in edits]
    looks = styles([row.model for row in drops])
    return [_chart(edit, members, looks) for edit, members in points if len({_dose(p, edit) for p in members}) > 1]


def _drawable(point: DosePoint, edit: str) -> bool:
    return point.n >= FEWEST_PHOTOS and (
        _dose(point, edit) > 0 if edit == "size" else not math.isnan(_dose(point, edit))
    )


def _dose(point: DosePoint, edit: str) -> float:
    if edit == "size":
        return point.object_share
    try:
        return float(point.level)
    except ValueError:
        return math.nan


def _chart(edit: str, points: Sequence[DosePoint], looks: dict[str, Style]) -> DoseChart:
    doses = [_dose(point, edit) for point in points]
    x_axis = logarithmic_axis(doses) if edit == "size" else snug_axis(doses)
    y_axis = straight_axis([100.0], most_ticks=5)
    models = list(dict.fromkeys(point.model for point in points))
    lines = []
    for place, model in enumerate(models):
        own = sorted((point for point in points if point.model == model), key=lambda point: _dose(point, edit))
        shift = _DODGE * (place - (len(models) - 1) / 2)
        lines.append(
            _dose_line(own, looks[model], [x_axis.at(_dose(point, edit)) for point in own])._replace(shift=shift)
        )
    y_ticks = [Tick(_down(y_axis, tick.value), tick.value) for tick in y_axis.ticks]
    return DoseChart(edit, " %" if edit == "size" else "", _HEIGHT, x_axis.ticks, y_ticks, lines)


def _dose_line(points: Sequence[DosePoint], style: Style, places: Sequence[float]) -> DoseLine:
    y_axis = straight_axis([100.0], most_ticks=5)
    marks = [
        DoseMark(
            x,
            _down(y_axis, point.accuracy),
            _down(y_axis, point.low),
            _down(y_axis, point.high),
            point.significant,
            f"{point.model}, {point.level}: object {number(point.object_share)} % of the picture, accuracy "
            f"{number(point.accuracy)} %, 95 % interval {number(point.low)} to {number(point.high)}, n = {point.n}",
        )
        for x, point in zip(places, points, strict=True)
    ]
    return DoseLine(style, 0.0, _down(y_axis, points[0].accuracy_original), marks)


def _down(axis: Axis, value: float) -> float:
    return round(_HEIGHT * (1 - axis.at(value) / 100), 2)


_STRONGEST = 60.0  # percent of colour: text on it must stay readable
_FULL = 40.0  # points from the mean that give the strongest colour
_ACROSS = {3: ("left", "middle", "right")}
_DOWN = {3: ("top", "middle", "bottom")}


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


def place_grids(maps: Sequence[ModelPositionMap], kind: str) -> list[PlaceGrid]:
    """The maps of one kind that tell places apart at all."""
    return [_grid(row) for row in maps if row.kind == kind and (row.found.n >= FEWEST_PHOTOS).sum() > 1]


def place_record(row: ModelPositionMap) -> dict[str, object]:
    """One map as plain JSON, rows from the top; null where no object stood."""
    accuracy = [
        [None if math.isnan(value) else round(value, 4) for value in line] for line in row.found.accuracy.tolist()
    ]
    return {"model": row.model, "pictures": row.kind, "accuracy": accuracy, "n": row.found.n.tolist()}


def _grid(row: ModelPositionMap) -> PlaceGrid:
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
