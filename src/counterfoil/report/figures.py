"""Figures for papers: the report's charts as drawings, and their files in figures/."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from counterfoil.report.chart_parts import PointMark, Style, assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.dose_chart import DoseChart, DoseLine, build_dose_charts
from counterfoil.report.drawing import (
    BETTER,
    GRID,
    INK,
    MODELS,
    MUTED,
    WORSE,
    Drawing,
    DrawnBox,
    DrawnLine,
    DrawnMark,
    Item,
    Label,
    blend_with_white,
    to_pdf,
    to_png,
    to_svg,
)
from counterfoil.report.forest_chart import LANE, ForestChart, ForestRow, build_accuracy_chart, build_drops_chart
from counterfoil.report.heat_maps import Cell, build_heat_map
from counterfoil.report.scatter_chart import HEIGHT, Panel, build_scatter_chart
from counterfoil.report.words import capitalize_first, format_number, mark_surrogate, name_attribute
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Run

_WIDTH = 480.0  # points: the text width of a page
_LEFT, _RIGHT, _TOP = 130.0, 100.0, 10.0
_LANE, _GAP, _LEGEND = 9.0, 5.0, 12.0
_LETTER = 0.6  # width of a letter relative to its size, bold ones included
_VALUE, _INTERVAL = 8.0, 6.5  # font sizes in a cell


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
    """Yield the name and the drawing of every chart that can be drawn."""
    drawings = {
        "drops": _draw_drops(content),
        "accuracies": _draw_accuracies(content),
        "attributes": _draw_heat_map(content),
        "scatter": _draw_scatter(content),
    }
    yield from ((name, drawing) for name, drawing in drawings.items() if drawing is not None)
    for chart in build_dose_charts(content.drops):
        yield f"dose-{re.sub(r'[^A-Za-z0-9.]+', '-', chart.edit)}", _draw_dose(chart, content.run)


def _draw_drops(content: ReportContent) -> Drawing | None:
    chart = build_drops_chart(content.drops)
    styles = assign_styles([row.model for row in content.drops])
    caption = "drop in points of accuracy, 95 % interval"
    return _draw_forest(chart, list(styles.values()), content.run, caption) if chart else None


def _draw_accuracies(content: ReportContent) -> Drawing | None:
    """Accuracies of pictures without originals; hollow marks are surrogates."""
    if content.has_drops:
        return None
    chart = build_accuracy_chart(content.accuracies, find_surrogates(content.run))
    styles = assign_styles([row.model for row in content.accuracies])
    caption = "top-1 accuracy in percent, 95 % interval"
    return _draw_forest(chart, list(styles.values()), content.run, caption) if chart else None


def _draw_forest(chart: ForestChart, styles: Sequence[Style], run: Run, caption: str) -> Drawing:
    rows = [(name if not place else "", row) for _, name, group in chart.groups for place, row in enumerate(group)]
    top = _TOP + _LEGEND * len(styles) + 8
    bottom = top + sum(_LANE * len(row.values) + _GAP + (10 if name else 0) for name, row in rows)
    width = _WIDTH - _LEFT - _RIGHT
    items: list[Item] = list(_draw_legend(styles, run))
    for tick in chart.ticks:
        x = _LEFT + width * tick.at / 100
        items.append(DrawnLine(x, top, x, bottom, MUTED if tick.value == 0 else GRID, 0.8 if tick.value == 0 else 0.5))
        items.append(Label(x, bottom + 11, format_number(tick.value, 0), 7, "middle", MUTED))
    items.append(Label(_LEFT + width / 2, bottom + 22, caption, 7, "middle", MUTED))
    y = top
    for name, row in rows:
        if name:
            items.append(Label(4, y + 8, capitalize_first(name), 8, bold=True))
            y += 10
        items += _draw_forest_row(row, y, width)
        y += _LANE * len(row.values) + _GAP
    return Drawing(_WIDTH, bottom + 28, items)


def _draw_forest_row(row: ForestRow, top: float, width: float) -> Iterator[Item]:
    name = row.edit if row.level in ("", row.edit) else f"{row.edit} {row.level}"
    yield Label(10, top + _LANE * len(row.values) / 2 + 2.5, name, 7.5)
    for place, (style, value) in enumerate(row.values):
        yield Label(_WIDTH - _RIGHT + 6, top + _LANE * place + 7, value, 6.5, colour=MODELS[style.colour])
    for mark in row.marks:
        y = top + _LANE * mark.y / LANE
        low, at, high = (_LEFT + width * value / 100 for value in (mark.low, mark.at, mark.high))
        yield DrawnLine(low, y, high, y, MODELS[mark.style.colour], 1.2)
        yield DrawnMark(at, y, mark.style.place, mark.filled)


def _draw_dose(chart: DoseChart, run: Run) -> Drawing:
    frame = _Frame(34.0, _TOP + _LEGEND * len(chart.lines) + 8, _WIDTH - 44.0, 170.0)
    bottom, scale = frame.top + frame.height, frame.height / chart.height
    items: list[Item] = list(_draw_legend([line.style for line in chart.lines], run))
    for tick in chart.y_ticks:
        y = frame.top + tick.at * scale
        items.append(DrawnLine(frame.left, y, frame.left + frame.width, y, GRID, 0.5))
        items.append(Label(frame.left - 5, y + 2.5, format_number(tick.value, 0), 7, "end", MUTED))
    for tick in chart.x_ticks:
        x = frame.left + frame.width * tick.at / 100
        items.append(Label(x, bottom + 11, f"{tick.value:g}{chart.unit}", 7, "middle", MUTED))
    strength = "share of the picture that the object covers" if chart.edit == "size" else chart.edit
    caption = f"{strength}; accuracy in percent, 95 % interval of the drop"
    items.append(Label(frame.left + frame.width / 2, bottom + 22, caption, 7, "middle", MUTED))
    for line in chart.lines:
        items += _draw_dose_line(line, frame, scale)
    return Drawing(_WIDTH, bottom + 28, items)


def _draw_dose_line(line: DoseLine, frame: _Frame, scale: float) -> Iterator[Item]:
    colour, original = MODELS[line.style.colour], frame.top + line.original * scale
    yield DrawnLine(frame.left, original, frame.left + frame.width, original, colour, 0.6, dashed=True)
    places = [(frame.left + frame.width * mark.x / 100 + line.shift / 2, mark) for mark in line.marks]
    for (x, mark), (next_x, following) in itertools.pairwise(places):
        yield DrawnLine(x, frame.top + mark.y * scale, next_x, frame.top + following.y * scale, colour, 0.7)
    for x, mark in places:
        yield from _draw_point(mark, x, frame.top, scale)


def _draw_point(mark: PointMark, x: float, top: float, scale: float) -> Iterator[Item]:
    low, high, y = (top + value * scale for value in (mark.low, mark.high, mark.y))
    yield DrawnLine(x, low, x, high, MODELS[mark.style.colour], 1.2)
    yield DrawnMark(x, y, mark.style.place, mark.filled)


def _draw_heat_map(content: ReportContent) -> Drawing | None:
    chart = build_heat_map(content)
    if chart is None:
        return None
    left, height = 84.0, 26.0
    width = (_WIDTH - left) / len(chart.styles)
    top = _TOP + _LEGEND * len(chart.styles) + 14
    shrink = _shrink([cell for _, cells in chart.rows for cell in cells if cell is not None], width)
    items: list[Item] = [*_draw_legend(chart.styles, content.run)]
    items += [DrawnMark(left + width * (place + 0.5), top - 7, place) for place in range(len(chart.styles))]
    for row, (name, cells) in enumerate(chart.rows):
        y = top + height * row
        items.append(Label(2, y + height / 2 + 3, name, 8, bold=True))
        for place, cell in enumerate(cells):
            items += _draw_cell(cell, _Frame(left + width * place, y, width, height), shrink)
    return Drawing(_WIDTH, top + height * len(chart.rows) + 4, items)


def _shrink(cells: Sequence[Cell], width: float) -> float:
    """The factor by which letters shrink so that every cell holds its text: many models make narrow cells."""
    needed = [_LETTER * max(_VALUE * len(_cell_text(cell)), _INTERVAL * len(cell.interval)) for cell in cells]
    return min(1.0, width / max(needed, default=width))


def _cell_text(cell: Cell) -> str:
    return f"{format_number(cell.drop)} {cell.letters}".strip()


def _draw_cell(cell: Cell | None, frame: _Frame, shrink: float) -> Iterator[Item]:
    x, y, width, height = frame
    middle = x + width / 2
    if cell is None:
        yield Label(middle, y + height / 2 + 3, "too few", 7 * shrink, "middle", MUTED)
        return
    colour = blend_with_white(WORSE if cell.is_worse else BETTER, cell.heat / 100)
    yield DrawnBox(x + 0.5, y + 0.5, width - 1, height - 1, colour)
    yield Label(middle, y + 11, _cell_text(cell), _VALUE * shrink, "middle", bold=cell.significant)
    yield Label(middle, y + 21, cell.interval, _INTERVAL * shrink, "middle", INK)


def _draw_scatter(content: ReportContent) -> Drawing | None:
    """Drop against accuracy before the edit, a panel per attribute, three in a row."""
    chart = build_scatter_chart(content)
    if chart is None:
        return None
    styles = list(assign_styles([row.model for row in content.drops]).values())
    panels = [panel for panel in chart.panels if panel.kind == "drop"]
    top, height, width = _TOP + _LEGEND * len(styles) + 6, 120.0, _WIDTH / 3
    items: list[Item] = list(_draw_legend(styles, content.run))
    for place, panel in enumerate(panels):
        left, upper = width * (place % 3) + 26, top + height * (place // 3) + 14
        items += _draw_panel(panel, _Frame(left, upper, width - 36, height - 44))
    bottom = top + height * -(-len(panels) // 3) + 10
    caption = "drop in points with its 95 % interval, against accuracy in percent before the edit"
    items.append(Label(_WIDTH / 2, bottom - 4, caption, 7, "middle", MUTED))
    return Drawing(_WIDTH, bottom, items)


def _draw_panel(panel: Panel, frame: _Frame) -> Iterator[Item]:
    left, top, width, height = frame
    scale = height / HEIGHT
    yield Label(left, top - 5, capitalize_first(name_attribute(panel.attribute)), 7.5, bold=True)
    for tick in panel.y_ticks:
        y = top + tick.at * scale
        yield DrawnLine(left, y, left + width, y, MUTED if tick.value == 0 else GRID, 0.5)
        yield Label(left - 4, y + 2.5, format_number(tick.value, 0), 6.5, "end", MUTED)
    for tick in (panel.x_ticks[0], panel.x_ticks[-1]):
        yield Label(left + width * tick.at / 100, top + height + 10, f"{tick.value:g} %", 6.5, "middle", MUTED)
    for mark in panel.marks:
        yield from _draw_point(mark, left + width * mark.x / 100, top, scale)


def _draw_legend(styles: Sequence[Style], run: Run) -> Iterator[Item]:
    surrogates = find_surrogates(run)
    for place, style in enumerate(styles):
        y = _TOP + _LEGEND * place
        yield DrawnMark(8, y - 2.6, style.place)
        yield Label(16, y, mark_surrogate(style.model, surrogates), 7.5)
