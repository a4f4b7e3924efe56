"""A drawing as an SVG file."""

from __future__ import annotations

from xml.sax.saxutils import escape

from counterfoil.report.figures.drawing import CORNERS, RADIUS, WHITE, Box, Colour, Drawing, Item, Label, Line, Mark

_FONT = "Helvetica, Arial, sans-serif"


def svg(drawing: Drawing) -> str:
    """The file's text; it refers to nothing outside itself."""
    size = (
        f'width="{drawing.width:g}pt" height="{drawing.height:g}pt" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    )
    body = "\n".join(_drawn(item) for item in drawing.items)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}">\n{body}\n</svg>\n'


def _drawn(item: Item) -> str:
    if isinstance(item, Line):
        dashes = ' stroke-dasharray="2 3"' if item.dashed else ""
        ends = f'x1="{item.x1:.2f}" y1="{item.y1:.2f}" x2="{item.x2:.2f}" y2="{item.y2:.2f}"'
        return f'<line {ends} stroke="{_hex(item.colour)}" stroke-width="{item.width:g}"{dashes}/>'
    if isinstance(item, Label):
        weight = ' font-weight="bold"' if item.bold else ""
        place = f'x="{item.x:.2f}" y="{item.y:.2f}" font-size="{item.size:g}" text-anchor="{item.anchor}"'
        return f'<text {place} fill="{_hex(item.colour)}"{weight}>{escape(item.text)}</text>'
    if isinstance(item, Box):
        place = f'x="{item.x:.2f}" y="{item.y:.2f}" width="{item.width:.2f}" height="{item.height:.2f}"'
        return f'<rect {place} fill="{_hex(item.colour)}"/>'
    return _mark(item)


def _mark(mark: Mark) -> str:
    fill = mark.colour if mark.filled else WHITE
    look = f'fill="{_hex(fill)}" stroke="{_hex(mark.colour)}" stroke-width="1.1"'
    corners = CORNERS[mark.shape]
    if not corners:
        return f'<circle cx="{mark.x:.2f}" cy="{mark.y:.2f}" r="{RADIUS}" {look}/>'
    points = " ".join(f"{mark.x + x:.2f},{mark.y + y:.2f}" for x, y in corners)
    return f'<polygon points="{points}" {look}/>'


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
