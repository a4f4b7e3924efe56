"""Drawings of lines, texts, marks and boxes, in points from the top left; as SVG, and as PDF and PNG by matplotlib."""

from __future__ import annotations

import io
import warnings
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias
from xml.sax.saxutils import escape

from counterfoil.plugins import import_extra

Colour: TypeAlias = tuple[int, int, int]

INK: Colour = (28, 35, 43)
MUTED: Colour = (93, 104, 114)
GRID: Colour = (222, 218, 210)
WHITE: Colour = (255, 255, 255)
WORSE: Colour = (224, 112, 58)
BETTER: Colour = (60, 143, 196)
MODELS: tuple[Colour, ...] = (
    (0, 114, 178), (184, 79, 0), (0, 127, 92), (173, 79, 134), (89, 98, 108), (143, 98, 0),
)  # as on the page  # fmt: skip

_CORNERS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-2.6, -2.6), (2.6, -2.6), (2.6, 2.6), (-2.6, 2.6)),
    ((0.0, -3.6), (3.6, 0.0), (0.0, 3.6), (-3.6, 0.0)),
    ((0.0, -3.4), (3.4, 2.6), (-3.4, 2.6)),
)  # corners of the shapes about their centre; the first, a circle, has none
_RADIUS = 2.8
_SVG_FONT = "Helvetica, Arial, sans-serif"

_POINTS_PER_INCH = 72
_PNG_DPI = 300  # 2,000 pixels across: sharp on a slide of full width
_FONT = "DejaVu Sans"  # comes with matplotlib, so the bytes are the same on every machine
_FONT_SCALE = 0.88  # DejaVu's letters are wider than Helvetica's, for which the figures are laid out
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
_SETTINGS = {"pdf.fonttype": 42}  # TrueType: publishers refuse the default, Type 3
_NO_METADATA = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "png": {"Software": None},
}  # without dates and versions, so that equal figures have equal bytes


class Item(Protocol):
    """One part of a drawing."""

    def to_svg(self) -> str:
        """The part as an SVG element."""

    def draw(self, axes: Any, order: int) -> None:
        """Draw the part on matplotlib's axes; a higher order is drawn over a lower one."""


class DrawnLine(NamedTuple):
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: Colour
    width: float = 0.8
    dashed: bool = False

    def to_svg(self) -> str:
        """The line as an SVG element."""
        dashes = ' stroke-dasharray="2 3"' if self.dashed else ""
        ends = f'x1="{self.x1:.2f}" y1="{self.y1:.2f}" x2="{self.x2:.2f}" y2="{self.y2:.2f}"'
        return f'<line {ends} stroke="{_hex(self.colour)}" stroke-width="{self.width:g}"{dashes}/>'

    def draw(self, axes: Any, order: int) -> None:
        """Draw the line on matplotlib's axes."""
        dashes = (0, (2 / self.width, 3 / self.width)) if self.dashed else "solid"  # matplotlib counts in line widths
        axes.plot(
            (self.x1, self.x2), (self.y1, self.y2), color=_rgb(self.colour), linewidth=self.width, linestyle=dashes,
            zorder=order, solid_capstyle="butt", scalex=False, scaley=False,
        )  # fmt: skip


class Label(NamedTuple):
    """A line of text; y is its baseline."""

    x: float
    y: float
    text: str
    size: float = 8.0
    anchor: Literal["start", "middle", "end"] = "start"
    colour: Colour = INK
    bold: bool = False

    def to_svg(self) -> str:
        """The text as an SVG element."""
        weight = ' font-weight="bold"' if self.bold else ""
        place = f'x="{self.x:.2f}" y="{self.y:.2f}" font-size="{self.size:g}" text-anchor="{self.anchor}"'
        return f'<text {place} fill="{_hex(self.colour)}"{weight}>{escape(self.text)}</text>'

    def draw(self, axes: Any, order: int) -> None:
        """Draw the text on matplotlib's axes."""
        axes.text(
            self.x, self.y, self.text, fontfamily=_FONT, fontsize=self.size * _FONT_SCALE, color=_rgb(self.colour),
            fontweight="bold" if self.bold else "normal", horizontalalignment=_ANCHORS[self.anchor],
            verticalalignment="baseline", parse_math=False, zorder=order,
        )  # fmt: skip


