"""The report's first chart: the largest drop of each attribute, or accuracy by kind of picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.report.chart_parts import PERCENT, Axis, Style, Tick, assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import representative_rows
from counterfoil.report.forest_chart import ForestMark, Lane, accuracy_lane, drop_lane, group, place_marks
from counterfoil.report.headline import divide_pictures, kind_name
from counterfoil.report.words import (
    capitalize_first,
    describe_row,
    format_drop,
    format_interval,
    format_number,
    name_attribute,
)
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.families import SURFACE
from counterfoil.study.runs import find_surrogates

_LANE, _NARROW_LANE = 15, 9  # pixels for each model of a row
_MOST_MODELS_WITH_VALUES = 4
_MOST_KINDS = 16  # of pictures; some collections have hundreds


class AttributeValue(NamedTuple):
    """The number beside a mark, and the edit where it adds to the row's name."""

    style: Style
    text: str
    change: str
    filled: bool


class AttributeRow(NamedTuple):
    """One attribute, or one kind of picture; a lane per model."""

    name: str
    is_surface: bool
    height: int
    marks: list[ForestMark]
    values: list[AttributeValue]
    change: str  # the edits, once for all models; a narrow screen has no room for it beside every value


class AttributeChart(NamedTuple):
    """The largest drop comes first; surface edits, on which every model fails, come last."""

    ticks: list[Tick]
    zero: float
    lane: int
    rows: list[AttributeRow]
    unit: str
    left_out: int = 0


class _Row(NamedTuple):
    name: str
    is_surface: bool
    lanes: list[tuple[Lane, str]]  # with the edit


def build_attribute_chart(content: ReportContent) -> AttributeChart | None:
    """Build accuracies for mined pictures and those without originals, else drops; None where photos are too few."""
    first, second = (_chart_accuracies, _chart_drops) if content.is_mined else (_chart_drops, _chart_accuracies)
    return first(content) or second(content)


def _chart_drops(content: ReportContent) -> AttributeChart | None:
    enough = [row for row in content.drops if row.n >= FEWEST_PHOTOS]
    styles = assign_styles([row.model for row in content.drops])
    shown = [row for model in styles for row in representative_rows([row for row in enough if row.model == model])]
    if not shown:
        return None
    lanes = []
    for row in sorted(shown, key=lambda row: -row.drop):
        label = f"{row.model}, {row.attribute}: {describe_row(row)}, drop {format_drop(row)}"
        lanes.append((row.attribute, (drop_lane(row, styles[row.model], label), describe_row(row))))
    groups = group(lanes)
    rows = [
        _Row(capitalize_first(name_attribute(name)), name in SURFACE, groups[name])
        for name in sorted(groups, key=lambda attribute: attribute in SURFACE)
    ]
    axis = Axis.linear([bound for row in shown for bound in (row.ci_low, row.ci_high, row.drop)])
    return _lay_out(rows, axis, styles, "points")


def _chart_accuracies(content: ReportContent) -> AttributeChart | None:
    styles = assign_styles([row.model for row in content.accuracies])
    kinds = divide_pictures(content.accuracies)
    by_attribute = content.is_mined and len({row.attribute for row in kinds}) > 1
    surrogates = find_surrogates(content.run)

    def lane(row: GroupAccuracy) -> tuple[Lane, str]:
        label = f"{row.model}: right on {format_number(row.top1.value)} % {format_interval(row.top1)}"
        return accuracy_lane(row, styles[row.model], surrogates, label), ""

    enough = sorted((row for row in kinds if row.photos >= FEWEST_PHOTOS), key=lambda row: row.top1.value)
    groups = group([(name_attribute(row.attribute) if by_attribute else kind_name(row), lane(row)) for row in enough])
    overall = [lane(row) for row in content.accuracies if row.overall and row.photos >= FEWEST_PHOTOS]
    shown = {"all pictures": overall} if overall else {}
    shown |= dict(list(groups.items())[:_MOST_KINDS]) if len(groups) > 1 else {}
    if not shown:
        return None
    rows = [_Row(capitalize_first(name), False, lanes) for name, lanes in shown.items()]
    return _lay_out(rows, PERCENT, styles, "percent")._replace(left_out=max(0, len(groups) - _MOST_KINDS))


def _lay_out(rows: Sequence[_Row], axis: Axis, styles: Mapping[str, Style], unit: str) -> AttributeChart:
    is_narrow = len(styles) > _MOST_MODELS_WITH_VALUES
    height = _NARROW_LANE if is_narrow else _LANE
    placed = []
    for name, is_surface, members in rows:
        lanes = sorted(members, key=lambda member: member[0].style.place)
        values = [AttributeValue(lane.style, lane.text, change, lane.filled) for lane, change in lanes]
        placed.append(
            AttributeRow(
                name=name,
                is_surface=is_surface,
                height=height * len(lanes),
                marks=place_marks([lane for lane, _ in lanes], axis, height),
                values=[] if is_narrow else values,
                change="; ".join(dict.fromkeys(change for _, change in lanes if change)),
            )
        )
    return AttributeChart(axis.ticks, axis.at(0), height, placed, unit)
