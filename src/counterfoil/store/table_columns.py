"""The columns of one table by name: each is read once, on first use, and kept in few bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.store.packed_texts import PackedTexts
from counterfoil.store.parquet import (
    DictionaryColumn,
    expand_texts,
    locate_texts,
    open_parquet,
    read_dictionary_table,
    take_rows,
)

_MANY_WORDS = 1_000  # from which on the words of a column that is kept are no objects


class PackedColumn(NamedTuple):
    """A text column of many words, which are no objects."""

    words: PackedTexts
    codes: NDArray[np.signedinteger[Any]]


KeptColumn: TypeAlias = "NDArray[Any] | DictionaryColumn | PackedColumn"


def pack_column(column: NDArray[Any] | DictionaryColumn) -> KeptColumn:
    """A column as it is kept; objects take three times the memory of the texts that they hold."""
    if not isinstance(column, DictionaryColumn) or len(column.dictionary) < _MANY_WORDS:
        return column
    return PackedColumn(PackedTexts(column.dictionary.tolist()), column.indices)


def unpack_column(column: KeptColumn) -> NDArray[Any] | DictionaryColumn:
    """A column that was kept, as it is used."""
    if not isinstance(column, PackedColumn):
        return column
    return DictionaryColumn(np.fromiter(column.words, object, len(column.words)), column.codes)


def shorten_column(
    column: NDArray[Any] | DictionaryColumn, rows: NDArray[np.bool_] | None = None
) -> NDArray[Any] | DictionaryColumn:
    """The rows that count; codes and whole numbers in as few bytes as the largest allows."""
    if isinstance(column, DictionaryColumn):
        codes = column.indices.astype(np.min_scalar_type(-len(column.dictionary) - 1))
        return DictionaryColumn(column.dictionary, codes if rows is None else codes[rows])
    if column.dtype.kind == "i":
        most = max(int(column.max(initial=0)), -1 - int(column.min(initial=0)))
        column = column.astype(np.min_scalar_type(-1 - most))
    return column if rows is None else column[rows]


class TableColumns(Mapping[str, NDArray[Any]]):
    """The columns of a table by name; each is read on first use, and kept coded. `rows` says which rows count."""

    def __init__(self, path: Path, rows: NDArray[np.bool_] | None = None) -> None:
        self._path, self._rows = path, rows
        with open_parquet(path) as file:
            self._names: tuple[str, ...] = tuple(file.schema_arrow.names)
        self._columns: dict[str, KeptColumn] = {}
        self._taken: dict[bytes, dict[str, NDArray[Any]]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        values = expand_texts(self.coded(name))
        return values.astype(np.int64) if values.dtype.kind == "i" else values

    def coded(self, name: str) -> NDArray[Any] | DictionaryColumn:
        """A column, texts as distinct words and codes in as few bytes as their number allows, as whole numbers too."""
        if name not in self._columns:
            self._columns[name] = pack_column(self.read(name))
        return unpack_column(self._columns[name])

    def read(self, name: str) -> NDArray[Any] | DictionaryColumn:
        """A coded column that is not kept: numbers that are used once."""
        return shorten_column(read_dictionary_table(self._path, [name])[name], self._rows)

    def numbers(self, name: str) -> NDArray[Any]:
        """A column of numbers."""
        column = self.coded(name)
        if isinstance(column, DictionaryColumn):
            raise UserError(f"expected numbers in the column {name} of {self._path}, got texts")
        return column

    def texts(self, name: str) -> DictionaryColumn:
        """A column of texts as distinct words and codes."""
        column = self.coded(name)
        if not isinstance(column, DictionaryColumn):
            raise UserError(f"expected texts in the column {name} of {self._path}, got {column.dtype}")
        return column

    def locate(self, name: str, path: Path, other: str) -> NDArray[np.int64]:
        """For each text in a column of another table its place in this one, among the rows that count; else -1."""
        places = locate_texts((path, other), (self._path, name))
        if self._rows is None:
            return places
        counted = np.where(self._rows, np.cumsum(self._rows) - 1, -1)
        return np.where(places < 0, -1, counted[places])

    def take(self, places: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """Some rows of every column, by their places among those that count; these rows alone are kept."""
        key = places.tobytes()
        if key not in self._taken:
            wanted = places if self._rows is None else np.flatnonzero(self._rows)[places]
            self._taken[key] = take_rows(self._path, self._names, wanted)
        return self._taken[key]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def get(self, name: str, default: Any = None) -> Any:
        """A column, or the default where the table has none of this name."""
        return self[name] if name in self else default  # noqa: SIM401  (this is `get`)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
