"""Our tables as Parquet: flat, no nulls, dictionary-coded text, gzip where it pays.

Written by hand because pyarrow alone is half of what the core install may weigh (170 MB of 350), and a flat
table needs only this page. The same rows give the same bytes; any Parquet reader reads them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterfoil.store.files import written_whole
from counterfoil.store.thrift import Long, Struct, encode_struct, varint

Kind: TypeAlias = Literal["text", "int", "unsigned", "float", "double", "bool"]


class Coded(NamedTuple):
    """A text column as a file holds it: the distinct words, and each row's place among them."""

    words: NDArray[np.object_]
    codes: NDArray[np.int64]


Column: TypeAlias = "Sequence[str] | Sequence[float] | NDArray[Any] | Coded"

_MAGIC = b"PAR1"
_PLAIN, _RLE, _RLE_DICTIONARY, _NO_CODEC, _GZIP, _REQUIRED, _DATA_PAGE, _DICTIONARY_PAGE = 0, 3, 8, 0, 2, 0, 0, 2
_PHYSICAL: dict[Kind, int] = {"bool": 0, "int": 2, "unsigned": 2, "float": 4, "double": 5, "text": 6}
_CONVERTED: dict[Kind, int] = {"text": 0, "unsigned": 14}
_UNPACKED = {"float", "double"}  # scores have no pattern: gzip would save a tenth and take half of the time
_DTYPE: dict[Kind, str] = {"int": "<i8", "unsigned": "<u8", "float": "<f4", "double": "<f8"}


def _compressed(data: bytes) -> bytes:
    packer = zlib.compressobj(level=1, wbits=31)
    return packer.compress(data) + packer.flush()


def _page(body: bytes, kind: int, header: Struct, packer: Callable[[bytes], bytes] = _compressed) -> tuple[bytes, int]:
    """A page behind its header, and its size before compression."""
    packed = packer(body)
    number = 5 if kind == _DATA_PAGE else 7
    head = encode_struct({1: kind, 2: len(body), 3: len(packed), number: header})
    return head + packed, len(head) + len(body)


def _text(values: Sequence[str]) -> bytes:
    """Each word's length in four bytes and its bytes, laid out by NumPy: a table may have a word per row."""
    words = [value.encode() for value in values]
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    out = np.empty(int(sizes.sum()) + 4 * len(words), np.uint8)
    starts = np.cumsum(sizes + 4) - sizes - 4
    lengths = starts[:, None] + np.arange(4)
    is_word = np.ones(len(out), bool)
    is_word[lengths] = False
    out[lengths] = sizes.astype("<u4").view(np.uint8).reshape(-1, 4)
    out[is_word] = np.frombuffer(b"".join(words), np.uint8)
    return out.tobytes()


def _packed_codes(codes: NDArray[np.int64], words: int) -> bytes:
    """Codes of 8, 16 or 32 bits in groups of eight, as one run; whole bytes, since gzip takes out the rest."""
    width = next(width for width in (8, 16, 32) if words <= 1 << width)
    padded = np.zeros(-(-len(codes) // 8) * 8, f"<u{width // 8}")
    padded[: len(codes)] = codes
    return bytes([width]) + varint(len(padded) // 8 << 1 | 1) + padded.tobytes()


def coded(values: Sequence[Any] | NDArray[Any]) -> Coded:
    """Distinct words in the order of first appearance, and each value's place among them."""
    kept = values if isinstance(values, list) else list(values)
    places = {word: place for place, word in enumerate(dict.fromkeys(kept))}
    return Coded(np.array([*places], object), np.fromiter(map(places.__getitem__, kept), np.int64, len(kept)))


def _text_pages(column: Coded) -> tuple[bytes, bytes, int]:
    """Dictionary page, data page and their size before compression."""
    words, raw_words = _page(_text(column.words.tolist()), _DICTIONARY_PAGE, {1: len(column.words), 2: _PLAIN})
    body = _packed_codes(column.codes, len(column.words))
    data, raw_data = _page(body, _DATA_PAGE, {1: len(column.codes), 2: _RLE_DICTIONARY, 3: _RLE, 4: _RLE})
    return words, data, raw_words + raw_data


def _number_page(values: ArrayLike, kind: Kind) -> tuple[bytes, int]:
    if kind == "bool":
        flags = np.asarray(values, bool)
        return _page(
            np.packbits(flags, bitorder="little").tobytes(), _DATA_PAGE, {1: len(flags), 2: 0, 3: _RLE, 4: _RLE}
        )
    numbers = np.asarray(values, _DTYPE[kind])
    packer = bytes if kind in _UNPACKED else _compressed
    return _page(numbers.tobytes(), _DATA_PAGE, {1: len(numbers), 2: _PLAIN, 3: _RLE, 4: _RLE}, packer)


def _length(column: Column) -> int:
    return len(column.codes if isinstance(column, Coded) else column)


class TableWriter:
    """A table that grows by row groups and gets its name when closed."""

    def __init__(self, path: Path, columns: Mapping[str, Kind]) -> None:
        self._columns = dict(columns)
        self._stack = ExitStack()
        self._file = self._stack.enter_context(written_whole(path))
        self._file.write(_MAGIC)
        self._groups: list[Struct] = []
        self._rows = 0

    def write(self, rows: Mapping[str, Column]) -> None:
        """Append rows, given as columns of equal length."""
        (count,) = {_length(rows[name]) for name in self._columns}
        if not count:
            return
        start = self._file.tell()
        chunks = [self._chunk(name, kind, rows[name], count) for name, kind in self._columns.items()]
        self._groups.append({1: chunks, 2: Long(self._file.tell() - start), 3: Long(count)})
        self._rows += count

    def _chunk(self, name: str, kind: Kind, values: Column, count: int) -> Struct:
        start = self._file.tell()
        words = b""
        if kind == "text":
            words, data, raw = _text_pages(values if isinstance(values, Coded) else coded(values))
        else:
            data, raw = _number_page(values, kind)
        self._file.write(words + data)
        encodings = [_PLAIN, _RLE, _RLE_DICTIONARY] if words else [_PLAIN, _RLE]
        about: dict[int, Any] = {
            1: _PHYSICAL[kind], 2: encodings, 3: [name.encode()], 4: _NO_CODEC if kind in _UNPACKED else _GZIP,
            5: Long(count), 6: Long(raw), 7: Long(len(words) + len(data)), 9: Long(start + len(words)),
        }  # fmt: skip
        if words:
            about[11] = Long(start)
        return {2: Long(start), 3: about}

    def _footer(self) -> bytes:
        root: Struct = {4: b"rows", 5: len(self._columns)}
        leaves = [self._leaf(name, kind) for name, kind in self._columns.items()]
        return encode_struct({1: 2, 2: [root, *leaves], 3: Long(self._rows), 4: self._groups, 6: b"counterfoil"})

    @staticmethod
    def _leaf(name: str, kind: Kind) -> Struct:
        leaf: dict[int, Any] = {1: _PHYSICAL[kind], 3: _REQUIRED, 4: name.encode()}
        if kind in _CONVERTED:
            leaf[6] = _CONVERTED[kind]
        return leaf

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            footer = self._footer()
            self._file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)
        self._stack.__exit__(kind, error, trace)


def write_table(path: Path, columns: Mapping[str, Kind], rows: Mapping[str, Column]) -> Path:
    """Write a whole table at once."""
    with TableWriter(path, columns) as table:
        table.write(rows)
    return path
