"""Drawings as PDF and PNG by matplotlib."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any, Literal

from counterfoil.plugins import import_extra
from counterfoil.report.drawing import (
    CORNERS,
    RADIUS,
    WHITE,
    Colour,
    Drawing,
    DrawnBox,
    DrawnLine,
    DrawnMark,
    Item,
    Label,
)

_POINTS_PER_INCH = 72
_PNG_DPI = 300  # 2,000 pixels across: sharp on a slide of full width
_FONT = "DejaVu Sans"  # comes with matplotlib, so the same bytes on every machine
_FONT_SCALE = 0.88  # DejaVu's letters are wider than Helvetica's, for which the figures are laid out
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
_SETTINGS = {"pdf.fonttype": 42}  # TrueType: publishers refuse the default, Type 3
_NO_METADATA = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "png": {"Software": None},
}  # dates and versions would make equal figures differ


def pdf(drawing: Drawing) -> bytes:
    """A one-page PDF with its fonts inside; the same drawing gives the same bytes."""
    return _save(drawing, "pdf")


def png(drawing: Drawing) -> bytes:
    """A PNG on white, 300 dots per inch; the same drawing gives the same bytes."""
    return _save(drawing, "png")


def load_matplotlib() -> Any:
    """The package, or one line that says how to install it."""
    return import_extra("matplotlib", "figures")


def draw(drawing: Drawing) -> Any:
    """The drawing as a matplotlib figure, a unit of its axes being a point from the top left."""
    size = (drawing.width / _POINTS_PER_INCH, drawing.height / _POINTS_PER_INCH)
    figures = import_extra("matplotlib.figure", "figures")
    figure = figures.Figure(figsize=size, dpi=_POINTS_PER_INCH, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for place, item in enumerate(drawing.items):
        _DRAW[type(item)](axes, item, place)
    return figure


def _save(drawing: Drawing, form: Literal["pdf", "png"]) -> bytes:
    matplotlib, style = load_matplotlib(), import_extra("matplotlib.style", "figures")
    dpi = _PNG_DPI if form == "png" else _POINTS_PER_INCH
    data = io.BytesIO()
    # the default style, because a user's own matplotlibrc may ask for TeX, other margins or another size
    with style.context("default"), matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # an empty box stands for such a letter
        draw(drawing).savefig(data, format=form, dpi=dpi, metadata=_NO_METADATA[form])
    return data.getvalue()


def _draw_line(axes: Any, line: DrawnLine, place: int) -> None:
    dashes = (0, (2 / line.width, 3 / line.width)) if line.dashed else "solid"  # matplotlib counts in line widths
    ends = (line.x1, line.x2), (line.y1, line.y2)
    colour, cap = _rgb(line.colour), "butt"
    axes.plot(*ends, color=colour, linewidth=line.width, linestyle=dashes, zorder=place,
              solid_capstyle=cap, scalex=False, scaley=False)  # fmt: skip


def _draw_label(axes: Any, label: Label, place: int) -> None:
    axes.text(
        label.x, label.y, label.text, fontfamily=_FONT, fontsize=label.size * _FONT_SCALE, color=_rgb(label.colour),
        fontweight="bold" if label.bold else "normal", horizontalalignment=_ANCHORS[label.anchor],
        verticalalignment="baseline", parse_math=False, zorder=place,
    )  # fmt: skip


def _draw_box(axes: Any, box: DrawnBox, place: int) -> None:
    patches = import_extra("matplotlib.patches", "figures")
    corner = (box.x, box.y)
    axes.add_patch(
        patches.Rectangle(corner, box.width, box.height, facecolor=_rgb(box.colour), linewidth=0, zorder=place)
    )


def _draw_mark(axes: Any, mark: DrawnMark, place: int) -> None:
    patches = import_extra("matplotlib.patches", "figures")
    look = {
        "facecolor": _rgb(mark.colour if mark.filled else WHITE), "edgecolor": _rgb(mark.colour), "linewidth": 1.1,
        "zorder": place,
    }  # fmt: skip
    corners = [(mark.x + x, mark.y + y) for x, y in CORNERS[mark.shape]]
    shape = patches.Polygon(corners, **look) if corners else patches.Circle((mark.x, mark.y), RADIUS, **look)
    axes.add_patch(shape)


_DRAW: dict[type[Item], Callable[[Any, Any, int], None]] = {
    DrawnLine: _draw_line,
    Label: _draw_label,
    DrawnBox: _draw_box,
    DrawnMark: _draw_mark,
}


def _rgb(colour: Colour) -> tuple[float, ...]:
    return tuple(value / 255 for value in colour)
