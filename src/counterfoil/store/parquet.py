"""Parquet tables, written and read.

Text is dictionary-encoded and zstd-compressed. The same rows give the same bytes with the same pyarrow. Pages carry a
checksum, so a damaged file is noticed. pyarrow is imported when the first table is opened, not with the package.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.store.files import open_atomically
from counterfoil.store.packed_texts import CompactTexts

Kind: TypeAlias = Literal["text", "int", "unsigned", "float", "double", "bool"]

NUMBERS = {
    "int32": "int32",
    "int64": "int64",
    "uint64": "uint64",
    "float": "float32",
    "double": "float64",
    "bool": "bool",
}  # types of NumPy by those of Arrow
_DTYPES: dict[Kind, str] = {
    "int": "int64",
    "unsigned": "uint64",
    "float": "float32",
    "double": "float64",
    "bool": "bool",
}
_UNCOMPRESSED = ("float", "double")  # scores hardly compress
_DICTIONARY_BYTES = 64 << 20  # columns with a different text per row stay dictionary-encoded too


class DictionaryColumn(NamedTuple):
    """A text column as Arrow's DictionaryArray holds it: the distinct texts, and each row's index among them."""

    dictionary: NDArray[np.object_]
    indices: NDArray[np.signedinteger[Any]]


Column: TypeAlias = "Sequence[str] | Sequence[float] | NDArray[Any] | DictionaryColumn"


def dictionary_encode(values: Sequence[Any] | NDArray[Any]) -> DictionaryColumn:
    """The distinct texts in the order of first appearance, and each value's index among them."""
    texts = values if isinstance(values, list) else list(values)
    index_of = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    return DictionaryColumn(
        np.array([*index_of], object), np.fromiter(map(index_of.__getitem__, texts), np.int64, len(texts))
    )


class TableWriter:
    """A table that grows by row groups and gets its name when closed."""

    def __init__(self, path: Path, columns: Mapping[str, Kind]) -> None:
        self._columns = dict(columns)
        self._schema = arrow_schema(columns)
        self._stack = ExitStack()
        file = self._stack.enter_context(open_atomically(path))
        self._writer = self._stack.enter_context(_open_writer(file, columns, self._schema))

    def write(self, rows: Mapping[str, Column]) -> None:
        """Append rows, given as columns of equal length, as one row group."""
        self.write_arrays([_array(rows[name], kind) for name, kind in self._columns.items()])

    def write_arrays(self, arrays: Sequence[Any]) -> None:
        """Append rows, given as Arrow arrays in the order of the columns, as one row group."""
        import pyarrow as pa

        (count,) = {len(array) for array in arrays}
        if count:
            self._writer.write_table(pa.Table.from_arrays(list(arrays), schema=self._schema), row_group_size=count)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def arrow_schema(columns: Mapping[str, Kind]) -> Any:
    """The Arrow schema of columns; texts are dictionary-coded, nothing is missing."""
    import pyarrow as pa

    types = {kind: pa.from_numpy_dtype(dtype) for kind, dtype in _DTYPES.items()}
    types["text"] = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([pa.field(name, types[kind], nullable=False) for name, kind in columns.items()])


def _open_writer(file: Any, columns: Mapping[str, Kind], schema: Any) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        file, schema, use_dictionary=[name for name, kind in columns.items() if kind == "text"],
        compression={name: "NONE" if kind in _UNCOMPRESSED else "ZSTD" for name, kind in columns.items()},
        dictionary_pagesize_limit=_DICTIONARY_BYTES, write_statistics=False, write_page_checksum=True,
        store_schema=schema.metadata is not None,  # without it other programs see plain text columns
    )  # fmt: skip


def write_parquet(file: Any, columns: Mapping[str, Kind], table: Any) -> None:
    """Write an Arrow table, with the metadata of its schema, into an open file as one row group."""
    with _open_writer(file, columns, table.schema) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))


