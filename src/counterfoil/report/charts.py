"""Chart of accuracies; axes of charts; chart of drops; colours and marks of models; drop against accuracy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from counterfoil.report.report_input import ReportInput
from counterfoil.report.words import MARK, attribute_name, count, interval, number
from counterfoil.statistics.accuracy import ALL, GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS, is_significant
from counterfoil.types import Drop

_ROUND_STEPS = (1, 2, 5, 10)
_LOGARITHMIC_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


class Tick(NamedTuple):
    """A labelled place on an axis."""

    at: float  # percent of the axis
    value: float
    odd: bool = False  # an odd number of steps from zero: the label to leave out where room is scarce


@dataclass(frozen=True)
class Axis:
    """A stretch of values, straight or logarithmic, with its ticks."""

    low: float
    high: float
    tick_values: tuple[float, ...]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value, in percent from the low end."""
        low, high, value = (math.log(x) if self.logarithmic else x for x in (self.low, self.high, value))
        return round(100 * (value - low) / (high - low), 3)

    @property
    def ticks(self) -> list[Tick]:
        """The ticks from low to high."""
        step = self.tick_values[-1] - self.tick_values[-2] if len(self.tick_values) > 1 else 1.0
        return [Tick(self.at(value), value, round(value / step) % 2 == 1) for value in self.tick_values]


