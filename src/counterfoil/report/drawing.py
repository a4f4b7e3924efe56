"""Figure as lines, labels and marks; drawing as SVG."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

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


class DrawnLine(NamedTuple):
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: Colour
    width: float = 0.8
    dashed: bool = False


class Label(NamedTuple):
    """A line of text; y is its baseline."""

    x: float
    y: float
    text: str
    size: float = 8.0
    anchor: Literal["start", "middle", "end"] = "start"
    colour: Colour = INK
    bold: bool = False


class DrawnMark(NamedTuple):
    """A model's mark: circle, square, diamond or triangle."""

    x: float
    y: float
    shape: int
    colour: Colour
    filled: bool


class DrawnBox(NamedTuple):
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour


Item: TypeAlias = "DrawnLine | Label | DrawnMark | DrawnBox"


class Drawing(NamedTuple):
    """A whole figure."""

    width: float
    height: float
    items: list[Item]


CORNERS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-2.6, -2.6), (2.6, -2.6), (2.6, 2.6), (-2.6, 2.6)),
    ((0.0, -3.6), (3.6, 0.0), (0.0, 3.6), (-3.6, 0.0)),
    ((0.0, -3.4), (3.4, 2.6), (-3.4, 2.6)),
)  # of the shapes about their centre; the first, a circle, has none
RADIUS = 2.8


def model_mark(x: float, y: float, place: int, filled: bool) -> DrawnMark:
    """The mark of the model at this place of the table."""
    return DrawnMark(x, y, place % len(CORNERS), MODELS[place % len(MODELS)], filled)


def blended(colour: Colour, share: float) -> Colour:
    """A colour laid on white, so strongly."""
    red, green, blue = (round(255 + (value - 255) * share) for value in colour)
    return red, green, blue


_FONT = "Helvetica, Arial, sans-serif"


def svg(drawing: Drawing) -> str:
    """The file's text; it refers to nothing outside itself."""
    size = (
        f'width="{drawing.width:g}pt" height="{drawing.height:g}pt" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    )
    body = "\n".join(_drawn(item) for item in drawing.items)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}">\n{body}\n</svg>\n'


def _drawn(item: Item) -> str:
    if isinstance(item, DrawnLine):
        dashes = ' stroke-dasharray="2 3"' if item.dashed else ""
        ends = f'x1="{item.x1:.2f}" y1="{item.y1:.2f}" x2="{item.x2:.2f}" y2="{item.y2:.2f}"'
        return f'<line {ends} stroke="{_hex(item.colour)}" stroke-width="{item.width:g}"{dashes}/>'
    if isinstance(item, Label):
        weight = ' font-weight="bold"' if item.bold else ""
        place = f'x="{item.x:.2f}" y="{item.y:.2f}" font-size="{item.size:g}" text-anchor="{item.anchor}"'
        return f'<text {place} fill="{_hex(item.colour)}"{weight}>{escape(item.text)}</text>'
    if isinstance(item, DrawnBox):
        place = f'x="{item.x:.2f}" y="{item.y:.2f}" width="{item.width:.2f}" height="{item.height:.2f}"'
        return f'<rect {place} fill="{_hex(item.colour)}"/>'
    return _mark(item)


def _mark(mark: DrawnMark) -> str:
    fill = mark.colour if mark.filled else WHITE
    look = f'fill="{_hex(fill)}" stroke="{_hex(mark.colour)}" stroke-width="1.1"'
    corners = CORNERS[mark.shape]
    if not corners:
        return f'<circle cx="{mark.x:.2f}" cy="{mark.y:.2f}" r="{RADIUS}" {look}/>'
    points = " ".join(f"{mark.x + x:.2f},{mark.y + y:.2f}" for x, y in corners)
    return f'<polygon points="{points}" {look}/>'


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
