"""Tables of answers that other programs wrote: CSV or Parquet in, dictionary-coded columns out.

A file is read block by block. Texts are coded once each, so that a table of a million rows takes a few bytes a row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError, did_you_mean
from counterfoil.store.parquet import DictionaryColumn, open_parquet, release_memory

_PARQUET = (".parquet", ".pq")
_JSON_LINES = (".jsonl", ".ndjson", ".json")
_BLOCK_BYTES = 1 << 20
_ROWS_AT_ONCE = 65_536
_TRUE, _FALSE = {"1", "true", "yes", "right", "correct"}, {"0", "false", "no", "wrong", "incorrect"}
_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


@dataclass(frozen=True, kw_only=True)
class AnswerColumns:
    """The names that a table gives to its columns."""

    model: str = "model"
    sample: str = "sample"
    condition: str = "condition"
    correct: str = "correct"
    prediction: str = "prediction"
    label: str = "label"
    confidence: str = "confidence"
    attribute: str = "attribute"
    edit: str = "edit"
    level: str = "level"

    def names(self) -> dict[str, str]:
        """The name in the file by the role of the column."""
        return dict(vars(self))


@dataclass
class CodedColumn:
    """A text column that grows block by block: the distinct texts and each row's index among them."""

    places: dict[str, int] = field(default_factory=dict)
    parts: list[NDArray[np.int32]] = field(default_factory=list)

    def add(self, values: Any) -> None:
        """Append an Arrow array of texts, dictionary-coded or plain; a missing cell is an empty text."""
        import pyarrow as pa

        coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        words = ["" if word is None else word.strip() for word in coded.dictionary.to_pylist()]
        own = np.array([self._place(word) for word in words], np.int32)
        if coded.indices.null_count:
            own = np.append(own, np.int32(self._place("")))
        self.parts.append(own[coded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)])

    def add_constant(self, text: str, rows: int) -> None:
        """Append one text for so many rows."""
        self.parts.append(np.full(rows, self._place(text), np.int32))

    def finish(self) -> DictionaryColumn:
        """The whole column."""
        indices = np.concatenate(self.parts) if self.parts else np.zeros(0, np.int32)
        self.parts = []
        return DictionaryColumn(np.array([*self.places], object), indices)

    def _place(self, word: str) -> int:
        return self.places.setdefault(word, len(self.places))


@dataclass(frozen=True)
class AnswerTable:
    """The rows of one or several files; which columns there are depends on the files."""

    texts: dict[str, DictionaryColumn]  # by role: model, sample, condition, ...
    correct: NDArray[np.bool_] | None  # as the file says; None where it has no such column
    confidence: NDArray[np.float64] | None
    first_row: tuple[tuple[int, str], ...]  # index of each file's first row, and the file

    def __len__(self) -> int:
        return len(self.texts["sample"].indices)

    def locate(self, row: int) -> str:
        """Where a row stands, for messages: counted from 1 without the header."""
        start, file = next(pair for pair in reversed(self.first_row) if pair[0] <= row)
        return f"row {row - start + 1} of {file}"


def read_answer_table(
    paths: Sequence[Path], columns: AnswerColumns, *, models: Sequence[str] = (), needs_condition: bool = True
) -> AnswerTable:
    """Read answers made elsewhere.

    Args:
        paths: CSV (.csv, .tsv, .txt) or Parquet files; several are read as one table.
        columns: The names of their columns.
        models: The model of each file, where the files have no such column.
        needs_condition: Whether a missing condition column is an error; else every row is an unedited picture.

    Returns:
        The rows of all files; columns that are no part of `columns` are not read.

    Raises:
        UserError: Where a file cannot be read, lacks a column, or holds no row.
    """
    if models and len(models) != len(paths):
        raise UserError(f"expected --model once per file, got {len(models)} for {len(paths)} files")
    repeated = next((path for path in paths if paths.count(path) > 1), None)
    if repeated is not None:
        raise UserError(f"expected every file of answers once, got {repeated} twice; leave one out")
    headers = [_read_header(path) for path in paths]
    for path, header in zip(paths, headers, strict=True):
        _check_header(path, header, columns, bool(models), needs_condition)
    roles = _choose_roles(paths, headers, columns, bool(models))
    texts = {role: CodedColumn() for role in roles if role != "confidence"}
    if models:
        texts["model"] = CodedColumn()
    confidences: list[NDArray[np.float64]] = []
    first_row, rows = [], 0
    for place, path in enumerate(paths):
        first_row.append((rows, str(path)))
        for block in _read_blocks(path, {role: columns.names()[role] for role in roles}):
            for role in roles:
                if role == "confidence":
                    confidences.append(_numbers(block[role], path))
                else:
                    texts[role].add(block[role])
            count = len(block["sample"])
            if models:
                texts["model"].add_constant(models[place], count)
            rows += count
        if rows == first_row[-1][0]:
            raise UserError(f"expected rows of answers in {path}, got only a header; check how it was written")
    finished = {role: column.finish() for role, column in texts.items()}
    table = AnswerTable(finished, None, np.concatenate(confidences) if confidences else None, tuple(first_row))
    release_memory()
    _check_confidence(table, columns.confidence)
    return _normalise(table, columns)


