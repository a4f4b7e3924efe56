"""The font that PDF figures carry with them: Aileron (CC0), which comes with Pillow; nothing of it is kept here."""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from PIL import ImageFont

_UNKNOWN = "?"  # stands for a letter that the font has not
_ALIKE = str.maketrans({"−": "-", "–": "-", "—": "-", "‐": "-", "×": "x", "≤": "<", "≥": ">", "→": ">", "•": "·"})
_SEGMENTS = 4  # the form of a letter table that lists ranges of letters
_WINDOWS = (3, 1)  # the letter table of Unicode's first plane


@dataclass(frozen=True)
class Font:
    """A TrueType font; numbers in thousandths of its size."""

    name: str
    data: bytes
    glyphs: Mapping[str, tuple[int, int]]  # letter to its place in the font and its width
    ascent: int
    descent: int
    box: Sequence[int]

    def width(self, text: str, size: float) -> float:
        """How wide a text is, in points."""
        return size / 1000 * sum(self.glyphs[letter][1] for letter in self.known(text))

    def known(self, text: str) -> str:
        """The text in letters that the font has: accents fall, and what is left unknown is a question mark."""
        plain = unicodedata.normalize("NFKD", text.translate(_ALIKE))
        kept = (letter for letter in plain if not unicodedata.combining(letter))
        return "".join(letter if letter in self.glyphs else _UNKNOWN for letter in kept)

    def places(self, text: str) -> str:
        """The text as a PDF shows it: four hexadecimal digits a letter."""
        return "".join(f"{self.glyphs[letter][0]:04X}" for letter in self.known(text))


@cache
def font() -> Font:
    """Pillow's own font, read as far as a PDF asks."""
    data = bytes(ImageFont.load_default(size=10).font_bytes)  # type: ignore[union-attr]
    tables = dict(_tables(data))
    unit = 1000 / struct.unpack_from(">H", tables["head"], 18)[0]
    ascent, descent = struct.unpack_from(">hh", tables["hhea"], 4)
    widths = _widths(tables)
    return Font(
        "Aileron-Regular",
        data,
        {letter: (place, round(unit * widths[min(place, len(widths) - 1)])) for letter, place in _letters(tables)},
        round(unit * ascent),
        round(unit * descent),
        [round(unit * value) for value in struct.unpack_from(">4h", tables["head"], 36)],
    )


def _tables(data: bytes) -> Iterator[tuple[str, bytes]]:
    for place in range(struct.unpack_from(">H", data, 4)[0]):
        name, _, start, length = struct.unpack_from(">4sLLL", data, 12 + 16 * place)
        yield name.decode("ascii"), data[start : start + length]


def _widths(tables: Mapping[str, bytes]) -> list[int]:
    count = struct.unpack_from(">H", tables["hhea"], 34)[0]
    return [int(width) for width, _ in struct.iter_unpack(">Hh", tables["hmtx"][: 4 * count])]


def _letters(tables: Mapping[str, bytes]) -> Iterator[tuple[str, int]]:
    """Every letter with its place in the font."""
    table = _letter_table(tables["cmap"])
    segments = struct.unpack_from(">H", table, 6)[0] // 2
    ends, starts, steps, offsets = (
        struct.unpack_from(f">{segments}H", table, 14 + 2 * segments * part + (2 if part else 0)) for part in range(4)
    )
    first_offset = 16 + 6 * segments
    for segment, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for code in range(start, min(end, 0xFFFE) + 1):
            place = code
            if offsets[segment]:
                where = first_offset + 2 * segment + offsets[segment] + 2 * (code - start)
                place = struct.unpack_from(">H", table, where)[0]
            yield chr(code), (place + steps[segment]) & 0xFFFF


def _letter_table(tables: bytes) -> bytes:
    for entry in range(struct.unpack_from(">H", tables, 2)[0]):
        platform, encoding, start = struct.unpack_from(">HHL", tables, 4 + 8 * entry)
        if (platform, encoding) == _WINDOWS and struct.unpack_from(">H", tables, start)[0] == _SEGMENTS:
            return tables[start:]
    raise ValueError("Pillow's font has no table of letters of the usual form")