def straight_axis(values: Sequence[float], most_ticks: int = 8) -> Axis:
    """An axis from tick to tick that holds all values and zero."""
    low, high = min(0.0, *values), max(0.0, *values)
    step = _round_step(max(high - low, 1.0) / most_ticks)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    ticks = tuple(step * position for position in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def snug_axis(values: Sequence[float], most_ticks: int = 6) -> Axis:
    """An axis from tick to tick about the values, zero or not, with room at both ends."""
    low, high = min(values), max(values)
    step = _round_step(max(high - low, 1.0) / (most_ticks - 2))
    first, last = math.ceil(low / step) - 1, math.floor(high / step) + 1
    ticks = tuple(step * position for position in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def logarithmic_axis(values: Sequence[float], margin: float = 1.25) -> Axis:
    """An axis that holds all values, which are above zero, with some room at both ends."""
    low, high = min(values) / margin, max(values) * margin
    return Axis(low, high, tuple(tick for tick in _LOGARITHMIC_TICKS if low <= tick <= high), logarithmic=True)


def _round_step(least: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(least))
    return next(magnitude * step for step in _ROUND_STEPS if magnitude * step >= least * 0.999)


_COLOURS = 6
_SHAPES = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
    "M-4.2-4.2h8.4v8.4h-8.4z",
    "M0-5.8L5.8 0L0 5.8L-5.8 0z",
    "M0-5.4L5.4 4.2H-5.4z",
)


class Style(NamedTuple):
    """How one model looks in every chart: a colour and a shape, so that neither is needed alone."""

    model: str
    place: int  # in the table; the page's switches name a model by it
    colour: int
    shape: str  # an SVG path about the origin


def styles(models: Sequence[str]) -> dict[str, Style]:
    """A look for every model, by its place in the table."""
    return {
        model: Style(model, position, position % _COLOURS, _SHAPES[position % len(_SHAPES)])
        for position, model in enumerate(dict.fromkeys(models))
    }


LANE = 20  # pixels between two models in one row


class DropMark(NamedTuple):
    """One drop: a dot with whiskers, in percent of the width."""

    style: Style
    y: int
    at: float
    low: float
    high: float
    filled: bool
    told: str


class DropsRow(NamedTuple):
    """One edit at one level, a lane per model."""

    edit: str
    level: str
    photos: str
    height: int  # pixels
    marks: list[DropMark]
    values: list[tuple[Style, str]]


class DropsChart(NamedTuple):
    """Drops with their intervals, grouped by attribute."""

    ticks: list[Tick]
    zero: float
    groups: list[tuple[str, str, list[DropsRow]]]  # attribute, what people call it, its rows


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
    groups: dict[str, list[DropsRow]] = {}
    for level, members in levels.items():
        groups.setdefault(level.attribute, []).append(_row(level, members, looks, axis))
    named = [(attribute, attribute_name(attribute), members) for attribute, members in groups.items()]
    return DropsChart(axis.ticks, axis.at(0), named)


def _drawable(row: Drop) -> bool:
    return row.n >= FEWEST_PHOTOS and not math.isnan(row.drop)


def _row(level: _Level, members: Sequence[Drop], looks: dict[str, Style], axis: Axis) -> DropsRow:
    marks = [
        DropMark(
            looks[row.model],
            y=LANE * place + LANE // 2,
            at=axis.at(row.drop),
            low=axis.at(row.ci_low),
            high=axis.at(row.ci_high),
            filled=is_significant(row),
            told=_drop_text(row),
        )
        for place, row in enumerate(members)
        if _drawable(row)
    ]
    fewest, most = min(row.n for row in members), max(row.n for row in members)
    photos = f"n = {most}" if fewest == most else f"n = {fewest}–{most}"
    values = [(looks[row.model], _value(row)) for row in members]
    return DropsRow(level.edit, level.level, photos, LANE * len(members), marks, values)


def _value(row: Drop) -> str:
    return f"{number(row.drop)} {interval(row)}" if _drawable(row) else ("too few" if row.n else "no data")


def _drop_text(row: Drop) -> str:
    verdict = "significant" if is_significant(row) else "not significant"
    return (
        f"{row.model}, {row.edit} {row.level}: drop {number(row.drop)} points, 95 % interval {number(row.ci_low)} to "
        f"{number(row.ci_high)}, {verdict}, n = {row.n}"
    )


_MOST_LEVELS = 25  # of an edit; with more, such as one per prompt, the table alone has each
PERCENT = Axis(0.0, 100.0, tuple(range(0, 101, 10)))


def accuracy_chart(rows: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> DropsChart | None:
    """Every group of pictures, a lane per model; hollow marks are surrogates. None where nothing can be drawn."""
    if not any(_drawable_accuracies(row) for row in rows):
        return None
    looks = styles([row.model for row in rows])
    groups: dict[tuple[str, str, str], list[GroupAccuracy]] = {}
    levels = Counter((row.attribute, row.edit) for row in rows)
    for row in rows:
        if row.level == ALL or levels[row.attribute, row.edit] <= _MOST_LEVELS * len(looks):
            groups.setdefault((row.attribute, row.edit, row.level), []).append(row)
    shelves: dict[str, list[DropsRow]] = {}
    for (attribute, _, _), members in groups.items():
        shelves.setdefault(attribute, []).append(_accuracy_row(members, looks, surrogates))
    named = [(name, "all pictures" if name == ALL else attribute_name(name), lines) for name, lines in shelves.items()]
    return DropsChart(PERCENT.ticks, PERCENT.at(0), named)


def _drawable_accuracies(row: GroupAccuracy) -> bool:
    return row.photos >= FEWEST_PHOTOS


def _accuracy_row(members: Sequence[GroupAccuracy], looks: dict[str, Style], surrogates: Sequence[str]) -> DropsRow:
    marks = [
        DropMark(
            looks[row.model],
            y=LANE * place + LANE // 2,
            at=PERCENT.at(row.top1.value),
            low=PERCENT.at(row.top1.ci_low),
            high=PERCENT.at(row.top1.ci_high),
            filled=row.model not in surrogates,
            told=_accuracy_text(row, surrogates),
        )
        for place, row in enumerate(members)
        if _drawable_accuracies(row)
    ]
    fewest, most = min(row.top1.n for row in members), max(row.top1.n for row in members)
    pictures = f"n = {count(most)}" if fewest == most else f"n = {count(fewest)}–{count(most)}"
    first = members[0]
    edit = "together" if first.edit == ALL else first.edit
    level = ("together" if first.edit != ALL else "") if first.level == ALL else first.level
    return DropsRow(
        edit, level, pictures, LANE * len(members), marks, [(looks[row.model], _accuracy_value(row)) for row in members]
    )


def _accuracy_value(row: GroupAccuracy) -> str:
    if _drawable_accuracies(row):
        return f"{number(row.top1.value)} {interval(row.top1)}"
    return "too few" if row.top1.n else "no data"


def _accuracy_text(row: GroupAccuracy, surrogates: Sequence[str]) -> str:
    kind = " ".join(name for name in (row.attribute, row.edit, row.level) if name not in (ALL, "")) or "all pictures"
    mark = f", {MARK}" if row.model in surrogates else ""
    return (
        f"{row.model}{mark}, {kind}: right on {number(row.top1.value)} %, 95 % interval {number(row.top1.ci_low)} to "
        f"{number(row.top1.ci_high)}, n = {row.top1.n}"
    )


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
        style=style,
        x=axes[0].at(row.accuracy_original),
        y=_down(axes[1], value),
        low=_down(axes[1], low),
        high=_down(axes[1], high),
        filled=is_significant(row),
        told=f"{row.model}: {number(row.accuracy_original)} % right before, {kind} {number(value)}, "
        f"95 % interval {number(low)} to {number(high)}",
    )


def _values(row: Drop, kind: str) -> tuple[float, float, float]:
    if kind == "drop":
        return row.drop, row.ci_low, row.ci_high
    low, high = max(0.0, row.accuracy_original - row.ci_high), min(100.0, row.accuracy_original - row.ci_low)
    return row.accuracy, low, high


def _down(axis: Axis, value: float) -> float:
    return round(HEIGHT * (1 - axis.at(value) / 100), 2)
