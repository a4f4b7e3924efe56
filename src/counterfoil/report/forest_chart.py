"""Forest charts: drops of each edit, or accuracies, with intervals, a lane per model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

from counterfoil.report.chart_parts import PERCENT, Axis, Style, Tick, assign_styles
from counterfoil.report.words import SURROGATE_MARK, describe_interval, format_count, format_number, name_attribute
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.answers import ALL
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.types import Drop

LANE = 20  # pixels between two models in one row
_MOST_LEVELS = 25  # of an edit; with more, such as one per prompt, only the table lists each
_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")


class ForestMark(NamedTuple):
    """A dot with whiskers, in percent of the width."""

    style: Style
    y: int  # pixels
    at: float
    low: float
    high: float
    filled: bool
    label: str


class ForestRow(NamedTuple):
    """One edit at one level, a lane per model."""

    edit: str
    level: str
    photos: str
    height: int  # pixels
    marks: list[ForestMark]
    values: list[tuple[Style, str]]


class ForestChart(NamedTuple):
    """Numbers with their intervals, grouped by attribute."""

    ticks: list[Tick]
    zero: float
    groups: list[tuple[str, str, list[ForestRow]]]  # attribute, its readable name, its rows


class Lane(NamedTuple):
    """One number of one model, not yet placed in a row."""

    style: Style
    value: float
    low: float
    high: float
    n: int
    has_enough: bool  # whether there are enough photos to show it
    filled: bool
    label: str

    @property
    def text(self) -> str:
        """The number with its interval, or why there is none."""
        if self.has_enough:
            return f"{format_number(self.value)} [{format_number(self.low)}, {format_number(self.high)}]"
        return "too few" if self.n else "no data"


def drop_lane(row: Drop, style: Style, label: str) -> Lane:
    """The lane of one drop; filled where it is significant."""
    has_enough = row.n >= FEWEST_PHOTOS and not math.isnan(row.drop)
    return Lane(
        style=style,
        value=row.drop,
        low=row.ci_low,
        high=row.ci_high,
        n=row.n,
        has_enough=has_enough,
        filled=is_significant(row),
        label=f"{label}, {'significant' if is_significant(row) else 'not significant'}, n = {row.n}",
    )


def accuracy_lane(row: GroupAccuracy, style: Style, surrogates: Sequence[str], label: str) -> Lane:
    """The lane of one accuracy; hollow where the model is a surrogate."""
    return Lane(
        style=style,
        value=row.top1.value,
        low=row.top1.ci_low,
        high=row.top1.ci_high,
        n=row.top1.n,
        has_enough=row.photos >= FEWEST_PHOTOS,
        filled=row.model not in surrogates,
        label=f"{label}, n = {row.top1.n}",
    )


def place_marks(lanes: Sequence[Lane], axis: Axis, height: int) -> list[ForestMark]:
    """A mark in the middle of every lane that can be drawn."""
    return [
        ForestMark(
            style=lane.style,
            y=height * place + (height + 1) // 2,
            at=axis.at(lane.value),
            low=axis.at(lane.low),
            high=axis.at(lane.high),
            filled=lane.filled,
            label=lane.label,
        )
        for place, lane in enumerate(lanes)
        if lane.has_enough
    ]


def build_drops_chart(drops: Sequence[Drop]) -> ForestChart | None:
    """Build a chart of every row that can be drawn, without diagnostics; None where there is none."""
    styles = assign_styles([row.model for row in drops])
    rows = [row for row in drops if row.attribute != "presence"]
    lanes = [drop_lane(row, styles[row.model], _drop_label(row)) for row in rows]
    bounds = [bound for lane in lanes if lane.has_enough for bound in (lane.low, lane.high, lane.value)]
    if not bounds:
        return None
    axis = Axis.linear(bounds)
    levels = group([((row.attribute, row.edit, row.level), lane) for row, lane in zip(rows, lanes, strict=True)])
    groups = group([(key[0], _row(key[1], key[2], members, axis)) for key, members in levels.items()])
    named = [(attribute, name_attribute(attribute), members) for attribute, members in groups.items()]
    return ForestChart(axis.ticks, axis.at(0), named)


def build_accuracy_chart(rows: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> ForestChart | None:
    """Build a chart of every group of pictures; hollow marks are surrogates. None where nothing can be drawn."""
    if not any(row.photos >= FEWEST_PHOTOS for row in rows):
        return None
    styles = assign_styles([row.model for row in rows])
    levels = Counter((row.attribute, row.edit) for row in rows)
    lanes = group(
        [
            (
                (row.attribute, row.edit, row.level),
                accuracy_lane(row, styles[row.model], surrogates, _accuracy_label(row, surrogates)),
            )
            for row in rows
            if row.level == ALL or levels[row.attribute, row.edit] <= _MOST_LEVELS * len(styles)
        ]
    )
    groups = group([(key[0], _row(*_edit_and_level(*key[1:]), members, PERCENT)) for key, members in lanes.items()])
    named = [(name, "all pictures" if name == ALL else name_attribute(name), lines) for name, lines in groups.items()]
    return ForestChart(PERCENT.ticks, PERCENT.at(0), named)


def group(items: Sequence[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Group the items by key, both in their original order."""
    groups: dict[_Key, list[_Item]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def _row(edit: str, level: str, lanes: Sequence[Lane], axis: Axis) -> ForestRow:
    fewest, most = min(lane.n for lane in lanes), max(lane.n for lane in lanes)
    photos = f"n = {format_count(most)}" if fewest == most else f"n = {format_count(fewest)}–{format_count(most)}"
    values = [(lane.style, lane.text) for lane in lanes]
    return ForestRow(edit, level, photos, LANE * len(lanes), place_marks(lanes, axis, LANE), values)


def _edit_and_level(edit: str, level: str) -> tuple[str, str]:
    """The edit and level as the chart names them where several are taken together."""
    if edit == ALL:
        return "together", "" if level == ALL else level
    return edit, "together" if level == ALL else level


def _drop_label(row: Drop) -> str:
    bounds = describe_interval(row.ci_low, row.ci_high)
    return f"{row.model}, {row.edit} {row.level}: drop {format_number(row.drop)} points, {bounds}"


def _accuracy_label(row: GroupAccuracy, surrogates: Sequence[str]) -> str:
    kind = " ".join(name for name in (row.attribute, row.edit, row.level) if name not in (ALL, "")) or "all pictures"
    mark = f", {SURROGATE_MARK}" if row.model in surrogates else ""
    bounds = describe_interval(row.top1.ci_low, row.top1.ci_high)
    return f"{row.model}{mark}, {kind}: right on {format_number(row.top1.value)} %, {bounds}"
