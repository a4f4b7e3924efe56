"""Parquet with the pictures inside, as Hugging Face keeps them: a struct of bytes and path, and text columns.

Nothing is compressed, since PNG already is, and nothing is dictionary-encoded: each picture's bytes lie in one piece,
so that they are read by offset and size without a Parquet reader.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from counterfoil.freeze.entries import SHOWN, Entry, Place
from counterfoil.freeze.layouts.layout import Site
from counterfoil.freeze.layouts.shards import ShardedLayout

_GROUP_ROWS, _GROUP_BYTES = 100, 32 << 20  # readers hold a row group in memory


class ParquetShard:
    """One Parquet file that grows by row groups."""

    def __init__(self, path: Path, name: str) -> None:
        import pyarrow.parquet as pq

        self._file = path.open("w+b")
        self._writer = pq.ParquetWriter(
            self._file, _schema(), compression="NONE", use_dictionary=False, write_statistics=False
        )
        self._name = name
        self._waiting: list[tuple[Entry, bytes]] = []
        self._waiting_bytes = 0
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
        import pyarrow as pa

        start = self._file.tell()
        rows = [{"image": {"bytes": data, "path": entry.exhibit.file}, **entry.shown} for entry, data in self._waiting]
        self._writer.write_table(pa.Table.from_pylist(rows, _schema()))
        self._locate(start)
        self._waiting, self._waiting_bytes = [], 0

    def _locate(self, start: int) -> None:
        """Find the pictures in the row group that begins at `start`: in order, each behind its length."""
        self._file.seek(start)
        group, position = self._file.read(), 0
        for entry, data in self._waiting:
            position = group.index(struct.pack("<I", len(data)) + data, position) + 4
            digest = hashlib.sha256(data).hexdigest()
            self._places.append(Place(self._name, entry.exhibit.file, start + position, len(data), digest))
            position += len(data)

    def close(self) -> list[Place]:
        """Write the last row group and the footer."""
        if self._waiting:
            self._write_group()
        self._writer.close()
        self._file.close()
        return self._places


def _schema() -> Any:
    """The columns, with the metadata that tells `datasets` that the struct is a picture.

    Nothing is missing, yet all are optional: `datasets` takes no struct for a picture that says otherwise.
    """
    import pyarrow as pa

    texts = {name: {"dtype": "string", "_type": "Value"} for name in SHOWN}
    features = {"info": {"features": {"image": {"_type": "Image"}, **texts}}}
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = [("image", picture), *((name, pa.string()) for name in SHOWN)]
    return pa.schema(columns, metadata={"huggingface": json.dumps(features)})


def parquet_layout(site: Site) -> ShardedLayout:
    """Parquet shards."""
    return ShardedLayout(site, "parquet", ParquetShard)
