"""Attributes by models, first chart; heat map of attributes by models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.report.charts import PERCENT, Axis, DropMark, Style, Tick, straight_axis, styles
from counterfoil.report.findings import kind_name, kinds_of
from counterfoil.report.model_findings import SURFACE, representative_row
from counterfoil.report.report_input import ReportInput
from counterfoil.report.words import attribute_name, describe_row, interval, number, points, sentence_start
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Drop

_LANE, _NARROW_LANE = 15, 9  # pixels for each model of a row
_MOST_MODELS_WITH_VALUES = 4
_MOST_KINDS = 16  # of pictures; nuisances come by the hundred


class AttributeValue(NamedTuple):
    """What stands beside a mark: the number, and what was done where that says more than the row's name."""

    style: Style
    value: str
    done: str
    clear: bool


class AttributeRow(NamedTuple):
    """One attribute, or one kind of picture; a lane per model."""

    name: str
    surface: bool
    height: int
    marks: list[DropMark]
    values: list[AttributeValue]
    done: str  # what was done, once for all models; a narrow screen has no room for it beside every value


class AttributeChart(NamedTuple):
    """What costs most stands first; surface edits, which every model fails on, stand last."""

    ticks: list[Tick]
    zero: float
    lane: int
    rows: list[AttributeRow]
    unit: str
    left_out: int = 0


class _Lane(NamedTuple):
    """One number of one model."""

    style: Style
    value: float
    low: float
    high: float
    clear: bool
    told: str
    done: str


def attribute_chart(content: ReportInput) -> AttributeChart | None:
    """Accuracies of chosen pictures and of those without originals, else drops; None where all photos are too few."""
    first, second = (_accuracies, _drops) if content.chosen else (_drops, _accuracies)
    return first(content) or second(content)


def _drops(content: ReportInput) -> AttributeChart | None:
    enough = [row for row in content.drops if row.n >= FEWEST_PHOTOS]
    looks = styles([row.model for row in content.drops])
    found = [row for model in looks for row in representative_row([row for row in enough if row.model == model])]
    if not found:
        return None
    groups: dict[str, list[_Lane]] = {}
    for row in sorted(found, key=lambda row: -row.drop):
        groups.setdefault(row.attribute, []).append(_drop_lane(row, looks))
    order = sorted(groups, key=lambda attribute: attribute in SURFACE)
    axis = straight_axis([bound for row in found for bound in (row.ci_low, row.ci_high, row.drop)])
    named = [(sentence_start(attribute_name(name)), name in SURFACE, groups[name]) for name in order]
    return _drawn(named, axis, looks, "points")


def _drop_lane(row: Drop, looks: Mapping[str, Style]) -> _Lane:
    clear = is_significant(row)
    told = f"{row.model}, {row.attribute}: {describe_row(row)}, drop {points(row)}"
    told += f", {'significant' if clear else 'not significant'}, n = {row.n}"
    return _Lane(
        style=looks[row.model],
        value=row.drop,
        low=row.ci_low,
        high=row.ci_high,
        clear=clear,
        told=told,
        done=describe_row(row),
    )


def _accuracies(content: ReportInput) -> AttributeChart | None:
    surrogates = find_surrogates(content.run)
    looks = styles([row.model for row in content.accuracies])
    divided = kinds_of(content.accuracies)
    whole = content.chosen and len({row.attribute for row in divided}) > 1
    kinds = [row for row in divided if row.photos >= FEWEST_PHOTOS]
    overall = [row for row in content.accuracies if row.overall and row.photos >= FEWEST_PHOTOS]
    groups: dict[str, list[_Lane]] = {}
    for row in sorted(kinds, key=lambda row: row.top1.value):
        name = attribute_name(row.attribute) if whole else kind_name(row)
        groups.setdefault(name, []).append(_accuracy_lane(row, looks, surrogates))
    shown = {"all pictures": [_accuracy_lane(row, looks, surrogates) for row in overall]} if overall else {}
    shown |= dict(list(groups.items())[:_MOST_KINDS]) if len(groups) > 1 else {}
    if not shown:
        return None
    named = [(sentence_start(name), False, lanes) for name, lanes in shown.items()]
    left_out = max(0, len(groups) - _MOST_KINDS)
    return _drawn(named, PERCENT, looks, "percent")._replace(left_out=left_out)


