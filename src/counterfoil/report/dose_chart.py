"""The geometry of the dose curves; the template draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from counterfoil.analyse import FEWEST_PHOTOS, DosePoint, dose_curve
from counterfoil.report.axis import Axis, Tick, logarithmic_axis, snug_axis, straight_axis
from counterfoil.report.looks import Style, styles
from counterfoil.report.wording import number
from counterfoil.types import Drop

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
