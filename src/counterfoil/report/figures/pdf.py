"""A drawing as a one-page PDF, written by hand: lines, shapes and Helvetica, which every reader has.

The font is named, not embedded, so text is limited to Latin characters; others become question marks.
"""

from __future__ import annotations

import itertools
import zlib

from counterfoil.report.figures.drawing import CORNERS, RADIUS, WHITE, Box, Colour, Drawing, Item, Label, Line, Mark

_CIRCLE = 0.5523  # how far a Bezier curve's handles reach, as a share of the radius
_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, *[556] * 10, 278, 278, 584,
    584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778,
    722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,
    556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # of Helvetica's characters from the space on, in thousandths of the font's size  # fmt: skip


def pdf(drawing: Drawing) -> bytes:
    """The file's bytes; the same drawing gives the same ones."""
    stream = zlib.compress("\n".join(_drawn(item, drawing.height) for item in drawing.items).encode("cp1252"))
    fonts = "/F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    bold = "/F2 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {drawing.width:g} {drawing.height:g}]"
        f" /Resources << /Font << {fonts} {bold} >> >> /Contents 4 0 R >>".encode(),
        f"<< /Length {len(stream)} /Filter /FlateDecode >>\nstream\n".encode() + stream + b"\nendstream",
    ]
    return _assembled(objects)


def _assembled(objects: list[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    start = len(out)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def _drawn(item: Item, height: float) -> str:
    """PDF counts from the bottom."""
    if isinstance(item, Line):
        dashes = "[2 3] 0 d" if item.dashed else "[] 0 d"
        ends = f"{item.x1:.2f} {height - item.y1:.2f} m {item.x2:.2f} {height - item.y2:.2f} l S"
        return f"{_rgb(item.colour)} RG {item.width:g} w {dashes} {ends}"
    if isinstance(item, Label):
        return _label(item, height)
    if isinstance(item, Box):
        corner = f"{item.x:.2f} {height - item.y - item.height:.2f} {item.width:.2f} {item.height:.2f}"
        return f"{_rgb(item.colour)} rg {corner} re f"
    return _mark(item, height)


def _label(label: Label, height: float) -> str:
    text = label.text.replace("−", "–").encode("cp1252", "replace").decode("cp1252")
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor] * text_width(text, label.size)
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    font = "/F2" if label.bold else "/F1"
    place = f"{label.x - shift:.2f} {height - label.y:.2f} Td"
    return f"BT {_rgb(label.colour)} rg {font} {label.size:g} Tf {place} ({escaped}) Tj ET"


def text_width(text: str, size: float) -> float:
    """How wide Helvetica sets a text, in points."""
    codes = [ord(character) - 32 for character in text]
    return size / 1000 * sum(_WIDTHS[code] if 0 <= code < len(_WIDTHS) else 556 for code in codes)


def _mark(mark: Mark, height: float) -> str:
    x, y = mark.x, height - mark.y
    fill = mark.colour if mark.filled else WHITE
    look = f"{_rgb(mark.colour)} RG {_rgb(fill)} rg 1.1 w [] 0 d"
    corners = [(x + dx, y - dy) for dx, dy in CORNERS[mark.shape]]
    if not corners:
        return f"{look} {_circle(x, y)} b"
    path = " ".join(f"{cx:.2f} {cy:.2f} {'l' if place else 'm'}" for place, (cx, cy) in enumerate(corners))
    return f"{look} {path} b"


def _circle(x: float, y: float) -> str:
    """Four Bezier curves."""
    turns = ((1, 0), (0, 1), (-1, 0), (0, -1), (1, 0))
    path = [f"{x + RADIUS:.2f} {y:.2f} m"]
    for (ax, ay), (bx, by) in itertools.pairwise(turns):
        points = ((ax + _CIRCLE * bx, ay + _CIRCLE * by), (bx + _CIRCLE * ax, by + _CIRCLE * ay), (bx, by))
        path.append(" ".join(f"{x + RADIUS * px:.2f} {y + RADIUS * py:.2f}" for px, py in points) + " c")
    return " ".join(path)


def _rgb(colour: Colour) -> str:
    return " ".join(f"{value / 255:.3f}" for value in colour)
