"""Reads the tables that `TableWriter` wrote; other people's Parquet is for pyarrow."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.store.thrift import Reader

Struct: TypeAlias = Mapping[int, Any]

_NUMBERS = {(2, None): "<i8", (2, 14): "<u8", (4, None): "<f4", (5, None): "<f8"}
_TEXT, _BOOL, _DICTIONARY_PAGE = 6, 0, 2


def read_table(path: Path, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The columns of one of our tables, text as objects; all of them unless some are named."""
    data = path.read_bytes()
    if len(data) < 12 or data[:4] != b"PAR1" or data[-4:] != b"PAR1":
        raise UserError(f"expected a table written by counterfoil, got {path}: it is not a whole Parquet file")
    (size,) = struct.unpack("<I", data[-8:-4])
    about = Reader(data, len(data) - 8 - size).struct()
    if about.get(6) != b"counterfoil":
        raise UserError(f"expected a table written by counterfoil, got {path}: another program wrote it")
    leaves: list[Struct] = about[2][1:]
    names = [leaf[4].decode() for leaf in leaves]
    groups: list[Struct] = about[4]
    wanted = names if columns is None else columns
    return {name: _column(data, groups, names.index(name), leaves[names.index(name)]) for name in wanted}


def _column(data: bytes, groups: Sequence[Struct], place: int, leaf: Struct) -> NDArray[Any]:
    parts = [_chunk(data, group[1][place][3], leaf) for group in groups]
    return np.concatenate(parts) if parts else np.array([], object if leaf[1] == _TEXT else float)


def _page(data: bytes, place: int) -> tuple[Struct, bytes, int]:
    """The page at this place: its header, its body and the place behind it."""
    reader = Reader(data, place)
    header: Struct = reader.struct()
    end = reader.place + header[3]
    return header, zlib.decompress(data[reader.place : end], wbits=31), end


def _chunk(data: bytes, about: Struct, leaf: Struct) -> NDArray[Any]:
    header, body, end = _page(data, about.get(11, about[9]))
    if header[1] == _DICTIONARY_PAGE:
        words = _words(body, header[7][1])
        header, body, _ = _page(data, end)
        return words[_codes(body, header[5][1])]
    count = header[5][1]
    if leaf[1] == _BOOL:
        return np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")[:count].astype(bool)
    return np.frombuffer(body, _NUMBERS[leaf[1], leaf.get(6)], count)


def _words(body: bytes, count: int) -> NDArray[np.object_]:
    words, place = np.empty(count, object), 0
    for i in range(count):
        (size,) = struct.unpack_from("<I", body, place)
        words[i] = body[place + 4 : place + 4 + size].decode()
        place += 4 + size
    return words


def _codes(body: bytes, count: int) -> NDArray[np.int64]:
    width = body[0]
    reader = Reader(body, 1)
    reader.varint()
    bits = np.unpackbits(np.frombuffer(body, np.uint8, offset=reader.place), bitorder="little")
    grouped = bits[: len(bits) // width * width].reshape(-1, width)[:count]
    codes: NDArray[np.int64] = grouped.astype(np.int64) @ (np.int64(1) << np.arange(width, dtype=np.int64))
    return codes
