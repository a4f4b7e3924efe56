"""A drawing as a one-page PDF, written by hand: lines, shapes and text in a font that the file carries with it."""

from __future__ import annotations

import itertools
import zlib

from counterfoil.report.figures.drawing import CORNERS, RADIUS, WHITE, Box, Colour, Drawing, Item, Label, Line, Mark
from counterfoil.report.figures.font import Font, font

_CIRCLE = 0.5523  # how far a Bezier curve's handles reach, as a share of the radius
_FONT = 5  # the number of its first object; catalogue, pages, page and content come before
_BOLDER = 0.035  # of the size: how wide a bold letter's outline is drawn, as the font has no bold
_MOST_PAIRS = 100  # that one block of a map to Unicode may hold


def pdf(drawing: Drawing) -> bytes:
    """The file's bytes; the same drawing gives the same ones."""
    text = "".join(item.text for item in drawing.items if isinstance(item, Label))
    stream = "\n".join(_drawn(item, drawing.height) for item in drawing.items).encode("ascii")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {drawing.width:g} {drawing.height:g}]"
        f" /Resources << /Font << /{font().name} {_FONT} 0 R >> >> /Contents 4 0 R >>".encode(),
        _stream(stream),
        *_font_objects(font(), font().known(text)),
    ]
    return _assembled(objects)


def _font_objects(drawn: Font, text: str) -> list[bytes]:
    """The font with its letters by their place in it, their widths, its file, and the letters' names for readers."""
    name = f"CNTRFL+{drawn.name}"  # six letters and a plus: a font that is there in part
    letters = sorted(set(text), key=lambda letter: drawn.glyphs[letter])
    widths = " ".join(f"{place} [{width}]" for place, width in (drawn.glyphs[letter] for letter in letters))
    box = " ".join(map(str, drawn.box))
    return [
        f"<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H"
        f" /DescendantFonts [{_FONT + 1} 0 R] /ToUnicode {_FONT + 4} 0 R >>".encode(),
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /CIDToGIDMap /Identity"
        " /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
        f" /FontDescriptor {_FONT + 2} 0 R /DW 500 /W [{widths}] >>".encode(),
        f"<< /Type /FontDescriptor /FontName /{name} /Flags 32 /FontBBox [{box}] /ItalicAngle 0"
        f" /Ascent {drawn.ascent} /Descent {drawn.descent} /CapHeight {drawn.ascent} /StemV 80"
        f" /FontFile2 {_FONT + 3} 0 R >>".encode(),
        _stream(drawn.data, f" /Length1 {len(drawn.data)}"),
        _stream(_to_unicode(drawn, letters)),
    ]


def _to_unicode(drawn: Font, letters: list[str]) -> bytes:
    """Which letter each glyph is, so that text can be searched and copied."""
    pairs = [f"<{drawn.glyphs[letter][0]:04X}> <{ord(letter):04X}>" for letter in letters]
    blocks = [pairs[start : start + _MOST_PAIRS] for start in range(0, len(pairs), _MOST_PAIRS)]
    body = "\n".join("\n".join([f"{len(block)} beginbfchar", *block, "endbfchar"]) for block in blocks)
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n/CMapType 2 def /CMapName /Letters def\n"
        f"1 begincodespacerange <0000> <FFFF> endcodespacerange\n{body}\n"
        "endcmap CMapName currentdict /CMap defineresource pop end end"
    ).encode()


def _stream(data: bytes, more: str = "") -> bytes:
    packed = zlib.compress(data, 9)
    return f"<< /Length {len(packed)} /Filter /FlateDecode{more} >>\nstream\n".encode() + packed + b"\nendstream"


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
    drawn, colour = font(), _rgb(label.colour)
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor] * drawn.width(label.text, label.size)
    place = f"{label.x - shift:.2f} {height - label.y:.2f} Td"
    weight = f"2 Tr {colour} RG {_BOLDER * label.size:.2f} w [] 0 d" if label.bold else "0 Tr"
    return f"BT {colour} rg {weight} /{drawn.name} {label.size:g} Tf {place} <{drawn.places(label.text)}> Tj ET"


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
