"""The table of a run's masks, masks.csv: one row a photo with the verdict on its mask and the reasons."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from counterfoil.object_mask import MaskVerdict
from counterfoil.store.files import format_csv, open_atomically

MASK_TABLE = "masks.csv"
_MEASURES = ("share", "agreement", "steadiness", "undecided", "kept_alone", "kept_without")
_BETWEEN = "; "  # between two reasons


def write_masks(folder: Path, verdicts: Sequence[MaskVerdict]) -> None:
    """Write the table; nothing where no mask was judged."""
    write_mask_lines(folder, [format_masks(verdicts)])


def format_masks(verdicts: Iterable[MaskVerdict]) -> str:
    """The lines of the table: a tenth of the memory of the verdicts."""
    return format_csv(map(_format_row, verdicts))


def write_mask_lines(folder: Path, parts: Sequence[str]) -> None:
    """Write the table from parts of its lines; nothing where there are none."""
    if not any(parts):
        return
    with open_atomically(folder / MASK_TABLE) as file:
        file.write(format_csv([[field.name for field in fields(MaskVerdict)]]).encode())
        for lines in parts:
            file.write(lines.encode(errors="backslashreplace"))


def _format_row(verdict: MaskVerdict) -> list[Any]:
    values = {**asdict(verdict), "reasons": _BETWEEN.join(verdict.reasons)}
    return [f"{value:.4f}" if name in _MEASURES else value for name, value in values.items()]


def read_masks(folder: Path, keep: Callable[[dict[str, str]], bool] = lambda row: True) -> list[MaskVerdict]:
    """The rows of the table that are to be kept; empty where a run has none, as older ones have not."""
    path = folder / MASK_TABLE
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [_parse_row(row) for row in csv.DictReader(file) if keep(row)]


def _parse_row(row: dict[str, str]) -> MaskVerdict:
    values: dict[str, Any] = {name: float(value) if name in _MEASURES else value for name, value in row.items()}
    reasons = row["reasons"].split(_BETWEEN) if row["reasons"] else []
    return MaskVerdict(**{**values, "reasons": tuple(reasons)})
