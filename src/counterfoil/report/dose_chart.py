"""Curves of accuracy: against the strength of an edit, or step by step to an edit's reference and to the edit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.edits.edit_protocol import format_percent
from counterfoil.report.attribute_chart import CHANGED
from counterfoil.report.chart_parts import Axis, Style, Tick
from counterfoil.report.drop_findings import has_enough
from counterfoil.report.forest_chart import Lane, drop_lane
from counterfoil.report.words import describe_interval, format_number
from counterfoil.types import Drop

HEIGHT = 220  # pixels
_DODGE = 8  # pixels between the whiskers of two models at one place
_FEWEST_DOSES = 3
_NEAR = 7  # percent of the width: of two ticks that are nearer, the second has no label


class DoseMark(NamedTuple):
    """A mark with its whisker and band; x in percent of the width, the others in pixels from the top."""

    x: float
    y: float
    low: float
    high: float
    band: tuple[float, float] | None
    filled: bool
    label: str


class DoseLine(NamedTuple):
    """The curve of one model."""

    style: Style
    shift: float  # pixels to the right, so that whiskers do not overlap
    marks: list[DoseMark]


class DoseTick(NamedTuple):
    """A labelled place across."""

    at: float
    text: str


class DoseChart(NamedTuple):
    """Accuracy in percent, a curve per model."""

    name: str  # of the edit
    kind: str  # dose or steps
    label: str  # for screen readers
    height: int
    x_ticks: list[DoseTick]
    y_ticks: list[Tick]
    lines: list[DoseLine]


class _Point(NamedTuple):
    """One accuracy of one model; bounds are those of the points lost, seen from the reference."""

    x: float
    accuracy: float
    low: float
    high: float
    band: tuple[float, float] | None
    filled: bool
    name: str


def build_dose_chart(drops: Sequence[Drop], edit: str, styles: Mapping[str, Style]) -> DoseChart | None:
    """Build the dose curve of an edit with three levels or more: by the object's share for size, else by the level."""
    rows = [row for row in drops if row.edit == edit and has_enough(row) and not math.isnan(_dose(row))]
    doses = sorted({_dose(row) for row in rows})
    if len({row.level for row in rows}) < _FEWEST_DOSES or doses[0] == doses[-1] or (edit == "size" and doses[0] <= 0):
        return None
    axis = Axis.logarithmic(doses) if edit == "size" else Axis.tight(doses)
    unit = " %" if edit == "size" else ""
    points = {
        model: sorted(_point(row, axis.at(_dose(row)), f"{row.level}") for row in rows if row.model == model)
        for model in dict.fromkeys(row.model for row in rows)
    }
    by_level = {row.level: _dose(row) for row in rows}
    ticks = [
        DoseTick(axis.at(dose), f"{format_number(dose, 0 if dose >= 1 else 1)}{unit}") for dose in by_level.values()
    ]
    return _lay_out(points, styles, _space(ticks), (edit, "dose"))


def build_steps_chart(drops: Sequence[Drop], main: Sequence[Drop], styles: Mapping[str, Style]) -> DoseChart | None:
    """Build the steps from the unedited photo to the reference of an edit and to the edit; None without a reference."""
    rows = [row for row in main if row.reference != "original" and has_enough(row)]
    if not rows:
        return None
    of_reference = {row.model: row for row in drops if f"{row.edit} {row.level}".strip() == rows[0].reference}
    points = {}
    for row in rows:
        before = of_reference.get(row.model)
        start = _Point(10, row.accuracy_original, row.accuracy_original, row.accuracy_original, None, True, "unedited")
        middle = _point(before, 50, "reference") if before else start._replace(x=50, accuracy=row.accuracy_reference)
        points[row.model] = [start, middle, _point(row, 90, "edited")]
    reference = format_percent(rows[0].reference.rpartition(" ")[2])
    changed = CHANGED.get(rows[0].attribute, "edited")
    names = ("unedited", f"at {reference}" if reference else "reference", changed)
    ticks = [DoseTick(place, name) for place, name in zip((10, 50, 90), names, strict=True)]
    return _lay_out(points, styles, ticks, (rows[0].edit, "steps"))


def _dose(row: Drop) -> float:
    """The strength: for size the object's share, else the level where it is a number."""
    if row.edit == "size":
        return row.object_share
    try:
        return float(row.level)
    except ValueError:
        return math.nan


def _point(row: Drop, x: float, name: str) -> _Point:
    lane: Lane = drop_lane(row, Style("", 0, 0, ""))
    before = row.accuracy_reference
    low, high = (_clip(before - bound) for bound in reversed(lane.whisker))
    band = (_clip(before - lane.high), _clip(before - lane.low)) if lane.tool else None
    return _Point(x, row.accuracy, low, high, band, lane.filled, name)


def _clip(percent: float) -> float:
    return min(100.0, max(0.0, percent))


def _space(ticks: Sequence[DoseTick]) -> list[DoseTick]:
    """The ticks that have room for their label."""
    shown: list[DoseTick] = []
    for tick in sorted(ticks):
        if not shown or tick.at - shown[-1].at >= _NEAR:
            shown.append(tick)
    return shown


def _lay_out(
    points: Mapping[str, Sequence[_Point]],
    styles: Mapping[str, Style],
    ticks: list[DoseTick],
    name: tuple[str, str],
) -> DoseChart:
    every = [point for own in points.values() for point in own]
    axis = Axis.tight(
        [value for point in every for value in (*(point.band or ()), point.low, point.high, point.accuracy)]
    )
    lines = [
        DoseLine(styles[model], _DODGE * (place - (len(points) - 1) / 2), [_mark(model, point, axis) for point in own])
        for place, (model, own) in enumerate(points.items())
    ]
    label = "; ".join(
        f"{model} is right on {', '.join(f'{format_number(point.accuracy)} % at {point.name}' for point in own)}"
        for model, own in points.items()
    )
    ticks_up = [tick for tick in axis.ticks_from_top(HEIGHT) if 0 <= tick.value <= 100]
    return DoseChart(*name, f"Accuracy. {label}", HEIGHT, ticks, ticks_up, lines)


def _mark(model: str, point: _Point, axis: Axis) -> DoseMark:
    y, low, high = (axis.from_top(value, HEIGHT) for value in (point.accuracy, point.low, point.high))
    band = (axis.from_top(point.band[0], HEIGHT), axis.from_top(point.band[1], HEIGHT)) if point.band else None
    bounds = point.band or (point.low, point.high)
    label = f"{model}, {point.name}: right on {format_number(point.accuracy)} %"
    if bounds[0] < bounds[1]:  # the unedited photos have lost nothing yet
        label += f", by the {describe_interval(*bounds)} of the points lost"
    return DoseMark(point.x, y, low, high, band, point.filled, label)