def read_factors(path: Path, sample: str, label: str) -> tuple[DictionaryColumn, dict[str, NDArray[np.bool_]], Any]:
    """Read annotations of photos: a row per photo, a column of 0 and 1 per factor.

    Args:
        path: CSV, Parquet or JSON lines.
        sample: The column of photos.
        label: The column of the true class, where there is one.

    Returns:
        The photos, whether each factor applies to each of them, and the classes or None.
    """
    table = _read_whole(path)
    if sample not in table.column_names:
        raise _missing_column(path, table.column_names, sample, "--sample-column")
    if not table.num_rows:
        raise UserError(f"expected a row per photo in {path}, got only a header")
    coded = {}
    for name in (sample, label):
        if name in table.column_names:
            coded[name] = CodedColumn()
            coded[name].add(_as_text(table[name]))
    factors = {
        name: flags
        for name in table.column_names
        if name not in (sample, label) and (flags := _as_flags(table[name])) is not None
    }
    if not factors:
        raise UserError(
            f"expected columns of 0 and 1, one per factor, beside '{sample}' in {path},"
            f" got {', '.join(table.column_names)}"
        )
    return coded[sample].finish(), factors, _simplify_numbers(coded[label].finish()) if label in coded else None


def _check_header(
    path: Path, header: Sequence[str], columns: AnswerColumns, named: bool, needs_condition: bool
) -> None:
    """Raise `UserError`, with the option that helps, where a file lacks a column."""
    needed = ["sample"] + ([] if named else ["model"]) + (["condition"] if needs_condition else [])
    for role in needed:
        name = columns.names()[role]
        if name not in header:
            more = ", or --model NAME where the file holds one model" if role == "model" else ""
            more = ", or --annotations FILE where all pictures are unedited" if role == "condition" else more
            raise _missing_column(path, header, name, f"--{role}-column NAME{more}")
    for role, name in columns.names().items():
        elsewhere = (role == "model" and named) or (role == "label" and not needs_condition)  # --model, --annotations
        if name != AnswerColumns().names()[role] and name not in header and not elsewhere:
            raise _missing_column(path, header, name, f"--{role}-column NAME, or leave the option out")
    if columns.correct not in header and columns.prediction not in header:
        raise UserError(
            f"expected a column '{columns.correct}', or '{columns.prediction}' and '{columns.label}', in {path}, got"
            f" {', '.join(header)}; say --correct-column, or --prediction-column and --label-column"
        )


def _missing_column(path: Path, header: Sequence[str], name: str, advice: str) -> UserError:
    return UserError(
        f"expected a column '{name}' in {path}, got {', '.join(header)}{did_you_mean(name, header)}; say {advice}"
    )


def _choose_roles(
    paths: Sequence[Path], headers: Sequence[Sequence[str]], columns: AnswerColumns, named: bool
) -> list[str]:
    """The columns that are read; all files must have the same ones."""
    names = {role: name for role, name in columns.names().items() if not (named and role == "model")}
    roles = [[role for role, name in names.items() if name in header] for header in headers]
    for path, other in zip(paths, roles, strict=True):
        if other != roles[0]:
            different = ", ".join(names[role] for role in sorted(set(other) ^ set(roles[0])))
            raise UserError(
                f"expected the same columns in all files, but {paths[0]} and {path} differ in {different};"
                " import them apart and compare the runs"
            )
    return roles[0]


