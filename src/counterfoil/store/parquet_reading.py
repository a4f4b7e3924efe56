"""Reads the tables that `TableWriter` wrote; other people's Parquet is for pyarrow."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.store.parquet import Coded
from counterfoil.store.thrift import Reader

Struct: TypeAlias = Mapping[int, Any]
Found = TypeVar("Found")

_NUMBERS = {(2, None): "<i8", (2, 14): "<u8", (4, None): "<f4", (5, None): "<f8"}
_TEXT, _BOOL, _GZIP = 6, 0, 2


def read_table(path: Path, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The columns of one of our tables, text as objects; all of them unless some are named."""
    table = read_coded(path, columns)
    return {name: column.words[column.codes] if isinstance(column, Coded) else column for name, column in table.items()}


def read_coded(path: Path, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any] | Coded]:
    """The same with text as words and codes, which is how large tables are grouped."""
    return _guarded(path, lambda data: _parsed(path, data, columns))


def column_names(path: Path) -> list[str]:
    """The columns that a table has: an older counterfoil wrote fewer."""
    return _guarded(path, lambda data: [leaf[4].decode() for leaf in _about(path, data)[2][1:]])


def _guarded(path: Path, read: Callable[[bytes], Found]) -> Found:
    """Whatever is wrong with the file ends in one line that names it."""
    data = path.read_bytes()
    if len(data) < 12 or data[:4] != b"PAR1" or data[-4:] != b"PAR1":
        raise UserError(f"expected a table written by counterfoil, got {path}: it is not a whole Parquet file")
    try:
        return read(data)
    except (struct.error, zlib.error, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"expected a whole table written by counterfoil, got {path}: it is damaged: {error}") from error


def _about(path: Path, data: bytes) -> Struct:
    (size,) = struct.unpack("<I", data[-8:-4])
    about: Struct = Reader(data, len(data) - 8 - size).struct()
    if about.get(6) != b"counterfoil":
        raise UserError(f"expected a table written by counterfoil, got {path}: another program wrote it")
    return about


def _parsed(path: Path, data: bytes, columns: Sequence[str] | None) -> dict[str, NDArray[Any] | Coded]:
    about = _about(path, data)
    leaves: list[Struct] = about[2][1:]
    names = [leaf[4].decode() for leaf in leaves]
    groups: list[Struct] = about[4]
    wanted = names if columns is None else columns
    return {name: _column(data, groups, names.index(name), leaves[names.index(name)]) for name in wanted}


def _column(data: bytes, groups: Sequence[Struct], place: int, leaf: Struct) -> NDArray[Any] | Coded:
    chunks = [group[1][place][3] for group in groups]
    if leaf[1] == _TEXT:
        return _merged([_coded_chunk(data, about) for about in chunks])
    parts = [_chunk(data, about, leaf) for about in chunks]
    return np.concatenate(parts) if parts else np.array([], float)


def _merged(parts: Sequence[Coded]) -> Coded:
    """One dictionary for the whole column; each row group has its own."""
    if len(parts) == 1:
        return parts[0]
    places: dict[str, int] = {}
    codes = [np.array([places.setdefault(word, len(places)) for word in part.words])[part.codes] for part in parts]
    return Coded(np.array([*places], object), np.concatenate([np.zeros(0, np.int64), *codes]))


def _page(data: bytes, place: int, codec: int) -> tuple[Struct, bytes, int]:
    """The page at this place: its header, its body and the place behind it."""
    reader = Reader(data, place)
    header: Struct = reader.struct()
    end = reader.place + header[3]
    body = data[reader.place : end]
    return header, zlib.decompress(body, wbits=31) if codec == _GZIP else body, end


def _chunk(data: bytes, about: Struct, leaf: Struct) -> NDArray[Any]:
    header, body, _ = _page(data, about[9], about[4])
    count = header[5][1]
    if leaf[1] == _BOOL:
        return np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")[:count].astype(bool)
    return np.frombuffer(body, _NUMBERS[leaf[1], leaf.get(6)], count)


def _coded_chunk(data: bytes, about: Struct) -> Coded:
    header, body, end = _page(data, about[11], about[4])
    words = _words(body, header[7][1])
    header, body, _ = _page(data, end, about[4])
    return Coded(words, _codes(body, header[5][1]))


def _words(body: bytes, count: int) -> NDArray[np.object_]:
    words, place = [], 0
    for _ in range(count):
        end = place + 4 + int.from_bytes(body[place : place + 4], "little")
        words.append(body[place + 4 : end].decode())
        place = end
    return np.array(words, object)


def _codes(body: bytes, count: int) -> NDArray[np.int64]:
    width = body[0]
    reader = Reader(body, 1)
    reader.varint()
    if width in (8, 16, 32):
        return np.frombuffer(body, f"<u{width // 8}", count, reader.place).astype(np.int64)
    bits = np.unpackbits(np.frombuffer(body, np.uint8, offset=reader.place), bitorder="little")
    grouped = bits[: len(bits) // width * width].reshape(-1, width)[:count]
    codes: NDArray[np.int64] = grouped.astype(np.int64) @ (np.int64(1) << np.arange(width, dtype=np.int64))
    return codes