def columns_of_rows(columns: Mapping[str, Kind], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Rows as Arrow arrays, one per column."""
    values = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return [_array(list(column), kind) for kind, column in zip(columns.values(), values, strict=True)]


def write_table(path: Path, columns: Mapping[str, Kind], rows: Mapping[str, Column]) -> Path:
    """Write a whole table at once."""
    with TableWriter(path, columns) as table:
        table.write(rows)
    return path


def _array(values: Column, kind: Kind) -> Any:
    import pyarrow as pa

    if isinstance(values, DictionaryColumn):
        return pa.DictionaryArray.from_arrays(
            _number_array(values.indices.astype(np.int32)), text_array(values.dictionary)
        )
    if kind == "text":
        return text_array(values).dictionary_encode()
    return _number_array(np.asarray(values, _DTYPES[kind]))


def _number_array(values: NDArray[Any]) -> Any:
    """Numbers or flags in Arrow. `pa.array` would do, but loads pandas where it is installed: a third of a second."""
    import pyarrow as pa

    plain = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(plain)])


def text_array(values: Sequence[Any] | NDArray[Any]) -> Any:
    """Texts in Arrow, without pandas."""
    import pyarrow as pa

    if isinstance(values, CompactTexts):
        content, ends = values.joined()
    else:
        coded = [value.encode() for value in values]
        content, ends = b"".join(coded), np.cumsum([0, *map(len, coded)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        return pa.array(values, pa.string())  # in several chunks
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(content))


@contextlib.contextmanager
def open_parquet(path: Path, read_dictionary: bool = False) -> Iterator[Any]:
    """Any program's Parquet file as a `pyarrow.parquet.ParquetFile`; one that is damaged is a `UserError`.

    With `read_dictionary` texts are read as dictionary and indices: a table of millions of rows repeats few of them.
    Arrow opens the file itself: its threads must not hold a Python object when the process ends, which aborts it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb"), pa.OSFile(os.fsencode(path)) as file:  # Python's own errors name the file
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            texts = [field.name for field in parquet.schema_arrow if read_dictionary and field.type == pa.string()]
            yield parquet if not texts else pq.ParquetFile(
                file, metadata=parquet.metadata, read_dictionary=texts, page_checksum_verification=True
            )  # fmt: skip
        except MemoryError as error:  # Arrow's own is an ArrowException too, and says nothing about the file
            raise UserError(
                f"expected enough memory to read {path}, and none is left: close other programs and run the same"
                " command again"
            ) from error
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            line = " ".join(str(error).split())[:160]
            raise UserError(f"expected a whole Parquet file, got {path}: it is damaged: {line}") from error


def read_table(path: Path, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The columns of a table, text as objects; all of them unless some are named."""
    table = read_dictionary_table(path, columns)
    return _NamedColumns(path, {name: expand_texts(column) for name, column in table.items()})


def expand_texts(column: NDArray[Any] | DictionaryColumn) -> NDArray[Any]:
    """A column with its texts as objects."""
    return column.dictionary[column.indices] if isinstance(column, DictionaryColumn) else column


class _NamedColumns(dict[str, NDArray[Any]]):
    """Columns by name; one that the file lacks is the user's error, since the file may be damaged or another's."""

    def __init__(self, path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(columns)
        self._path = path

    def __missing__(self, name: str) -> NDArray[Any]:
        raise _describe_missing(name, self._path, tuple(self))


def _describe_missing(name: str, path: Path, names: Sequence[str]) -> UserError:
    return UserError(f"expected the column {name} in {path}, got {', '.join(names)[:400]}")


def take_rows(path: Path, names: Sequence[str], rows: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    """Ascending rows of some columns, read from the row groups that hold them, one in memory at a time."""
    import pyarrow as pa

    columns = {}
    with open_parquet(path) as file:
        ends = np.cumsum([0, *_row_counts(file)])
        for name in names:
            pieces = []
            for group in np.unique(np.searchsorted(ends, rows, "right") - 1).tolist():
                own = rows[(rows >= ends[group]) & (rows < ends[group + 1])] - ends[group]
                pieces += file.read_row_group(group, columns=[name])[name].take(_number_array(own)).chunks
            columns[name] = _column(pa.chunked_array(pieces, file.schema_arrow.field(name).type))
    release_memory()
    return {name: expand_texts(column) for name, column in columns.items()}


def locate_texts(column: tuple[Path, str], among: tuple[Path, str]) -> NDArray[np.int64]:
    """For each text in a column of one table its place in a column of another, -1 where it is not there.

    Columns of ids, a different text in each row, are compared within Arrow: as objects they take five times the memory.
    """
    import pyarrow.compute as pc

    with open_parquet(column[0]) as file, open_parquet(among[0]) as other:
        columns = ((file, column[1], column[0]), (other, among[1], among[0]))
        if _row_counts(file) == _row_counts(other) and all(
            own.equals(there) for own, there in zip(*(_read_groups(*place) for place in columns), strict=True)
        ):
            places = np.arange(file.metadata.num_rows)
        else:
            own, there = (_read_whole(*place) for place in columns)
            found = pc.fill_null(pc.index_in(own, value_set=there.combine_chunks()), -1)
            places = read_numbers(found.combine_chunks()).astype(np.int64)
            del own, there
    release_memory()
    return places


def find_texts(path: Path, name: str, wanted: Collection[str]) -> tuple[list[str], NDArray[np.intp]]:
    """The rows of a column of texts that hold a wanted one: the texts, and their places."""
    import pyarrow.compute as pc

    chosen = text_array(sorted(wanted))
    texts: list[str] = []
    parts, start = [np.zeros(0, np.intp)], 0
    with open_parquet(path) as file:
        for values in _read_groups(file, name, path):
            rows = np.flatnonzero(read_numbers(pc.is_in(values, value_set=chosen).combine_chunks()))
            texts += values.take(_number_array(rows)).to_pylist()
            parts.append(start + rows)
            start += len(values)
    release_memory()
    return texts, np.concatenate(parts)


def has_text(path: Path, name: str) -> bool:
    """Whether a text column says anything in any row; its texts are not made into objects."""
    import pyarrow.compute as pc

    with open_parquet(path) as file:
        return any(pc.max(pc.binary_length(values)).as_py() for values in _read_groups(file, name, path))


def read_dictionary_table(
    path: Path, columns: Sequence[str] | None = None
) -> dict[str, NDArray[Any] | DictionaryColumn]:
    """The columns of a table, text as dictionary and indices, for grouping large tables."""
    with open_parquet(path, read_dictionary=True) as file:
        wanted = file.schema_arrow.names if columns is None else columns
        table = {name: _column(_read_whole(file, name, path)) for name in wanted}  # one Arrow column at a time
    release_memory()
    return table


def _read_whole(file: Any, name: str, path: Path) -> Any:
    """One Arrow column; raises `UserError` where it has more or fewer rows than the file says."""
    if name not in file.schema_arrow.names:
        raise _describe_missing(name, path, file.schema_arrow.names)
    values = file.read(columns=[name])[name]
    _check_length(len(values), file.metadata.num_rows, name, path)
    return values


def _read_groups(file: Any, name: str, path: Path) -> Iterator[Any]:
    """The row groups of one Arrow column in turn, one in memory at a time; raises as `_read_whole` does."""
    if name not in file.schema_arrow.names:
        raise _describe_missing(name, path, file.schema_arrow.names)
    for group, rows in enumerate(_row_counts(file)):
        values = file.read_row_group(group, columns=[name])[name]
        _check_length(len(values), rows, name, path)
        yield values


def _row_counts(file: Any) -> list[int]:
    return [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]


def _check_length(there: int, expected: int, name: str, path: Path) -> None:
    if there != expected:
        raise UserError(
            f"expected a whole Parquet file, got {path}: it is damaged: {there:,} of {expected:,} rows in the column"
            f" {name[:80]}"
        )


def release_memory() -> None:
    """Give the memory back that Arrow keeps for its next table."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _column(values: Any) -> NDArray[Any] | DictionaryColumn:
    """An Arrow column as NumPy arrays; a missing text is empty, a missing number is NaN."""
    import pyarrow as pa

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        if str(kind) in NUMBERS and values.type == kind:
            return np.concatenate([np.empty(0, NUMBERS[str(kind)]), *map(read_numbers, values.chunks)])
        numbers: NDArray[Any] = values.cast(kind).to_numpy()
        return numbers if numbers.flags.writeable else numbers.copy()  # Arrow's memory is read-only
    if not len(values):  # Arrow would make an array of no chunk, for which it loads pandas
        return DictionaryColumn(np.empty(0, object), np.empty(0, np.int64))
    if values.null_count:
        values = values.cast(kind).fill_null("")
    if values.type == kind:
        values = values.dictionary_encode()
    whole = values.unify_dictionaries().combine_chunks()
    whole.validate(full=True)  # a damaged file may hold indices beyond its dictionary
    return DictionaryColumn(_read_texts(whole.dictionary), read_numbers(whole.indices).astype(np.int64))


def read_numbers(values: Any) -> NDArray[Any]:
    """An Arrow array of numbers or flags in NumPy; a missing number is NaN.

    `to_numpy` would do, but loads pandas where it is installed, as does `pa.array`: a third of a second.
    """
    kind = NUMBERS.get(str(values.type))
    if values.null_count or kind is None:
        return np.asarray(values.to_numpy(zero_copy_only=False))
    content = values.buffers()[1]
    if content is None:
        return np.empty(0, kind)
    if kind == "bool":
        bits = np.unpackbits(np.frombuffer(content, np.uint8), count=values.offset + len(values), bitorder="little")
        return bits[values.offset :].view(np.bool_)
    return np.frombuffer(content, kind, len(values), values.offset * np.dtype(kind).itemsize)


def _read_texts(values: Any) -> NDArray[Any]:
    """Texts of an Arrow array as objects; `to_pylist` takes three times as long, `to_numpy` loads pandas."""
    texts = np.empty(len(values), object)
    _, ends, content = values.buffers()
    if values.null_count or content is None:
        texts[:] = values.to_pylist()
        return texts
    ends = np.frombuffer(ends, np.int64 if str(values.type).startswith("large") else np.int32)[values.offset :]
    places = (ends[: len(values) + 1] - ends[0]).tolist()
    raw = memoryview(content)[ends[0] : ends[len(values)]].tobytes()
    if raw.isascii():
        plain = raw.decode("ascii")
        texts[:] = [plain[start:stop] for start, stop in itertools.pairwise(places)]
    else:
        texts[:] = [raw[start:stop].decode() for start, stop in itertools.pairwise(places)]
    return texts
