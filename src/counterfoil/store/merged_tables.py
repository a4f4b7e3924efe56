"""The tables of a run, written from its parts in the order of the plan, however and wherever the parts were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.object_mask import MaskVerdict
from counterfoil.store.mask_table import format_masks, write_mask_lines
from counterfoil.store.parquet import Kind, TableWriter, read_numbers, release_memory
from counterfoil.store.parts import PartStore, TablePart, hash_rows
from counterfoil.store.piece_plan import PiecePlan
from counterfoil.store.prediction_tables import (
    MANIFEST_COLUMNS,
    PREDICTION_COLUMNS,
    ROWS_IN_MEMORY,
    locate_predictions,
)
from counterfoil.store.run_checksums import record_checksums
from counterfoil.store.sealed_record import read_sealed, write_sealed
from counterfoil.types import GROWN_MASK, SECOND_FILL, SHRUNK_MASK, TOOL_CHECKS, Skipped

PICTURE_COLUMNS: dict[str, Kind] = {**MANIFEST_COLUMNS, "planned_level": "text"}  # a choice may give another level
_CLOSE = 1e-4  # probabilities of networks differ by less between kinds of machines
_CHECKS = ("", SECOND_FILL, GROWN_MASK, SHRUNK_MASK)  # in the order of the tables


class RowGroups:
    """A table that is written from many small Arrow tables, in row groups of one size."""

    def __init__(self, path: Path, columns: Mapping[str, Kind]) -> None:
        self._columns, self._writer = dict(columns), TableWriter(path, columns)
        self._waiting: list[Any] = []
        self._rows = 0

    def add(self, table: Any) -> None:
        """Append the rows of an Arrow table."""
        self._waiting.append(table.select(list(self._columns)).replace_schema_metadata())
        self._rows += table.num_rows
        while self._rows >= ROWS_IN_MEMORY:
            self._write(ROWS_IN_MEMORY)

    def _write(self, count: int) -> None:
        import pyarrow as pa

        whole = pa.concat_tables(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
        group, rest = whole.slice(0, count), whole.slice(count)
        self._writer.write_arrays([_encode(column) for column in group.columns])
        self._waiting, self._rows = ([rest] if rest.num_rows else []), rest.num_rows

    def __enter__(self) -> RowGroups:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._rows:
            self._write(self._rows)
        self._writer.__exit__(kind, error, trace)


def _encode(column: Any) -> Any:
    """A column of one row group; the words of a text column in the order of their first appearance."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    values = column.cast(kind).combine_chunks() if column.type != kind else column.combine_chunks()
    return values.dictionary_encode() if pa.types.is_string(kind) else values


def find_missing(plan: PiecePlan, store: PartStore) -> list[str]:
    """The parts that are not there yet."""
    there = store.names()
    return [name for name, *_ in plan.parts() if name not in there]


class MergedTables(NamedTuple):
    """What became of the parts: what was skipped, and notes for the report."""

    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...] = ()


def write_merged_tables(folder: Path, plan: PiecePlan, store: PartStore) -> MergedTables:
    """Write every table in the order of the plan.

    One model after another is read, so that memory does not grow with models or photos.
    """
    skipped, masks = list(plan.skipped), []
    places: dict[int, NDArray[np.intp]] = {}  # by first item of a range: the order of its rows, where it is not theirs
    ids: dict[str, str] = {}  # by part of pictures: hash of the ids of its variants
    kinds: set[str] = set()  # of machines
    close = 0  # answers that another kind of machine may give otherwise
    with RowGroups(folder / "variants.parquet", MANIFEST_COLUMNS) as manifest:
        for start, _ in plan.ranges():
            names = [plan.part(start, layer) for layer in range(len(plan.layers))]
            parts = [store.read(name, PICTURE_COLUMNS) for name in names]
            ids |= {name: hash_rows([part.table["id"]]) for name, part in zip(names, parts, strict=True)}
            if len(parts) > 1:
                places[start] = _order_rows(plan, parts)
            manifest.add(_join(parts, places.get(start)))
            skipped += _list_skipped(plan, parts)
            if not plan.models:  # the pictures are the result
                kinds |= {describe_kind(part.about) for part in parts}
            masks.append(format_masks(map(_parse_verdict, parts[0].about.get("masks", []))))
    for model, path in locate_predictions(folder, list(plan.models)).items():
        with RowGroups(path, PREDICTION_COLUMNS) as answers:
            for start, _ in plan.ranges():
                parts = list(_read_answers(plan, store, (start, model), ids))
                answers.add(_join(parts, places.get(start)))
                kinds |= {describe_kind(part.about) for part in parts}
                close += sum(_count_close(part) for part in parts)
        release_memory()
    write_mask_lines(folder, masks)
    notes = _note_kinds(folder, sorted(kinds), close if plan.models else None)
    record_checksums(folder)
    return MergedTables(tuple(skipped), notes)


