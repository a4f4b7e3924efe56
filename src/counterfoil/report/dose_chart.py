"""Dose curves: accuracy against the strength of an edit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from counterfoil.report.chart_parts import Axis, PointMark, Style, Tick, assign_styles
from counterfoil.report.words import describe_interval, format_number
from counterfoil.statistics.dose import DosePoint, dose_curve
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.types import Drop

_HEIGHT = 300  # pixels
_DODGE = 7  # pixels between the whiskers of two models at one dose
_Y_AXIS = Axis.linear([100.0], most_ticks=5)


class DoseLine(NamedTuple):
    """The dose curve of one model."""

    style: Style
    shift: float  # pixels to the right, so that whiskers do not overlap
    original: float  # pixels from the top: accuracy on the unedited photos
    marks: list[PointMark]


class DoseChart(NamedTuple):
    """Accuracy against the strength of an edit: for size the object's share of the picture, else the level."""

    edit: str
    unit: str
    height: int
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    lines: list[DoseLine]


def build_dose_charts(drops: Sequence[Drop]) -> list[DoseChart]:
    """Build the dose curve of every edit with at least two levels that have a number, size first."""
    edits = sorted(dict.fromkeys(row.edit for row in drops), key=lambda edit: edit != "size")
    styles = assign_styles([row.model for row in drops])
    charts = []
    for edit in edits:
        points = [(_dose(point, edit), point) for point in dose_curve(drops, edit) if point.n >= FEWEST_PHOTOS]
        drawable = [(dose, point) for dose, point in points if dose > 0 or (edit != "size" and not math.isnan(dose))]
        if len({dose for dose, _ in drawable}) > 1:
            charts.append(_build_chart(edit, drawable, styles))
    return charts


def _dose(point: DosePoint, edit: str) -> float:
    """The strength: for size the object's share, else the level where it is a number."""
    if edit == "size":
        return point.object_share
    try:
        return float(point.level)
    except ValueError:
        return math.nan


def _build_chart(edit: str, points: Sequence[tuple[float, DosePoint]], styles: dict[str, Style]) -> DoseChart:
    doses = [dose for dose, _ in points]
    x_axis = Axis.logarithmic(doses) if edit == "size" else Axis.tight(doses)
    models = list(dict.fromkeys(point.model for _, point in points))
    lines = []
    for place, model in enumerate(models):
        own = sorted((row for row in points if row[1].model == model), key=lambda row: row[0])
        marks = [_mark(point, x_axis.at(dose), styles[model]) for dose, point in own]
        original = _Y_AXIS.from_top(own[0][1].accuracy_original, _HEIGHT)
        lines.append(DoseLine(styles[model], _DODGE * (place - (len(models) - 1) / 2), original, marks))
    unit = " %" if edit == "size" else ""
    return DoseChart(edit, unit, _HEIGHT, x_axis.ticks, _Y_AXIS.ticks_from_top(_HEIGHT), lines)


def _mark(point: DosePoint, x: float, style: Style) -> PointMark:
    return PointMark(
        style=style,
        x=x,
        y=_Y_AXIS.from_top(point.accuracy, _HEIGHT),
        low=_Y_AXIS.from_top(point.low, _HEIGHT),
        high=_Y_AXIS.from_top(point.high, _HEIGHT),
        filled=point.significant,
        label=f"{point.model}, {point.level}: object {format_number(point.object_share)} % of the picture, accuracy "
        f"{format_number(point.accuracy)} %, {describe_interval(point.low, point.high)}, n = {point.n}",
    )
