"""Figure files for papers; the report's charts as drawings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from counterfoil.report.attribute_chart import Cell, heat_map
from counterfoil.report.charts import (
    DropsChart,
    DropsRow,
    Panel,
    Style,
    accuracy_chart,
    drops_chart,
    scatter_chart,
    styles,
)
from counterfoil.report.curves import DoseChart, DoseLine, dose_charts
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
    Item,
    Label,
    blended,
    model_mark,
    svg,
)
from counterfoil.report.figure_files import pdf, png
from counterfoil.report.report_input import ReportInput
from counterfoil.report.words import attribute_name, marked, number, sentence_start
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Run

_WIDTH = 480.0  # points: the width of a page's text
_LEFT, _RIGHT, _TOP = 130.0, 100.0, 10.0
_LANE, _GAP, _LEGEND = 9.0, 5.0, 12.0
_LETTER = 0.6  # of the size: how wide a letter is, bold ones included
_VALUE, _INTERVAL = 8.0, 6.5  # sizes of the letters in a cell


def drops_figure(content: ReportInput) -> Drawing | None:
    """Drops with their intervals, grouped by attribute."""
    chart = drops_chart(content.drops)
    if chart is None:
        return None
    looks = list(styles([row.model for row in content.drops]).values())
    return _forest(chart, _legend(looks, content.run), len(looks), "drop in points of accuracy, 95 % interval")


def accuracies_figure(content: ReportInput) -> Drawing | None:
    """Accuracies of pictures without originals; hollow marks are surrogates."""
    surrogates = find_surrogates(content.run)
    chart = None if content.has_drops else accuracy_chart(content.accuracies, surrogates)
    if chart is None:
        return None
    looks = list(styles([row.model for row in content.accuracies]).values())
    return _forest(chart, _legend(looks, content.run), len(looks), "top-1 accuracy in percent, 95 % interval")


def _forest(chart: DropsChart, legend: Iterator[Item], models: int, told: str) -> Drawing:
    rows = [(name if not place else "", row) for _, name, group in chart.groups for place, row in enumerate(group)]
    top = _TOP + _LEGEND * models + 8
    bottom = top + sum(_LANE * len(row.values) + _GAP + (10 if name else 0) for name, row in rows)
    wide = _WIDTH - _LEFT - _RIGHT
    items: list[Item] = list(legend)
    for tick in chart.ticks:
        x = _LEFT + wide * tick.at / 100
        items.append(DrawnLine(x, top, x, bottom, MUTED if tick.value == 0 else GRID, 0.8 if tick.value == 0 else 0.5))
        items.append(Label(x, bottom + 11, number(tick.value, 0), 7, "middle", MUTED))
    items.append(Label(_LEFT + wide / 2, bottom + 22, told, 7, "middle", MUTED))
    y = top
    for name, row in rows:
        if name:
            items.append(Label(4, y + 8, sentence_start(name), 8, bold=True))
            y += 10
        items += _forest_row(row, y, wide)
        y += _LANE * len(row.values) + _GAP
    return Drawing(_WIDTH, bottom + 28, items)


def _forest_row(row: DropsRow, top: float, wide: float) -> Iterator[Item]:
    told = row.edit if row.level in ("", row.edit) else f"{row.edit} {row.level}"
    yield Label(10, top + _LANE * len(row.values) / 2 + 2.5, told, 7.5)
    for place, (style, value) in enumerate(row.values):
        yield Label(_WIDTH - _RIGHT + 6, top + _LANE * place + 7, value, 6.5, colour=MODELS[style.colour])
    for mark in row.marks:
        y = top + _LANE * mark.y / 20
        low, at, high = (_LEFT + wide * value / 100 for value in (mark.low, mark.at, mark.high))
        yield DrawnLine(low, y, high, y, MODELS[mark.style.colour], 1.2)
        yield model_mark(at, y, mark.style.place, mark.filled)


def dose_figures(content: ReportInput) -> dict[str, Drawing]:
    """Accuracy against strength, a figure per edit."""
    return {chart.edit: _dose_figure(chart, content.run) for chart in dose_charts(content.drops)}


def _dose_figure(chart: DoseChart, run: Run) -> Drawing:
    top, left, wide, high = _TOP + _LEGEND * len(chart.lines) + 8, 34.0, _WIDTH - 44.0, 170.0
    scale = high / chart.height
    items: list[Item] = list(_legend([line.style for line in chart.lines], run))
    for tick in chart.y_ticks:
        items.append(DrawnLine(left, top + tick.at * scale, left + wide, top + tick.at * scale, GRID, 0.5))
        items.append(Label(left - 5, top + tick.at * scale + 2.5, number(tick.value, 0), 7, "end", MUTED))
    for tick in chart.x_ticks:
        told = f"{tick.value:g}{chart.unit}"
        items.append(Label(left + wide * tick.at / 100, top + high + 11, told, 7, "middle", MUTED))
    strength = "share of the picture that the object covers" if chart.edit == "size" else chart.edit
    told = f"{strength}; accuracy in percent, 95 % interval of the drop"
    items.append(Label(left + wide / 2, top + high + 22, told, 7, "middle", MUTED))
    for line in chart.lines:
        items += _dose_line(line, (left, top, wide, scale))
    return Drawing(_WIDTH, top + high + 28, items)


def _dose_line(line: DoseLine, frame: tuple[float, float, float, float]) -> Iterator[Item]:
    left, top, wide, scale = frame
    colour = MODELS[line.style.colour]
    yield DrawnLine(
        left, top + line.original * scale, left + wide, top + line.original * scale, colour, 0.6, dashed=True
    )
    places = [(left + wide * mark.x / 100 + line.shift / 2, mark) for mark in line.marks]
    for (x, mark), (next_x, following) in itertools.pairwise(places):
        yield DrawnLine(x, top + mark.y * scale, next_x, top + following.y * scale, colour, 0.7)
    for x, mark in places:
        yield DrawnLine(x, top + mark.low * scale, x, top + mark.high * scale, colour, 1.2)
        yield model_mark(x, top + mark.y * scale, line.style.place, mark.filled)


def heat_figure(content: ReportInput) -> Drawing | None:
    """Attributes by models."""
    chart = heat_map(content)
    if chart is None:
        return None
    left, tall = 84.0, 26.0
    wide = (_WIDTH - left) / len(chart.looks)
    top = _TOP + _LEGEND * len(chart.looks) + 14
    shrink = _shrink([cell for _, cells in chart.rows for cell in cells if cell is not None], wide)
    items: list[Item] = [*_legend(chart.looks, content.run)]
    items += [model_mark(left + wide * (place + 0.5), top - 7, place, True) for place in range(len(chart.looks))]
    for row, (name, cells) in enumerate(chart.rows):
        y = top + tall * row
        items.append(Label(2, y + tall / 2 + 3, name, 8, bold=True))
        for place, cell in enumerate(cells):
            items += _heat_cell(cell, (left + wide * place, y, wide, tall), shrink)
    return Drawing(_WIDTH, top + tall * len(chart.rows) + 4, items)


def _shrink(cells: Sequence[Cell], wide: float) -> float:
    """By how much letters are made smaller so that every cell holds its own: many models make narrow cells."""
    needed = [_LETTER * max(_VALUE * len(_value(cell)), _INTERVAL * len(cell.interval)) for cell in cells]
    return min(1.0, wide / max(needed, default=wide))


def _value(cell: Cell) -> str:
    return f"{cell.told} {cell.letters}".strip()


def _heat_cell(cell: Cell | None, frame: tuple[float, float, float, float], shrink: float) -> Iterator[Item]:
    x, y, wide, tall = frame
    if cell is None:
        yield Label(x + wide / 2, y + tall / 2 + 3, "too few", 7 * shrink, "middle", MUTED)
        return
    colour = blended(WORSE if cell.worse else BETTER, cell.heat / 100)
    yield DrawnBox(x + 0.5, y + 0.5, wide - 1, tall - 1, colour)
    yield Label(
        x=x + wide / 2,
        y=y + 11,
        text=_value(cell),
        size=_VALUE * shrink,
        anchor="middle",
        colour=INK,
        bold=cell.significant,
    )
    yield Label(x + wide / 2, y + 21, cell.interval, _INTERVAL * shrink, "middle", INK)


def scatter_figure(content: ReportInput) -> Drawing | None:
    """Drop against accuracy before the edit, a panel per attribute, three in a row."""
    chart = scatter_chart(content)
    if chart is None:
        return None
    looks = list(styles([row.model for row in content.drops]).values())
    panels = [panel for panel in chart.panels if panel.kind == "drop"]
    top, tall, wide = _TOP + _LEGEND * len(looks) + 6, 120.0, _WIDTH / 3
    items: list[Item] = list(_legend(looks, content.run))
    for place, panel in enumerate(panels):
        items += _panel(panel, (wide * (place % 3) + 26, top + tall * (place // 3) + 14, wide - 36, tall - 44))
    height = top + tall * -(-len(panels) // 3) + 10
    told = "drop in points with its 95 % interval, against accuracy in percent before the edit"
    items.append(Label(_WIDTH / 2, height - 4, told, 7, "middle", MUTED))
    return Drawing(_WIDTH, height, items)


def _panel(panel: Panel, frame: tuple[float, float, float, float]) -> Iterator[Item]:
    left, top, wide, high = frame
    scale = high / 300
    yield Label(left, top - 5, sentence_start(attribute_name(panel.attribute)), 7.5, bold=True)
    for tick in panel.y_ticks:
        y = top + tick.at * scale
        yield DrawnLine(left, y, left + wide, y, MUTED if tick.value == 0 else GRID, 0.5)
        yield Label(left - 4, y + 2.5, number(tick.value, 0), 6.5, "end", MUTED)
    for tick in (panel.x_ticks[0], panel.x_ticks[-1]):
        yield Label(left + wide * tick.at / 100, top + high + 10, f"{tick.value:g} %", 6.5, "middle", MUTED)
    for mark in panel.marks:
        x, y, low, upper = left + wide * mark.x / 100, *(top + value * scale for value in (mark.y, mark.low, mark.high))
        yield DrawnLine(x, low, x, upper, MODELS[mark.style.colour], 1.2)
        yield model_mark(x, y, mark.style.place, mark.filled)


def _legend(looks: Sequence[Style], run: Run) -> Iterator[Item]:
    surrogates = find_surrogates(run)
    for place, style in enumerate(looks):
        y = _TOP + _LEGEND * place
        yield model_mark(8, y - 2.6, style.place, True)
        yield Label(16, y, marked(style.model, surrogates), 7.5)


_FIGURES = {
    "drops": drops_figure,
    "accuracies": accuracies_figure,
    "attributes": heat_figure,
    "scatter": scatter_figure,
}


def svg_files(content: ReportInput) -> dict[str, str]:
    """figures/<name>.svg of every chart that can be drawn."""
    return {f"figures/{name}.svg": svg(drawing) for name, drawing in drawn(content)}


def pdf_files(content: ReportInput) -> dict[str, bytes]:
    """figures/<name>.pdf of every chart that can be drawn."""
    return {f"figures/{name}.pdf": pdf(drawing) for name, drawing in drawn(content)}


def png_files(content: ReportInput) -> dict[str, bytes]:
    """figures/<name>.png of every chart that can be drawn."""
    return {f"figures/{name}.png": png(drawing) for name, drawing in drawn(content)}


def drawn(content: ReportInput) -> Iterator[tuple[str, Drawing]]:
    """The name and the drawing of every chart that can be drawn."""
    for name, draw in _FIGURES.items():
        drawing = draw(content)
        if drawing is not None:
            yield name, drawing
    for edit, drawing in dose_figures(content).items():
        yield f"dose-{re.sub(r'[^A-Za-z0-9.]+', '-', edit)}", drawing
