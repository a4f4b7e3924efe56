"""The charts of a report as drawings, and their files in figures/."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from counterfoil.report.attribute_chart import build_kinds_chart, build_losses_chart
from counterfoil.report.attribute_sections import build_sections
from counterfoil.report.chart_parts import Style, assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.dose_chart import DoseChart, DoseLine
from counterfoil.report.drawing import (
    GRID,
    INK,
    MODELS,
    MUTED,
    Drawing,
    DrawnLine,
    DrawnMark,
    Item,
    Label,
    blend_with_white,
    to_pdf,
    to_png,
    to_svg,
)
from counterfoil.report.forest_chart import ForestChart, ForestRow
from counterfoil.report.reliability import SIDE, ReliabilityMark, ReliabilityPanel, build_reliability_panels
from counterfoil.report.words import format_number, mark_surrogate
from counterfoil.study.runs import find_surrogates

_WIDTH = 480.0  # points: the text width of a page
_LEFT, _RIGHT, _TOP = 150.0, 84.0, 10.0
_LANE, _GAP, _LEGEND = 10.0, 6.0, 12.0
_BAND, _BAND_WIDTH = 0.24, 5.0  # share of colour and width of the band of tool uncertainty
_LETTERS = 38  # of a line beside a row
_PANEL = 118.0  # side of a reliability chart


class _Frame(NamedTuple):
    """The position of a chart in its drawing."""

    left: float
    top: float
    width: float
    height: float


def export_svg(content: ReportContent) -> dict[str, str]:
    """Return figures/<name>.svg of every chart that can be drawn."""
    return {f"figures/{name}.svg": to_svg(drawing) for name, drawing in draw_charts(content)}


def export_pdf(content: ReportContent) -> dict[str, bytes]:
    """Return figures/<name>.pdf of every chart that can be drawn."""
    return {f"figures/{name}.pdf": to_pdf(drawing) for name, drawing in draw_charts(content)}


def export_png(content: ReportContent) -> dict[str, bytes]:
    """Return figures/<name>.png of every chart that can be drawn."""
    return {f"figures/{name}.png": to_png(drawing) for name, drawing in draw_charts(content)}


def draw_charts(content: ReportContent) -> Iterator[tuple[str, Drawing]]:
    """Yield the name and the drawing of every chart of the page that can be drawn."""
    styles = assign_styles([*content.run.models, *(row.model for row in content.drops)])
    legend = list(_draw_legend(list(styles.values()), content))
    losses, kinds = build_losses_chart(content, styles), build_kinds_chart(content, styles)
    if losses is not None:
        yield "losses", _draw_forest(losses, legend, len(styles))
    if kinds is not None:
        yield "accuracies", _draw_forest(kinds, legend, len(styles))
    for section in build_sections(content, [], styles) if losses is not None else []:
        name = re.sub(r"[^A-Za-z0-9.]+", "-", section.attribute)
        if section.edits is not None:
            yield f"edits-{name}", _draw_forest(section.edits, legend, len(styles))
        if section.curve is not None:
            yield f"{section.curve.kind}-{name}", _draw_dose(section.curve, legend, len(styles))
    panels = build_reliability_panels(content.confidences, styles, "edited" if content.has_drops else "all pictures")
    if panels:
        yield "calibration", _draw_panels(panels, legend, len(styles))


def _draw_forest(chart: ForestChart, legend: Sequence[Item], models: int) -> Drawing:
    top = _TOP + _LEGEND * models + 8
    heights = [max(_LANE * len(row.values), 22.0 if row.what.note else 12.0) + _GAP for row in chart.rows]
    bottom = top + sum(heights)
    width = _WIDTH - _LEFT - _RIGHT
    items: list[Item] = list(legend)
    for tick in chart.ticks:
        x = _LEFT + width * tick.at / 100
        items.append(DrawnLine(x, top, x, bottom, MUTED if tick.value == 0 else GRID, 0.8 if tick.value == 0 else 0.5))
        items.append(Label(x, bottom + 11, format_number(tick.value, 0), 7, "middle", MUTED))
    caption = "points of accuracy lost" if chart.unit == "points" else "percent right"
    bands = "; pale: with the editing tool's own uncertainty" if chart.has_bands else ""
    items.append(Label(_LEFT + width / 2, bottom + 22, f"{caption}, 95 % interval{bands}", 7, "middle", MUTED))
    y = top
    for row, height in zip(chart.rows, heights, strict=True):
        items += _draw_forest_row(row, _Frame(_LEFT, y, width, height - _GAP))
        y += height
    return Drawing(_WIDTH, bottom + 28, items)


def _draw_forest_row(row: ForestRow, frame: _Frame) -> Iterator[Item]:
    left, top, width, height = frame
    middle = top + height / 2
    yield Label(4, middle + (-1 if row.what.note else 3), _cut(row.what.name), 8, bold=True)
    if row.what.note:
        yield Label(4, middle + 8, _cut(row.what.note), 6.5, colour=MUTED)
    for place, value in enumerate(row.values):
        y = top + height * (place + 0.5) / len(row.values) + 2.5
        yield Label(_WIDTH - _RIGHT + 6, y, value.text, 6.5, colour=MODELS[value.style.colour], bold=value.filled)
    for mark in row.marks:
        y, colour = top + height * mark.y / 100, MODELS[mark.style.colour]
        low, at, high = (left + width * value / 100 for value in (mark.low, mark.at, mark.high))
        if mark.band:
            first, last = (left + width * value / 100 for value in mark.band)
            yield DrawnLine(first, y, last, y, blend_with_white(colour, _BAND), _BAND_WIDTH)
        yield DrawnLine(low, y, high, y, colour, 1.2)
        yield DrawnMark(at, y, mark.style.place, mark.filled)


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"


def _draw_dose(chart: DoseChart, legend: Sequence[Item], models: int) -> Drawing:
    frame = _Frame(34.0, _TOP + _LEGEND * models + 8, _WIDTH - 44.0, 170.0)
    bottom, scale = frame.top + frame.height, frame.height / chart.height
    items: list[Item] = list(legend)
    for tick in chart.y_ticks:
        y = frame.top + tick.at * scale
        items.append(DrawnLine(frame.left, y, frame.left + frame.width, y, GRID, 0.5))
        items.append(Label(frame.left - 5, y + 2.5, format_number(tick.value, 0), 7, "end", MUTED))
    for place in chart.x_ticks:
        items.append(Label(frame.left + frame.width * place.at / 100, bottom + 11, place.text, 7, "middle", MUTED))
    across = "share of the picture that the object covers; " if chart.name == "size" else ""
    caption = f"{across}accuracy in percent, 95 % interval of the points lost"
    items.append(Label(frame.left + frame.width / 2, bottom + 22, caption, 7, "middle", MUTED))
    for line in chart.lines:
        items += _draw_dose_line(line, frame, scale)
    return Drawing(_WIDTH, bottom + 28, items)


def _draw_dose_line(line: DoseLine, frame: _Frame, scale: float) -> Iterator[Item]:
    colour = MODELS[line.style.colour]
    places = [(frame.left + frame.width * mark.x / 100 + line.shift / 2, mark) for mark in line.marks]
    for (x, mark), (next_x, following) in itertools.pairwise(places):
        yield DrawnLine(x, frame.top + mark.y * scale, next_x, frame.top + following.y * scale, colour, 0.7)
    for x, mark in places:
        low, high, y = (frame.top + value * scale for value in (mark.low, mark.high, mark.y))
        if mark.band:
            first, last = (frame.top + value * scale for value in mark.band)
            yield DrawnLine(x, first, x, last, blend_with_white(colour, _BAND), _BAND_WIDTH)
        yield DrawnLine(x, low, x, high, colour, 1.2)
        yield DrawnMark(x, y, line.style.place, mark.filled)


def _draw_panels(panels: Sequence[ReliabilityPanel], legend: Sequence[Item], models: int) -> Drawing:
    """Confidence against accuracy, three charts in a row."""
    top, step = _TOP + _LEGEND * models + 10, _WIDTH / 3
    items: list[Item] = list(legend)
    for place, panel in enumerate(panels):
        frame = _Frame(step * (place % 3) + 26, top + (_PANEL + 30) * (place // 3), _PANEL, _PANEL)
        items += _draw_panel(panel, frame)
    bottom = top + (_PANEL + 30) * -(-len(panels) // 3) + 8
    caption = "confidence across, percent right up; hollow: unedited photos"
    items.append(Label(_WIDTH / 2, bottom - 4, caption, 7, "middle", MUTED))
    return Drawing(_WIDTH, bottom, items)


def _draw_panel(panel: ReliabilityPanel, frame: _Frame) -> Iterator[Item]:
    left, top, width, height = frame
    yield DrawnLine(left, top + height, left + width, top, GRID, 0.6, dashed=True)
    for x1, y1, x2, y2 in ((0, 0, 0, 1), (0, 1, 1, 1)):
        yield DrawnLine(left + width * x1, top + height * y1, left + width * x2, top + height * y2, GRID, 0.6)
    for share in (0, 50, 100):
        yield Label(left + width * share / 100, top + height + 10, str(share), 6.5, "middle", MUTED)
        yield Label(left - 4, top + height * (1 - share / 100) + 2.5, str(share), 6.5, "end", MUTED)
    for marks, filled in ((panel.before, False), (panel.after, True)):
        points = [_reliability_point(mark, frame) for mark in marks]
        for first, second in itertools.pairwise(points):
            yield DrawnLine(*first, *second, MODELS[panel.style.colour], 0.7)
        for x, y in points:
            yield DrawnMark(x, y, panel.style.place, filled)


def _reliability_point(mark: ReliabilityMark, frame: _Frame) -> tuple[float, float]:
    return frame.left + frame.width * mark.x / SIDE, frame.top + frame.height * mark.y / SIDE


def _draw_legend(styles: Sequence[Style], content: ReportContent) -> Iterator[Item]:
    surrogates = find_surrogates(content.run)
    for place, style in enumerate(styles):
        y = _TOP + _LEGEND * place
        yield DrawnMark(8, y - 2.6, style.place)
        yield Label(16, y, mark_surrogate(style.model, surrogates), 7.5, colour=INK)
