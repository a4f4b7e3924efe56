"""Parts: the finished pieces of a run's tables, each a small Parquet file named by the hash of all that goes in.

A part is written whole under a temporary name, brought to the disk and renamed, so that a part which is there is
done. It carries a hash of its rows, which every reading compares, and a record: what was skipped, which machine made
it and how long that took. Only the rows are the same wherever a part is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterfoil.errors import UserError
from counterfoil.store.files import open_atomically
from counterfoil.store.folder_mirror import (
    describe_place,
    fetch_file,
    has_file,
    list_folder,
    put_new_file,
    remove_file,
    remove_stored,
)
from counterfoil.store.parquet import Kind, arrow_schema, columns_of_rows, read_numbers, write_parquet

_ABOUT, _ABOUT_HASH = b"counterfoil", b"counterfoil_sha256"  # the keys of the record in the file's metadata
_ENDING = ".parquet"


class TablePart(NamedTuple):
    """The rows of one part as an Arrow table, and its record."""

    table: Any  # pyarrow.Table
    about: dict[str, Any]

    def texts(self, column: str) -> list[str]:
        """The values of a text column."""
        values: list[str] = self.table[column].to_pylist()
        return values


@dataclass(frozen=True)
class PartStore:
    """The parts of a run, in one folder."""

    folder: Path

    def names(self) -> set[str]:
        """The parts that are there."""
        return {name.removesuffix(_ENDING) for name in list_folder(self.folder) if _is_part(name)}

    def __contains__(self, name: str) -> bool:
        return has_file(self._path(name))

    def write(
        self, name: str, columns: Mapping[str, Kind], rows: Sequence[Sequence[Any]], about: Mapping[str, Any]
    ) -> None:
        """Write a part; one of the same name is replaced here, and stays where the folder is at an address."""
        import pyarrow as pa

        arrays = columns_of_rows(columns, rows)
        record = {**about, "rows": len(rows), "rows_sha256": hash_rows(arrays, columns)}
        schema = arrow_schema(columns).with_metadata(_format_about(record))
        buffer = io.BytesIO()
        write_parquet(buffer, columns, pa.Table.from_arrays(arrays, schema=schema))
        with open_atomically(self._path(name)) as file:
            file.write(buffer.getvalue())
        put_new_file(self._path(name))

    def read(self, name: str, columns: Mapping[str, Kind] | None = None) -> TablePart:
        """The part; raises `UserError` where it is damaged, or its columns are not those that are expected."""
        path = self._path(name)
        with _open_part(path) as file:
            table = file.read(use_threads=False)  # a part is small: handing it to threads costs more
            about = _parse_about(file.schema_arrow.metadata)
            if hash_rows(table.columns, table.column_names) != about["rows_sha256"]:
                raise ValueError("its rows are not those that were written")
            if columns is not None and not table.schema.equals(arrow_schema(columns)):  # the same bytes
                raise ValueError("its columns are not of the types that were written")
        return TablePart(table, about)

    def about(self, name: str) -> dict[str, Any]:
        """The record of a part, without its rows."""
        with _open_part(self._path(name)) as file:
            return _parse_about(file.schema_arrow.metadata)

    def allow_replacement(self, name: str) -> None:
        """Let the next writing of a part replace it: at an address, a part that is there stays."""
        remove_stored(self._path(name))

    def remove(self, name: str) -> None:
        """Remove a part, so that it is made again."""
        remove_file(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{_ENDING}"


def list_damaged_parts(folder: Path) -> list[str]:
    """What is wrong with the parts of a run's folder, one line per part."""
    store = PartStore(folder / "work" / "parts")
    damaged = []
    for name in sorted(store.names()):
        try:
            store.read(name)
        except UserError as error:
            damaged.append(str(error))
    return damaged


def _is_part(name: str) -> bool:
    return name.endswith(_ENDING) and not name.startswith(".")


def _parse_about(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    text = (metadata or {})[_ABOUT]
    if hashlib.sha256(text).hexdigest().encode() != (metadata or {})[_ABOUT_HASH]:
        raise ValueError("its record is not the one that was written")
    about: dict[str, Any] = json.loads(text)
    return about


def _format_about(about: Mapping[str, Any]) -> dict[bytes, bytes]:
    """The record as metadata of the file, with its hash."""
    text = json.dumps(about).encode()
    return {_ABOUT: text, _ABOUT_HASH: hashlib.sha256(text).hexdigest().encode()}


@contextlib.contextmanager
def _open_part(path: Path) -> Iterator[Any]:
    """A part as a `pyarrow.parquet.ParquetFile`; whatever is wrong with it is a `UserError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fetch_file(path)
    with path.open("rb"), pa.OSFile(os.fsencode(path)) as file:  # Arrow's memory: see `open_parquet`
        content = pa.BufferReader(file.read_buffer())
    try:
        yield pq.ParquetFile(content, page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        line = " ".join(str(error).split())[:160]
        place = describe_place(path)
        raise UserError(f"expected a whole part of the run in {place}, which is damaged: {line}; remove it") from error


def part_name(*inputs: object) -> str:
    """The name of a part: a hash of all that goes into it."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


def hash_rows(arrays: Iterable[Any], names: Iterable[str] = ()) -> str:
    """SHA-256 over the values of Arrow arrays, column by column, however they are encoded, and over their names."""
    import pyarrow as pa

    digest = hashlib.sha256("\n".join(names).encode())
    for array in arrays:
        values = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        if pa.types.is_string(values.type):
            offsets = np.frombuffer(values.buffers()[1] or b"\0\0\0\0", np.int32)[values.offset :][: len(values) + 1]
            text = values.buffers()[2]
            digest.update((offsets - offsets[0]).tobytes())
            digest.update(b"" if text is None else memoryview(text)[offsets[0] : offsets[-1]])
        else:
            digest.update(np.ascontiguousarray(read_numbers(values)).tobytes())
        digest.update(b"|")
    return digest.hexdigest()
