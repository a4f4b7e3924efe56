"""The geometry of the chart of drops; the template draws it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from counterfoil.analyse import FEWEST_PHOTOS, significant
from counterfoil.report.axis import Axis, Tick, straight_axis
from counterfoil.report.looks import Style, styles
from counterfoil.report.wording import attribute_name, interval, number
from counterfoil.types import Drop

LANE = 20  # pixels between two models in one row


class Mark(NamedTuple):
    """One drop: a dot with whiskers, in percent of the width."""

    style: Style
    y: int
    at: float
    low: float
    high: float
    filled: bool
    told: str


class Row(NamedTuple):
    """One edit at one level, a lane per model."""

    edit: str
    level: str
    photos: str
    height: int  # pixels
    marks: list[Mark]
    values: list[tuple[Style, str]]


class DropsChart(NamedTuple):
    """Drops with their intervals, grouped by attribute."""

    ticks: list[Tick]
    zero: float
    groups: list[tuple[str, str, list[Row]]]  # attribute, what people call it, its rows


class _Level(NamedTuple):
    attribute: str
    edit: str
    level: str


def drops_chart(drops: Sequence[Drop]) -> DropsChart | None:
    """Every row that can be drawn, diagnostics left out; None where there is none."""
    rows = [row for row in drops if row.attribute != "presence"]
    drawn = [row for row in rows if _drawable(row)]
    if not drawn:
        return None
    axis = straight_axis([bound for row in drawn for bound in (row.ci_low, row.ci_high, row.drop)])
    looks = styles([row.model for row in drops])
    levels: dict[_Level, list[Drop]] = {}
    for row in rows:
        levels.setdefault(_Level(row.attribute, row.edit, row.level), []).append(row)
    groups: dict[str, list[Row]] = {}
    for level, members in levels.items():
        groups.setdefault(level.attribute, []).append(_row(level, members, looks, axis))
    named = [(attribute, attribute_name(attribute), members) for attribute, members in groups.items()]
    return DropsChart(axis.ticks, axis.at(0), named)


def _drawable(row: Drop) -> bool:
    return row.n >= FEWEST_PHOTOS and not math.isnan(row.drop)


def _row(level: _Level, members: Sequence[Drop], looks: dict[str, Style], axis: Axis) -> Row:
    marks = [
        Mark(
            looks[row.model],
            y=LANE * place + LANE // 2,
            at=axis.at(row.drop),
            low=axis.at(row.ci_low),
            high=axis.at(row.ci_high),
            filled=significant(row),
            told=_told(row),
        )
        for place, row in enumerate(members)
        if _drawable(row)
    ]
    fewest, most = min(row.n for row in members), max(row.n for row in members)
    photos = f"n = {most}" if fewest == most else f"n = {fewest}–{most}"
    values = [(looks[row.model], _value(row)) for row in members]
    return Row(level.edit, level.level, photos, LANE * len(members), marks, values)


def _value(row: Drop) -> str:
    return f"{number(row.drop)} {interval(row)}" if _drawable(row) else ("too few" if row.n else "no data")


def _told(row: Drop) -> str:
    verdict = "significant" if significant(row) else "not significant"
    return (
        f"{row.model}, {row.edit} {row.level}: drop {number(row.drop)} points, 95 % interval {number(row.ci_low)} to "
        f"{number(row.ci_high)}, {verdict}, n = {row.n}"
    )
