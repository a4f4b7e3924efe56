"""Forest charts: points lost or percent right with intervals, a row per attribute or edit, a lane per model."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from counterfoil.report.chart_parts import PERCENT, Axis, Style, Tick
from counterfoil.report.words import format_bounds, format_number
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.types import Drop

_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")


class Lane(NamedTuple):
    """One number of one model with its interval, not yet placed."""

    style: Style
    value: float
    low: float  # of the printed interval, the tool's uncertainty included
    high: float
    tool: float  # points of that uncertainty, 0 where there is none
    has_enough: bool  # whether there are enough photos to show it
    filled: bool

    @property
    def text(self) -> str:
        """The number with its interval."""
        return f"{format_number(self.value)} {format_bounds(self.low, self.high)}" if self.has_enough else "too few"

    @property
    def whisker(self) -> tuple[float, float]:
        """The interval without the tool's uncertainty, which was added to each side in quadrature."""
        return (
            self.value - math.sqrt(max(0.0, (self.value - self.low) ** 2 - self.tool**2)),
            self.value + math.sqrt(max(0.0, (self.high - self.value) ** 2 - self.tool**2)),
        )


class ForestMark(NamedTuple):
    """A mark with its whisker and band; positions in percent of the width and of the row's height."""

    style: Style
    y: float
    at: float
    low: float
    high: float
    band: tuple[float, float] | None
    filled: bool


class ForestValue(NamedTuple):
    """The number beside a mark."""

    style: Style
    text: str
    filled: bool


class RowName(NamedTuple):
    """What a row shows: its name, a note below it, and the attribute whose section it leads to."""

    name: str
    note: str = ""
    attribute: str = ""


class ForestRow(NamedTuple):
    """One attribute, edit or kind of picture, a lane per model."""

    what: RowName
    label: str  # for screen readers: all of its numbers
    marks: list[ForestMark]
    values: list[ForestValue]


class ForestChart(NamedTuple):
    """Rows on one axis."""

    ticks: list[Tick]
    zero: float
    rows: list[ForestRow]
    unit: str  # points or percent
    has_bands: bool
    left_out: int = 0  # rows for which there is no room


def drop_lane(row: Drop, style: Style) -> Lane:
    """The lane of the points lost to an edit; filled where they are clear."""
    return Lane(
        style=style,
        value=row.drop_vs_reference,
        low=row.reference_low,
        high=row.reference_high,
        tool=0.0 if math.isnan(row.tool_uncertainty) else row.tool_uncertainty,
        has_enough=row.n_reference >= FEWEST_PHOTOS and not math.isnan(row.drop_vs_reference),
        filled=is_significant(row),
    )


def accuracy_lane(row: GroupAccuracy, style: Style, surrogates: Sequence[str]) -> Lane:
    """The lane of one accuracy; hollow where the model is a surrogate."""
    return Lane(
        style=style,
        value=row.top1.value,
        low=row.top1.ci_low,
        high=row.top1.ci_high,
        tool=0.0,
        has_enough=row.photos >= FEWEST_PHOTOS,
        filled=row.model not in surrogates,
    )


def build_points_chart(rows: Mapping[RowName, Sequence[Lane]]) -> ForestChart | None:
    """Build a chart of points lost; None where nothing can be drawn."""
    lanes = [lane for members in rows.values() for lane in members if lane.has_enough]
    if not lanes:
        return None
    return _lay_out(
        rows, Axis.linear([bound for lane in lanes for bound in (lane.low, lane.value, lane.high)]), "points"
    )


def build_percent_chart(rows: Mapping[RowName, Sequence[Lane]]) -> ForestChart | None:
    """Build a chart of percentages; None where nothing can be drawn."""
    has_marks = any(lane.has_enough for members in rows.values() for lane in members)
    return _lay_out(rows, PERCENT, "percent") if has_marks else None


def group(items: Sequence[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Group the items by key, both in their original order."""
    groups: dict[_Key, list[_Item]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def _lay_out(rows: Mapping[RowName, Sequence[Lane]], axis: Axis, unit: str) -> ForestChart:
    placed = [
        _place(what, sorted(lanes, key=lambda lane: lane.style.place), axis, unit) for what, lanes in rows.items()
    ]
    has_bands = any(mark.band for row in placed for mark in row.marks)
    return ForestChart(axis.ticks, axis.at(0), placed, unit, has_bands)


def _place(what: RowName, lanes: Sequence[Lane], axis: Axis, unit: str) -> ForestRow:
    marks = []
    for place, lane in enumerate(lanes):
        if lane.has_enough:
            low, high = lane.whisker
            marks.append(
                ForestMark(
                    style=lane.style,
                    y=round(100 * (place + 0.5) / len(lanes), 2),
                    at=axis.at(lane.value),
                    low=axis.at(low),
                    high=axis.at(high),
                    band=(axis.at(lane.low), axis.at(lane.high)) if lane.tool else None,
                    filled=lane.filled,
                )
            )
    label = "; ".join(f"{lane.style.model} {_say(lane, unit)}" for lane in lanes)
    values = [ForestValue(lane.style, lane.text, lane.filled) for lane in lanes]
    return ForestRow(what, f"{what.name}: {label}", marks, values)


def _say(lane: Lane, unit: str) -> str:
    if not lane.has_enough:
        return "has too few photos"
    if unit == "percent":
        return f"is right on {format_number(lane.value)} % {format_bounds(lane.low, lane.high)}"
    return f"loses {lane.text.replace(' [', ' points [')}{'' if lane.filled else ', not clear'}"