def _accuracy_lane(row: GroupAccuracy, looks: Mapping[str, Style], surrogates: Sequence[str]) -> _Lane:
    rate = row.top1
    told = f"{row.model}: right on {number(rate.value)} % {interval(rate)}, n = {rate.n}"
    return _Lane(
        style=looks[row.model],
        value=rate.value,
        low=rate.ci_low,
        high=rate.ci_high,
        clear=row.model not in surrogates,
        told=told,
        done="",
    )


def _drawn(
    named: Sequence[tuple[str, bool, Sequence[_Lane]]], axis: Axis, looks: Mapping[str, Style], unit: str
) -> AttributeChart:
    narrow = len(looks) > _MOST_MODELS_WITH_VALUES
    lane = _NARROW_LANE if narrow else _LANE
    rows = [
        AttributeRow(
            name,
            surface,
            lane * len(lanes),
            [_mark(part, place, lane, axis) for place, part in enumerate(_in_order(lanes))],
            [] if narrow else [_value(part) for part in _in_order(lanes)],
            "; ".join(dict.fromkeys(part.done for part in _in_order(lanes) if part.done)),
        )
        for name, surface, lanes in named
    ]
    return AttributeChart(axis.ticks, axis.at(0), lane, rows, unit)


def _in_order(lanes: Sequence[_Lane]) -> list[_Lane]:
    return sorted(lanes, key=lambda part: part.style.place)


def _mark(part: _Lane, place: int, lane: int, axis: Axis) -> DropMark:
    y = lane * place + lane // 2 + 1
    return DropMark(
        style=part.style,
        y=y,
        at=axis.at(part.value),
        low=axis.at(part.low),
        high=axis.at(part.high),
        filled=part.clear,
        told=part.told,
    )


def _value(part: _Lane) -> AttributeValue:
    return AttributeValue(
        part.style, f"{number(part.value)} [{number(part.low)}, {number(part.high)}]", part.done, part.clear
    )


_STRONGEST = 60.0  # percent of colour: text on it must stay readable
_LEAST_FULL_HEAT = 10.0  # points; a table of tiny drops must not glow


class Cell(NamedTuple):
    """What one attribute costs one model."""

    style: Style
    drop: float
    told: str
    interval: str
    letters: str  # of the tied group; models that share one cannot be told apart
    significant: bool
    heat: float  # percent of colour
    worse: bool


class HeatMap(NamedTuple):
    """One row per attribute, one column per model."""

    looks: list[Style]
    rows: list[tuple[str, list[Cell | None]]]
    lettered: bool


def heat_map(content: ReportInput) -> HeatMap | None:
    """All edits and levels of an attribute together; None where there is but one model, or nothing to show."""
    rows = [row for row in content.attribute_drops if row.attribute != "presence" and row.n >= FEWEST_PHOTOS]
    looks = list(styles([row.model for row in content.drops]).values())
    if len(looks) < 2 or not rows:
        return None
    full = max(_LEAST_FULL_HEAT, *(abs(row.drop) for row in rows))
    found = {(row.attribute, row.model): row for row in rows}
    lines = [
        (
            sentence_start(attribute_name(name)),
            [_cell(found.get((name, style.model)), style, full, content) for style in looks],
        )
        for name in dict.fromkeys(row.attribute for row in rows)
    ]
    if content.means:
        lines.append(("Mean of the edits", [_mean(content.means.get(style.model), style, full) for style in looks]))
    return HeatMap(looks, lines, any(content.letters.values()))


def _mean(row: Estimate | None, style: Style, full: float) -> Cell | None:
    """ImageNet-E's summary: every edit and level counts once, control and diagnostics left out."""
    if row is None or row.n < FEWEST_PHOTOS or math.isnan(row.value):
        return None
    clear = row.ci_low > 0 or row.ci_high < 0
    heat = round(min(_STRONGEST, _STRONGEST * abs(row.value) / full), 1)
    return Cell(
        style=style,
        drop=row.value,
        told=number(row.value),
        interval=interval(row),
        letters="",
        significant=clear,
        heat=heat,
        worse=row.value > 0,
    )


def _cell(row: Drop | None, style: Style, full: float, content: ReportInput) -> Cell | None:
    if row is None or math.isnan(row.drop):
        return None
    return Cell(
        style=style,
        drop=row.drop,
        told=number(row.drop),
        interval=interval(row),
        letters=content.letters.get((row.attribute, row.model), ""),
        significant=is_significant(row),
        heat=round(_STRONGEST * abs(row.drop) / full, 1),
        worse=row.drop > 0,
    )
