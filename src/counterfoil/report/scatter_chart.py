"""Drop or accuracy after an edit against accuracy before it, one panel per attribute; the template draws it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from counterfoil.analyse import FEWEST_PHOTOS, significant
from counterfoil.report.axis import Axis, Tick, snug_axis, straight_axis
from counterfoil.report.content import ReportInput
from counterfoil.report.looks import Style, styles
from counterfoil.report.wording import attribute_name, number
from counterfoil.types import Drop

HEIGHT = 300  # pixels


class ScatterMark(NamedTuple):
    """One model; x in percent of the width, y in pixels."""

    style: Style
    x: float
    y: float
    low: float
    high: float
    filled: bool
    told: str


class Panel(NamedTuple):
    """One attribute, as drops or as accuracies."""

    attribute: str
    kind: Literal["drop", "accuracy"]
    x_ticks: list[Tick]
    y_ticks: list[Tick]  # `at` in pixels from the top
    marks: list[ScatterMark]


class ScatterChart(NamedTuple):
    """All panels; the page shows one of them at a time."""

    height: int
    attributes: list[tuple[str, str]]  # and what people call them
    panels: list[Panel]


def scatter_chart(content: ReportInput) -> ScatterChart | None:
    """None where fewer than two models can be drawn."""
    rows = [row for row in content.attribute_drops if row.attribute != "presence" and row.n >= FEWEST_PHOTOS]
    rows = [row for row in rows if not math.isnan(row.drop)]
    if len({row.model for row in rows}) < 2:
        return None
    looks = styles([row.model for row in content.drops])
    x_axis = snug_axis([row.accuracy_original for row in rows])
    names = list(dict.fromkeys(row.attribute for row in rows))
    names.sort(key=lambda name: name == "control")  # the first is what opens: an attribute, not the tool's own cost
    kinds: tuple[Literal["drop", "accuracy"], ...] = ("drop", "accuracy")
    panels = [
        _panel([row for row in rows if row.attribute == name], kind, x_axis, looks) for name in names for kind in kinds
    ]
    return ScatterChart(HEIGHT, [(name, attribute_name(name)) for name in names], panels)


def _panel(rows: Sequence[Drop], kind: Literal["drop", "accuracy"], x_axis: Axis, looks: dict[str, Style]) -> Panel:
    y_axis = straight_axis([value for row in rows for value in _values(row, kind)], most_ticks=5)
    marks = [_mark(row, kind, (x_axis, y_axis), looks[row.model]) for row in rows]
    ticks = [Tick(_down(y_axis, tick.value), tick.value) for tick in y_axis.ticks]
    return Panel(rows[0].attribute, kind, x_axis.ticks, ticks, marks)


def _mark(row: Drop, kind: str, axes: tuple[Axis, Axis], style: Style) -> ScatterMark:
    value, low, high = _values(row, kind)
    return ScatterMark(
        style,
        axes[0].at(row.accuracy_original),
        _down(axes[1], value),
        _down(axes[1], low),
        _down(axes[1], high),
        significant(row),
        f"{row.model}: {number(row.accuracy_original)} % right before, {kind} {number(value)}, "
        f"95 % interval {number(low)} to {number(high)}",
    )


def _values(row: Drop, kind: str) -> tuple[float, float, float]:
    if kind == "drop":
        return row.drop, row.ci_low, row.ci_high
    low, high = max(0.0, row.accuracy_original - row.ci_high), min(100.0, row.accuracy_original - row.ci_low)
    return row.accuracy, low, high


def _down(axis: Axis, value: float) -> float:
    return round(HEIGHT * (1 - axis.at(value) / 100), 2)
