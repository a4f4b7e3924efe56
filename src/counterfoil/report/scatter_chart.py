"""Scatter chart: each model's drop for an attribute against its accuracy on the unedited photos."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from counterfoil.report.chart_parts import Axis, PointMark, Style, Tick, assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.words import describe_interval, format_number, name_attribute
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.types import Drop

HEIGHT = 300  # pixels
_Measure: TypeAlias = Literal["drop", "accuracy"]
_MEASURES: tuple[_Measure, ...] = ("drop", "accuracy")


class Panel(NamedTuple):
    """One attribute, as drops or as accuracies."""

    attribute: str
    kind: _Measure
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    marks: list[PointMark]


class ScatterChart(NamedTuple):
    """All panels; the page shows one at a time."""

    height: int
    attributes: list[tuple[str, str]]  # with readable names
    panels: list[Panel]


def build_scatter_chart(content: ReportContent) -> ScatterChart | None:
    """Build the chart; None where fewer than two models can be drawn."""
    rows = [row for row in content.attribute_drops if row.attribute != "presence" and row.n >= FEWEST_PHOTOS]
    rows = [row for row in rows if not math.isnan(row.drop)]
    if len({row.model for row in rows}) < 2:
        return None
    styles = assign_styles([row.model for row in content.drops])
    x_axis = Axis.tight([row.accuracy_original for row in rows])
    names = list(dict.fromkeys(row.attribute for row in rows))
    names.sort(key=lambda name: name == "control")  # the first panel shown should be an attribute, not the control
    panels = [
        _panel([row for row in rows if row.attribute == name], measure, x_axis, styles)
        for name in names
        for measure in _MEASURES
    ]
    return ScatterChart(HEIGHT, [(name, name_attribute(name)) for name in names], panels)


def _panel(rows: Sequence[Drop], measure: _Measure, x_axis: Axis, styles: Mapping[str, Style]) -> Panel:
    values = [_values(row, measure) for row in rows]
    y_axis = Axis.linear([bound for bounds in values for bound in bounds], most_ticks=5)
    marks = []
    for row, (value, low, high) in zip(rows, values, strict=True):
        label = f"{row.model}: {format_number(row.accuracy_original)} % right before"
        marks.append(
            PointMark(
                style=styles[row.model],
                x=x_axis.at(row.accuracy_original),
                y=y_axis.from_top(value, HEIGHT),
                low=y_axis.from_top(low, HEIGHT),
                high=y_axis.from_top(high, HEIGHT),
                filled=is_significant(row),
                label=f"{label}, {measure} {format_number(value)}, {describe_interval(low, high)}",
            )
        )
    return Panel(rows[0].attribute, measure, x_axis.ticks, y_axis.ticks_from_top(HEIGHT), marks)


def _values(row: Drop, measure: _Measure) -> tuple[float, float, float]:
    if measure == "drop":
        return row.drop, row.ci_low, row.ci_high
    low, high = max(0.0, row.accuracy_original - row.ci_high), min(100.0, row.accuracy_original - row.ci_low)
    return row.accuracy, low, high
