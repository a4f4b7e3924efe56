"""The charts as files: SVG by the core, PDF and PNG by matplotlib."""

from __future__ import annotations

import re
from collections.abc import Iterator

from counterfoil.report.content import ReportInput
from counterfoil.report.figures.canvas import pdf, png
from counterfoil.report.figures.charts import accuracies_figure, dose_figures, drops_figure, heat_figure, scatter_figure
from counterfoil.report.figures.drawing import Drawing
from counterfoil.report.figures.svg import svg

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