def _read_header(path: Path) -> list[str]:
    """The names of the columns; raises `UserError` where the file is no table."""
    if not path.is_file():
        raise UserError(f"expected a table of answers (CSV or Parquet), got '{path}', which is no file")
    if path.suffix.lower() in _PARQUET:
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    if path.suffix.lower() in _JSON_LINES:
        raise UserError(f"expected a table of answers as CSV or Parquet, got {path}; write it as one of them")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file, delimiter=_delimiter(path)), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"expected a table as CSV in UTF-8, or .parquet, got {path}: {error}") from error
    if not any(header):
        raise UserError(f"expected a header line and rows in {path}, got an empty file")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise UserError(
            f"expected cells separated by commas in {path} (by tabs in a .tsv), got '{header[0]}'; write it so"
        )
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise UserError(f"expected every column once in {path}, got '{repeated}' twice; rename one")
    return header


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _read_blocks(path: Path, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the columns, by role, of one block of rows after the other."""
    if path.suffix.lower() in _PARQUET:
        with open_parquet(path) as file:
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(dict.fromkeys(names.values()))):
                yield {role: _as_text(batch[name]) for role, name in names.items()}
        return
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {name: pa.string() if role == "confidence" else text for role, name in names.items()}
    options = {
        "read_options": arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        "parse_options": arrow_csv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            include_columns=list(kinds), column_types=kinds, strings_can_be_null=False
        ),
    }
    try:
        with arrow_csv.open_csv(path, **options) as reader:
            for batch in reader:
                yield {role: batch[name] for role, name in names.items()}
    except (pa.ArrowException, OSError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(
            f"expected a table as CSV, with as many cells in every row as in the header, got {path}: {line}"
        ) from error


def _read_whole(path: Path) -> Any:
    """A small table of any of the formats."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if not path.is_file():
        raise UserError(f"expected annotations (CSV, Parquet or JSON lines), got '{path}', which is no file")
    if path.suffix.lower() in _PARQUET:
        with open_parquet(path) as file:
            return file.read()
    if path.suffix.lower() not in _JSON_LINES:
        header = _read_header(path)
        blocks = list(_read_blocks(path, {name: name for name in header}))
        columns = {name: pa.chunked_array([_as_text(block[name]) for block in blocks], pa.string()) for name in header}
        return pa.table(columns)
    try:
        return arrow_json.read_json(path)
    except (pa.ArrowException, OSError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(f"expected JSON lines, one object per photo, got {path}: {line}") from error


def _as_text(values: Any) -> Any:
    """An Arrow array of texts: numbers as they are written, whole floats without a fraction, bytes as UTF-8."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        return values.cast(pa.string())
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"expected texts or numbers in the cells of the table, got {values.type}") from error


def _as_flags(values: Any) -> NDArray[np.bool_] | None:
    """A column of 0 and 1, true and false; None where it holds anything else."""
    coded = CodedColumn()
    coded.add(_as_text(values))
    column = _simplify_numbers(coded.finish())
    present = {str(column.dictionary[place]).lower() for place in np.unique(column.indices)}
    if not present <= _TRUE | _FALSE:
        return None
    flags: NDArray[np.bool_] = np.array([str(word).lower() in _TRUE for word in column.dictionary], bool)
    return np.asarray(flags[column.indices], np.bool_)


def _numbers(values: Any, path: Path) -> NDArray[np.float64]:
    """Confidences; an empty cell is NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    texts = pc.if_else(pc.equal(pc.utf8_trim_whitespace(texts), ""), None, texts)
    try:
        numbers: NDArray[np.float64] = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        line = " ".join(str(error).split())[:120]
        raise UserError(
            f"expected probabilities in the confidence column of {path}, got another text: {line}"
        ) from error
    return numbers


def _check_confidence(table: AnswerTable, name: str) -> None:
    if table.confidence is None:
        return
    outside = np.flatnonzero((table.confidence < 0) | (table.confidence > 1))
    if len(outside):
        row = int(outside[0])
        raise UserError(
            f"expected probabilities from 0 to 1 in the column '{name}', got {table.confidence[row]:g} in"
            f" {table.locate(row)}"
        )


def _normalise(table: AnswerTable, columns: AnswerColumns) -> AnswerTable:
    """Class numbers alike however they were stored, right answers as truth values, no empty names."""
    texts = dict(table.texts)
    for role in ("prediction", "label"):
        if role in texts:
            texts[role] = _simplify_numbers(texts[role])
    for role in ("model", "sample", "condition"):
        if role in texts:
            _refuse_empty(table, role, columns.names()[role])
    if "correct" not in texts:
        return replace(table, texts=texts)
    correct = texts.pop("correct")
    values = [_parse_truth(str(word)) for word in correct.dictionary]
    unknown = [place for place, value in enumerate(values) if value is None]
    wrong = np.flatnonzero(np.isin(correct.indices, unknown)) if unknown else np.zeros(0, np.intp)
    if len(wrong):
        row = int(wrong[0])
        raise UserError(
            f"expected 0 or 1, true or false in the column '{columns.correct}', got"
            f" '{correct.dictionary[correct.indices[row]]}' in {table.locate(row)}"
        )
    return replace(table, texts=texts, correct=np.array([bool(value) for value in values], bool)[correct.indices])


def _parse_truth(word: str) -> bool | None:
    plain = _WHOLE_NUMBER.sub(r"\1", word.lower())
    return True if plain in _TRUE else False if plain in _FALSE else None


def _simplify_numbers(column: DictionaryColumn) -> DictionaryColumn:
    """A class number that one file wrote as 394 and another as 394.0 becomes the same text."""
    places: dict[str, int] = {}
    plain = [match[1] if (match := _WHOLE_NUMBER.fullmatch(word)) else word for word in column.dictionary]
    own = np.array([places.setdefault(word, len(places)) for word in plain], np.int32)
    return DictionaryColumn(np.array([*places], object), own[column.indices])


def _refuse_empty(table: AnswerTable, role: str, name: str) -> None:
    column = table.texts[role]
    empty = [place for place, word in enumerate(column.dictionary) if word == ""]
    rows = np.flatnonzero(column.indices == empty[0]) if empty else np.zeros(0, np.intp)
    if len(rows):
        raise UserError(
            f"expected a text in every cell of the column '{name}', got an empty one in {table.locate(int(rows[0]))}"
        )
