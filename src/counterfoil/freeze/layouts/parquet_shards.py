"""Parquet with the pictures inside, as Hugging Face keeps them: a struct of bytes and path, and text columns.

Written by hand like our other tables: pyarrow is no part of the core, and its bytes change with its version. Nothing is
compressed, since PNG already is, so each picture's bytes lie in one piece and are read without a Parquet reader.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterfoil.freeze.entries import SHOWN, Entry, Place
from counterfoil.freeze.layouts.layout import Site
from counterfoil.freeze.layouts.shards import ShardedLayout
from counterfoil.store.thrift import Long, Struct, encode_struct, varint

_MAGIC = b"PAR1"
_PLAIN, _RLE, _NO_CODEC, _OPTIONAL, _BYTE_ARRAY, _UTF8, _DATA_PAGE = 0, 3, 0, 1, 6, 0, 0
_GROUP_ROWS, _GROUP_BYTES = 100, 32 << 20  # readers hold a row group in memory
_PATHS: tuple[tuple[bytes, ...], ...] = (
    (b"image", b"bytes"),
    (b"image", b"path"),
    *((name.encode(),) for name in SHOWN),
)


class ParquetShard:
    """One Parquet file that grows by row groups."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = path.open("wb")
        self._file.write(_MAGIC)
        self._name = name
        self._waiting: list[tuple[Entry, bytes]] = []
        self._waiting_bytes = 0
        self._groups: list[Struct] = []
        self._places: list[Place] = []
        self.taken = 0

    def add(self, entry: Entry, data: bytes) -> None:
        """Take one picture; a full row group is written."""
        self._waiting.append((entry, data))
        self._waiting_bytes += len(data)
        self.taken += len(data)
        if len(self._waiting) >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        start = self._file.tell()
        chunks = [self._chunk(path, values) for path, values in zip(_PATHS, self._columns(), strict=True)]
        self._groups.append({1: chunks, 2: Long(self._file.tell() - start), 3: Long(len(self._waiting))})
        self._waiting, self._waiting_bytes = [], 0

    def _columns(self) -> list[list[bytes]]:
        """The values of each column, in the order of `_PATHS`."""
        rows = [
            [data, _file_name(entry), *(entry.shown[name].encode() for name in SHOWN)] for entry, data in self._waiting
        ]
        return [list(column) for column in zip(*rows, strict=True)]

    def _chunk(self, path: Sequence[bytes], values: Sequence[bytes]) -> Struct:
        """One column of a row group, in one page."""
        start = self._file.tell()
        present = _all_present(len(values), len(path))
        size = len(present) + sum(len(value) + 4 for value in values)
        page: Struct = {1: len(values), 2: _PLAIN, 3: _RLE, 4: _RLE}
        self._file.write(encode_struct({1: _DATA_PAGE, 2: size, 3: size, 5: page}) + present)
        for place, value in enumerate(values):
            self._file.write(struct.pack("<I", len(value)))
            if path == _PATHS[0]:
                self._note(self._waiting[place][0], value)
            self._file.write(value)
        length = Long(self._file.tell() - start)
        about: dict[int, Any] = {
            1: _BYTE_ARRAY, 2: [_PLAIN, _RLE], 3: list(path), 4: _NO_CODEC, 5: Long(len(values)), 6: length,
            7: length, 9: Long(start),
        }  # fmt: skip
        return {2: Long(start), 3: about}

    def _note(self, entry: Entry, data: bytes) -> None:
        member, digest = _file_name(entry).decode(), hashlib.sha256(data).hexdigest()
        self._places.append(Place(self._name, member, self._file.tell(), len(data), digest))

    def close(self) -> list[Place]:
        """Write the last row group and the footer."""
        if self._waiting:
            self._write_group()
        rows = Long(len(self._places))
        about: dict[int, Any] = {1: 2, 2: _schema(), 3: rows, 4: self._groups, 5: [_features()], 6: b"counterfoil"}
        footer = encode_struct(about)
        self._file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)
        self._file.close()
        return self._places


def _all_present(count: int, depth: int) -> bytes:
    """The levels that say of every value that it is there, as one run."""
    levels = varint(count << 1) + bytes([depth])
    return struct.pack("<I", len(levels)) + levels


def _file_name(entry: Entry) -> bytes:
    return entry.exhibit.file.encode()


def _schema() -> list[Struct]:
    """The root, the struct of the picture with its two leaves, then the text columns.

    Nothing is missing, yet all are optional: `datasets` takes no struct for a picture that says otherwise.
    """
    root: Struct = {4: b"rows", 5: 1 + len(SHOWN)}
    image: Struct = {3: _OPTIONAL, 4: b"image", 5: 2}
    content: Struct = {1: _BYTE_ARRAY, 3: _OPTIONAL, 4: b"bytes"}
    texts: list[Struct] = [
        {1: _BYTE_ARRAY, 3: _OPTIONAL, 4: name, 6: _UTF8} for name in (b"path", *(name.encode() for name in SHOWN))
    ]
    return [root, image, content, *texts]


def _features() -> Struct:
    """What tells `datasets` that the struct is a picture."""
    columns = {name: {"dtype": "string", "_type": "Value"} for name in SHOWN}
    told = {"info": {"features": {"image": {"_type": "Image"}, **columns}}}
    return {1: b"huggingface", 2: json.dumps(told).encode()}


def parquet_layout(site: Site) -> ShardedLayout:
    """Parquet shards."""
    return ShardedLayout(site, "parquet", ParquetShard)
