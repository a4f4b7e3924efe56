"""The geometry of the dose curve; the template draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from counterfoil.analyse import FEWEST_PHOTOS, DosePoint, dose_curve
from counterfoil.report.axis import Axis, Tick, logarithmic_axis, straight_axis
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
    """Accuracy against the share of the picture that the object covers."""

    height: int
    x_ticks: list[Tick]
    y_ticks: list[Tick]  # `at` in pixels from the top
    lines: list[DoseLine]


def dose_chart(drops: Sequence[Drop]) -> DoseChart | None:
    """The dose curve of size; None where fewer than two levels have a share."""
    points = [point for point in dose_curve(drops) if point.n >= FEWEST_PHOTOS and point.object_share > 0]
    if len({point.level for point in points}) < 2:
        return None
    x_axis = logarithmic_axis([point.object_share for point in points])
    y_axis = straight_axis([100.0], most_ticks=5)
    looks = styles([row.model for row in drops])
    models = list(dict.fromkeys(point.model for point in points))
    lines = [
        _dose_line([point for point in points if point.model == model], looks[model], (x_axis, y_axis))._replace(
            shift=_DODGE * (place - (len(models) - 1) / 2)
        )
        for place, model in enumerate(models)
    ]
    return DoseChart(_HEIGHT, x_axis.ticks, [Tick(_down(y_axis, t.value), t.value) for t in y_axis.ticks], lines)


def _dose_line(points: Sequence[DosePoint], style: Style, axes: tuple[Axis, Axis]) -> DoseLine:
    x_axis, y_axis = axes
    marks = [
        DoseMark(
            x_axis.at(point.object_share),
            _down(y_axis, point.accuracy),
            _down(y_axis, point.low),
            _down(y_axis, point.high),
            point.significant,
            f"{point.model}, {point.level}: object {number(point.object_share)} % of the picture, accuracy "
            f"{number(point.accuracy)} %, 95 % interval {number(point.low)} to {number(point.high)}, n = {point.n}",
        )
        for point in points
    ]
    return DoseLine(style, 0.0, _down(y_axis, points[0].accuracy_original), marks)


def _down(axis: Axis, value: float) -> float:
    return round(_HEIGHT * (1 - axis.at(value) / 100), 2)
