"""mining.html: the page of mining, with its charts of transfer and of the curves by number of surrogates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from counterfoil.mining import mining_words
from counterfoil.mining.mining_results import ALL, Curve, CurvePoint, MiningContent, Transfer, Yield
from counterfoil.report import words
from counterfoil.report.chart_parts import Axis, Style, Tick, assign_styles
from counterfoil.report.gallery import EmbeddedPictures, GallerySource, build_gallery, title_card
from counterfoil.report.page import create_environment, embed_script
from counterfoil.report.words import describe_donor_confusion, describe_interval, format_interval, format_number
from counterfoil.statistics.intervals import Estimate

_HEIGHT = 260  # pixels
_DODGE = 7  # pixels between the whiskers of two models


class CurveMark(NamedTuple):
    """One point of a curve; x in percent of the width, y in pixels."""

    x: float
    y: float
    low: float
    high: float
    label: str


class CurveLine(NamedTuple):
    """The curve of one unseen model."""

    style: Style
    shift: float  # pixels to the right, so that whiskers do not overlap
    held_out: bool  # a surrogate, over groups without it: drawn hollow
    marks: list[CurveMark]


class SizeChart(NamedTuple):
    """Chart of a share against the number of surrogates."""

    title: str
    height: int
    x_ticks: list[Tick]
    y_ticks: list[Tick]  # `at` in pixels from the top
    lines: list[CurveLine]


class TransferMark(NamedTuple):
    """A target's failures on all candidates and on the kept pictures, in percent of the width."""

    style: Style
    name: str
    family: str
    base: float
    at: float
    low: float
    high: float
    value: str
    label: str


def draw_size_charts(curves: Sequence[Curve], styles: Mapping[str, Style]) -> list[SizeChart]:
    """Draw difficulty and transfer, each where there is a number to draw."""
    kinds: list[tuple[str, Callable[[CurvePoint], Estimate]]] = [
        ("Accuracy on the chosen pictures", lambda point: point.accuracy),
        ("Failures where the original is right", lambda point: point.transfer),
    ]
    charts = [_chart(title, value, curves, styles) for title, value in kinds]
    return [chart for chart in charts if any(line.marks for line in chart.lines)]


def mark_transfers(transfers: Sequence[Transfer], styles: Mapping[str, Style]) -> list[TransferMark]:
    """Return one lane per target; none for a target without answers to kept pictures."""
    return [
        TransferMark(
            style=styles[row.name],
            name=row.name,
            family=row.family,
            base=_or_zero(row.base.value),
            at=row.failing.value,
            low=row.failing.ci_low,
            high=row.failing.ci_high,
            value=f"{format_number(row.failing.value)} {format_interval(row.failing)}",
            label=f"{row.name}: fails on {format_number(row.failing.value)} % of the kept pictures, "
            f"{describe_interval(row.failing.ci_low, row.failing.ci_high)}; "
            f"on {format_number(row.base.value)} % of all",
        )
        for row in transfers
        if row.failing.n
    ]


def _chart(
    title: str, value: Callable[[CurvePoint], Estimate], curves: Sequence[Curve], styles: Mapping[str, Style]
) -> SizeChart:
    sizes = sorted({point.size for curve in curves for point in curve.points})
    x_axis = Axis(0.5, max(sizes, default=1) + 0.5, tuple(float(size) for size in sizes))
    y_axis = Axis.linear([100.0], most_ticks=5)
    lines = []
    for place, curve in enumerate(curves):
        shift = _DODGE * (place - (len(curves) - 1) / 2)
        marks = [_mark(curve.model, point, value(point), x_axis) for point in curve.points]
        drawn = [mark for mark in marks if not math.isnan(mark.y)]
        lines.append(CurveLine(styles[curve.model], shift, curve.role == "surrogate", drawn))
    return SizeChart(title, _HEIGHT, x_axis.ticks, y_axis.ticks_from_top(_HEIGHT), lines)


def _mark(model: str, point: CurvePoint, value: Estimate, axis: Axis) -> CurveMark:
    label = (
        f"{model}, chosen by {point.size}: {format_number(value.value)} %, "
        f"{describe_interval(value.ci_low, value.ci_high)}, mean over {point.groups} groups"
    )
    low, high = (_from_top(value.value if math.isnan(end) else end) for end in (value.ci_low, value.ci_high))
    return CurveMark(axis.at(point.size), _from_top(value.value), low, high, label)


def _from_top(value: float) -> float:
    return round(_HEIGHT * (1 - value / 100), 2)


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


_TEMPLATES = Path(__file__).parent / "templates"
_MOST_CLASSES = 100  # in the table; all of them are in mining.json


def render_mining(content: MiningContent) -> str:
    """Render the page; text from files, labels or models is escaped, and only our own script may run."""
    styles = assign_styles([model.name for model in content.models])
    pictures = EmbeddedPictures()
    filters = (
        words.format_count,
        words.format_number,
        words.format_p_value,
        words.capitalize_first,
        words.join_without_breaks,
    )
    return (
        create_environment(*filters, words.format_interval, title_card, describe_donor_confusion, templates=_TEMPLATES)
        .get_template("mining.html")
        .render(
            content=content,
            styles=styles,
            words=mining_words,
            bars=_bars(content),
            transfer_marks=mark_transfers(content.transfers, styles),
            size_charts=draw_size_charts(content.curves, styles),
            gallery=build_gallery(GallerySource(content.examples, content.names, styles), pictures),
            pictures=list(pictures.addresses.values()),
            classes=content.classes[:_MOST_CLASSES],
            **embed_script("tables.js", "report.js"),
        )
    )


def _bars(content: MiningContent) -> list[Yield]:
    """Attributes, and their edits where an attribute has several."""
    edits = Counter(row.attribute for row in content.yields if row.edit != ALL and row.level == ALL)
    return [row for row in content.yields if row.level == ALL and (row.edit == ALL or edits[row.attribute] > 1)]
