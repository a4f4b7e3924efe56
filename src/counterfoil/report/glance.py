"""The chart of the first screen: what breaks which model, by how much, how surely; the template draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.analyse import FEWEST_PHOTOS, significant
from counterfoil.analyse.accuracies import GroupAccuracy
from counterfoil.report.accuracy_chart import PERCENT
from counterfoil.report.accuracy_headline import kind_name, kinds_of
from counterfoil.report.axis import Axis, Tick, straight_axis
from counterfoil.report.content import ReportInput
from counterfoil.report.costliest import costliest
from counterfoil.report.drops_chart import Mark
from counterfoil.report.edit_words import doing
from counterfoil.report.looks import Style, styles
from counterfoil.report.model_findings import SURFACE
from counterfoil.report.surrogates import surrogates_among
from counterfoil.report.wording import attribute_name, interval, number, points, sentence_start
from counterfoil.types import Drop

_LANE, _NARROW_LANE = 15, 9  # pixels for each model of a row
_MOST_MODELS_WITH_VALUES = 4
_MOST_KINDS = 16  # of pictures; nuisances come by the hundred


class GlanceValue(NamedTuple):
    """What stands beside a mark: the number, and what was done where that says more than the row's name."""

    style: Style
    value: str
    done: str
    clear: bool


class GlanceRow(NamedTuple):
    """One attribute, or one kind of picture; a lane per model."""

    name: str
    surface: bool
    height: int
    marks: list[Mark]
    values: list[GlanceValue]
    done: str  # what was done, once for all models; a narrow screen has no room for it beside every value


class Glance(NamedTuple):
    """What costs most stands first; surface edits, which every model fails on, stand last."""

    ticks: list[Tick]
    zero: float
    lane: int
    rows: list[GlanceRow]
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


def glance(content: ReportInput) -> Glance | None:
    """Accuracies of chosen pictures and of those without originals, else drops; None where all photos are too few."""
    first, second = (_accuracies, _drops) if content.chosen else (_drops, _accuracies)
    return first(content) or second(content)


def _drops(content: ReportInput) -> Glance | None:
    enough = [row for row in content.drops if row.n >= FEWEST_PHOTOS]
    looks = styles([row.model for row in content.drops])
    found = [row for model in looks for row in costliest([row for row in enough if row.model == model])]
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
    clear = significant(row)
    told = f"{row.model}, {row.attribute}: {doing(row)}, drop {points(row)}"
    told += f", {'significant' if clear else 'not significant'}, n = {row.n}"
    return _Lane(looks[row.model], row.drop, row.ci_low, row.ci_high, clear, told, doing(row))


def _accuracies(content: ReportInput) -> Glance | None:
    surrogates = surrogates_among(content.run)
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
    return _Lane(looks[row.model], rate.value, rate.ci_low, rate.ci_high, row.model not in surrogates, told, "")


def _drawn(
    named: Sequence[tuple[str, bool, Sequence[_Lane]]], axis: Axis, looks: Mapping[str, Style], unit: str
) -> Glance:
    narrow = len(looks) > _MOST_MODELS_WITH_VALUES
    lane = _NARROW_LANE if narrow else _LANE
    rows = [
        GlanceRow(
            name,
            surface,
            lane * len(lanes),
            [_mark(part, place, lane, axis) for place, part in enumerate(_in_order(lanes))],
            [] if narrow else [_value(part) for part in _in_order(lanes)],
            "; ".join(dict.fromkeys(part.done for part in _in_order(lanes) if part.done)),
        )
        for name, surface, lanes in named
    ]
    return Glance(axis.ticks, axis.at(0), lane, rows, unit)


def _in_order(lanes: Sequence[_Lane]) -> list[_Lane]:
    return sorted(lanes, key=lambda part: part.style.place)


def _mark(part: _Lane, place: int, lane: int, axis: Axis) -> Mark:
    y = lane * place + lane // 2 + 1
    return Mark(part.style, y, axis.at(part.value), axis.at(part.low), axis.at(part.high), part.clear, part.told)


def _value(part: _Lane) -> GlanceValue:
    return GlanceValue(
        part.style, f"{number(part.value)} [{number(part.low)}, {number(part.high)}]", part.done, part.clear
    )