def describe_kind(about: Mapping[str, Any]) -> str:
    """The kind of machine that made a part, in words."""
    machine = about["machine"]
    device = f", {about['device']}" if about.get("device", "cpu") != "cpu" else ""
    return f"{machine['processor']} ({machine['features']}; {machine['runtimes']}{device})"


def _count_close(part: TablePart) -> int:
    """The answers whose two best probabilities are so close that the last bits may decide."""
    first, second = (read_numbers(part.table[name].combine_chunks()) for name in ("score_1", "score_2"))
    return int((first - second < _CLOSE).sum())


def _note_kinds(folder: Path, kinds: Sequence[str], close: int | None) -> tuple[str, ...]:
    """A note, kept in the record of the run, where machines of several kinds made the parts; of pictures or answers."""
    path = folder / "run.json"
    if len(kinds) < 2 or not path.is_file():
        return ()
    made = "The pictures were" if close is None else "The answers were"
    where = "of a colour" if close is None else "of a probability"
    note = (
        f"{made} made on {len(kinds)} kinds of machines, which may differ in the last bits {where}: {'; '.join(kinds)}."
    )
    if close is not None:
        note += f" In {close:,} answers the two best probabilities are within {_CLOSE:g} of each other."
    record = read_sealed(path)
    record["notes"] = [*(text for text in record.get("notes", []) if not text.startswith(f"{made} made on")), note]
    write_sealed(path, record)
    return (note,)


def _read_answers(
    plan: PiecePlan, store: PartStore, place: tuple[int, str], ids: Mapping[str, str]
) -> Iterator[TablePart]:
    """A model's answers to the pictures of one range, layer by layer; they must be about these pictures."""
    start, model = place
    for layer in range(len(plan.layers)):
        part = store.read(plan.part(start, layer, model), PREDICTION_COLUMNS)
        if hash_rows([part.table["variant_id"]]) != ids[plan.part(start, layer)]:
            raise UserError(
                f"expected answers of {model} to the pictures of the part {plan.part(start, layer)}, got answers to"
                f" others in the part {plan.part(start, layer, model)}; remove both and run again"
            )
        yield part


def _join(parts: Sequence[TablePart], order: NDArray[np.intp] | None) -> Any:
    import pyarrow as pa

    if order is None:
        return parts[0].table
    return pa.concat_tables([part.table.replace_schema_metadata() for part in parts], promote_options="none").take(
        order
    )


def _order_rows(plan: PiecePlan, parts: Sequence[TablePart]) -> NDArray[np.intp]:
    """The places of the rows of several layers in the order of the plan: by photo, edit, level, replicate and check."""
    step_of = {step: number for number, step in enumerate(plan.steps)}
    keys = []
    samples: dict[str, int] = {}
    for part in parts:
        columns = [part.texts(name) for name in ("sample_id", "attribute", "edit", "planned_level")]
        for sample, attribute, edit, level, replicate in zip(
            *columns, part.table["replicate"].to_pylist(), strict=True
        ):
            check = attribute if attribute in TOOL_CHECKS else ""
            photo = samples.setdefault(sample, len(samples))
            keys.append((photo, bool(check), step_of.get((edit, level), -1), replicate, _CHECKS.index(check)))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)


def _list_skipped(plan: PiecePlan, parts: Sequence[TablePart]) -> list[Skipped]:
    """What was skipped in one range, by photo; a photo that could not be used at all is named once."""
    rows = [(item, Skipped(**row)) for part in parts for item, row in part.about.get("skipped", [])]
    if len(parts) > 1:
        first = {edit: number for number, edit in reversed([*enumerate(edit for edit, _ in plan.steps)])}
        rows = list(dict.fromkeys(rows)) if any(not row.edit for _, row in rows) else rows
        rows.sort(key=lambda pair: (pair[0], first.get(pair[1].edit, -1)))
    return [row for _, row in rows]


def _parse_verdict(row: dict[str, Any]) -> MaskVerdict:
    return MaskVerdict(**{**row, "reasons": tuple(row["reasons"])})
