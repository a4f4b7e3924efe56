"""Sheets of pictures before and after an edit, with names and answers: PNG, SVG or PDF for slides."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.report.drawing import load_matplotlib
from counterfoil.report.words import capitalize_first, describe_change, name_attribute
from counterfoil.study.examples import Example

Image: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB

_MARGIN, _GAP, _LINE = 24, 8, 26  # pixels: around the sheet, between pictures, of a line of text
_LETTER = 17.0  # pixels of a letter's height
_WIDE = 0.56  # width of a letter relative to its height
_INK, _RIGHT, _WRONG = "#1c232b", "#0f6b4f", "#a8320a"
_DPI = 100.0
_COLUMNS = 2  # pairs beside each other


@dataclass(frozen=True)
class SheetText:
    """A line of text on a sheet; y is its baseline."""

    x: float
    y: float
    text: str
    colour: str = _INK
    bold: bool = False


@dataclass(frozen=True)
class SheetPicture:
    """A picture on a sheet, at its full resolution."""

    x: int
    y: int
    image: Image


@dataclass(frozen=True)
class Sheet:
    """Pictures and texts, placed in pixels from the top left."""

    width: int
    height: int
    pictures: tuple[SheetPicture, ...]
    texts: tuple[SheetText, ...]


@dataclass(frozen=True)
class SheetPair:
    """One photo before and after an edit."""

    example: Example
    before: Image
    after: Image
    before_words: str

    @classmethod
    def of(cls, example: Example, before: Image, after: Image, before_words: str) -> SheetPair:
        """The pair with both pictures as high as the higher one: no pixel of either is lost."""
        height = max(before.shape[0], after.shape[0])
        return cls(example, _scale(before, height), _scale(after, height), before_words)


def lay_out_sheet(pairs: Sequence[SheetPair], names: Mapping[str, str]) -> Sheet:
    """Place the pairs in two columns, each with its edit, its truth and every model's answers below."""
    pictures: list[SheetPicture] = []
    texts: list[SheetText] = []
    columns = min(_COLUMNS, len(pairs))
    widths = [max(_pair_width(pair, names) for pair in pairs[column::columns]) for column in range(columns)]
    y = _MARGIN
    for start in range(0, len(pairs), columns):
        row, x, bottom = pairs[start : start + columns], _MARGIN, y
        for pair, width in zip(row, widths, strict=False):
            pictures += [
                SheetPicture(x, y, pair.before),
                SheetPicture(x + pair.before.shape[1] + _GAP, y, pair.after),
            ]
            below = y + max(pair.before.shape[0], pair.after.shape[0])
            lines = _lines(pair, names)
            texts += [
                SheetText(x, below + _LINE * (place + 1), text, colour, bold)
                for place, (text, colour, bold) in enumerate(lines)
            ]
            bottom = max(bottom, below + _LINE * (len(lines) + 1))
            x += width + 3 * _MARGIN
        y = bottom + _MARGIN
    return Sheet(sum(widths) + 3 * _MARGIN * (columns - 1) + 2 * _MARGIN, y, tuple(pictures), tuple(texts))


def _pair_width(pair: SheetPair, names: Mapping[str, str]) -> int:
    texts = max(len(text) for text, _, _ in _lines(pair, names)) * _LETTER * _WIDE
    return max(int(pair.before.shape[1] + _GAP + pair.after.shape[1]), math.ceil(texts))


def _lines(pair: SheetPair, names: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """What stands below a pair: text, colour, bold."""
    example = pair.example
    change = describe_change(example.edit, example.level)
    title = capitalize_first(f"{name_attribute(example.attribute)}: {change}")
    lines = [(title, _INK, True), (f"{names.get(example.label, example.label)}, {example.sample_id}", _INK, False)]
    if example.reference != "original":
        lines.append((f"compared with {pair.before_words}", _INK, False))
    for reply in example.replies:
        before, after = (names.get(label, label) for label in (reply.before, reply.after))
        shares = (f"{100 * share:.0f} %" for share in (reply.confidence_before, reply.confidence_after))
        said = f"{reply.model}: {before} {next(shares)} → {after} {next(shares)}"
        lines.append((said, _RIGHT if reply.after == example.label else _WRONG, False))
    return lines


def sheet_to_svg(sheet: Sheet) -> bytes:
    """The sheet as SVG with its pictures inside, without loss."""
    size = f'width="{sheet.width}" height="{sheet.height}" viewBox="0 0 {sheet.width} {sheet.height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif">']
    parts.append('<rect width="100%" height="100%" fill="#fff"/>')
    for picture in sheet.pictures:
        height, width = picture.image.shape[:2]
        data = base64.b64encode(_encode_png(picture.image)).decode("ascii")
        place = f'x="{picture.x}" y="{picture.y}" width="{width}" height="{height}"'
        parts.append(f'<image {place} href="data:image/png;base64,{data}"/>')
    for text in sheet.texts:
        weight = ' font-weight="bold"' if text.bold else ""
        place = f'x="{text.x:g}" y="{text.y:g}" font-size="{_LETTER:g}" fill="{text.colour}"'
        parts.append(f"<text {place}{weight}>{escape(text.text)}</text>")
    return "\n".join([*parts, "</svg>\n"]).encode()


def sheet_to_png(sheet: Sheet) -> bytes:
    """The sheet as PNG, a pixel of a picture for a pixel of the sheet."""
    return _draw(sheet, "png")


def sheet_to_pdf(sheet: Sheet) -> bytes:
    """The sheet as PDF."""
    return _draw(sheet, "pdf")


SHEETS: dict[str, Callable[[Sheet], bytes]] = {".png": sheet_to_png, ".svg": sheet_to_svg, ".pdf": sheet_to_pdf}


def _draw(sheet: Sheet, form: str) -> bytes:
    matplotlib = load_matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure: Any = Figure(figsize=(sheet.width / _DPI, sheet.height / _DPI), dpi=_DPI, facecolor="white")
        for picture in sheet.pictures:
            height, width = picture.image.shape[:2]
            box = (
                picture.x / sheet.width,
                1 - (picture.y + height) / sheet.height,
                width / sheet.width,
                height / sheet.height,
            )
            axes = figure.add_axes(box)
            axes.imshow(picture.image, interpolation="none", aspect="auto")
            axes.set_axis_off()
        for text in sheet.texts:
            figure.text(
                text.x / sheet.width, 1 - text.y / sheet.height, text.text, color=text.colour,
                fontsize=0.88 * _LETTER * 72 / _DPI, weight="bold" if text.bold else "normal", family="DejaVu Sans",
                parse_math=False,
            )  # fmt: skip
        stream = io.BytesIO()
        metadata = {"CreationDate": None} if form == "pdf" else {"Software": None}
        figure.savefig(stream, format=form, dpi=_DPI, metadata=metadata)
    return stream.getvalue()


def _scale(image: Image, height: int) -> Image:
    if image.shape[0] == height:
        return image
    size = (round(image.shape[1] * height / image.shape[0]), height)
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.uint8)


def _encode_png(image: Image) -> bytes:
    _, data = cv2.imencode(".png", cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2BGR))
    return data.tobytes()