class DrawnMark(NamedTuple):
    """The mark of the model at this place in the table: circle, square, diamond or triangle."""

    x: float
    y: float
    place: int
    filled: bool = True

    @property
    def _colour(self) -> Colour:
        return MODELS[self.place % len(MODELS)]

    @property
    def _corners(self) -> list[tuple[float, float]]:
        return [(self.x + x, self.y + y) for x, y in _CORNERS[self.place % len(_CORNERS)]]

    def to_svg(self) -> str:
        """The mark as an SVG element."""
        fill = self._colour if self.filled else WHITE
        paint = f'fill="{_hex(fill)}" stroke="{_hex(self._colour)}" stroke-width="1.1"'
        if not self._corners:
            return f'<circle cx="{self.x:.2f}" cy="{self.y:.2f}" r="{_RADIUS}" {paint}/>'
        points = " ".join(f"{x:.2f},{y:.2f}" for x, y in self._corners)
        return f'<polygon points="{points}" {paint}/>'

    def draw(self, axes: Any, order: int) -> None:
        """Draw the mark on matplotlib's axes."""
        patches = import_extra("matplotlib.patches", "figures")
        paint = {
            "facecolor": _rgb(self._colour if self.filled else WHITE), "edgecolor": _rgb(self._colour),
            "linewidth": 1.1, "zorder": order,
        }  # fmt: skip
        circle = patches.Circle((self.x, self.y), _RADIUS, **paint)
        axes.add_patch(patches.Polygon(self._corners, **paint) if self._corners else circle)


class DrawnBox(NamedTuple):
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour

    def to_svg(self) -> str:
        """The box as an SVG element."""
        place = f'x="{self.x:.2f}" y="{self.y:.2f}" width="{self.width:.2f}" height="{self.height:.2f}"'
        return f'<rect {place} fill="{_hex(self.colour)}"/>'

    def draw(self, axes: Any, order: int) -> None:
        """Draw the box on matplotlib's axes."""
        patches = import_extra("matplotlib.patches", "figures")
        corner, colour = (self.x, self.y), _rgb(self.colour)
        axes.add_patch(
            patches.Rectangle(corner, self.width, self.height, facecolor=colour, linewidth=0, zorder=order)
        )  # fmt: skip


class Drawing(NamedTuple):
    """A whole figure."""

    width: float
    height: float
    items: list[Item]


def to_svg(drawing: Drawing) -> str:
    """Return the text of a self-contained SVG file."""
    width, height = f"{drawing.width:g}", f"{drawing.height:g}"
    size = f'width="{width}pt" height="{height}pt" viewBox="0 0 {width} {height}"'
    body = "\n".join(item.to_svg() for item in drawing.items)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_SVG_FONT}">\n{body}\n</svg>\n'


def to_pdf(drawing: Drawing) -> bytes:
    """Return a one-page PDF with embedded fonts; the same drawing gives the same bytes."""
    return _save(drawing, "pdf")


def to_png(drawing: Drawing) -> bytes:
    """Return a PNG on white, 300 dots per inch; the same drawing gives the same bytes."""
    return _save(drawing, "png")


def load_matplotlib() -> Any:
    """Import matplotlib; raises `UserError` with how to install it."""
    return import_extra("matplotlib", "figures")


def to_matplotlib(drawing: Drawing) -> Any:
    """Return the drawing as a matplotlib figure whose axes are in points from the top left."""
    size = (drawing.width / _POINTS_PER_INCH, drawing.height / _POINTS_PER_INCH)
    figures = import_extra("matplotlib.figure", "figures")
    figure = figures.Figure(figsize=size, dpi=_POINTS_PER_INCH, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for order, item in enumerate(drawing.items):
        item.draw(axes, order)
    return figure


def _save(drawing: Drawing, file_format: Literal["pdf", "png"]) -> bytes:
    matplotlib, style = load_matplotlib(), import_extra("matplotlib.style", "figures")
    dpi = _PNG_DPI if file_format == "png" else _POINTS_PER_INCH
    stream = io.BytesIO()
    # the default style, because a user's own matplotlibrc may ask for TeX, other margins or another size
    with style.context("default"), matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # missing letters are drawn as empty boxes
        to_matplotlib(drawing).savefig(stream, format=file_format, dpi=dpi, metadata=_NO_METADATA[file_format])
    return stream.getvalue()


def blend_with_white(colour: Colour, share: float) -> Colour:
    """Blend a colour with white at this strength."""
    red, green, blue = (round(255 + (value - 255) * share) for value in colour)
    return red, green, blue


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _rgb(colour: Colour) -> tuple[float, ...]:
    return tuple(value / 255 for value in colour)
