"""The table of a run's masks, masks.csv: one row a photo with the verdict on its mask and the reasons."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from counterfoil.object_mask import MaskVerdict
from counterfoil.store.files import format_csv, write_atomically

MASK_TABLE = "masks.csv"
_MEASURES = ("share", "agreement", "steadiness", "undecided", "kept_alone", "kept_without")
_BETWEEN = "; "  # between two reasons


def write_masks(folder: Path, verdicts: Sequence[MaskVerdict]) -> None:
    """Write the table; nothing where no mask was judged."""
    if not verdicts:
        return
    rows: list[list[Any]] = [[field.name for field in fields(MaskVerdict)]]
    for verdict in verdicts:
        values = {**asdict(verdict), "reasons": _BETWEEN.join(verdict.reasons)}
        rows.append([f"{value:.4f}" if name in _MEASURES else value for name, value in values.items()])
    write_atomically(folder / MASK_TABLE, format_csv(rows))


def read_masks(folder: Path) -> list[MaskVerdict]:
    """The rows of the table; empty where a run has none, as older ones have not."""
    path = folder / MASK_TABLE
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [_parse_row(row) for row in csv.DictReader(file)]


def _parse_row(row: dict[str, str]) -> MaskVerdict:
    values: dict[str, Any] = {name: float(value) if name in _MEASURES else value for name, value in row.items()}
    reasons = row["reasons"].split(_BETWEEN) if row["reasons"] else []
    return MaskVerdict(**{**values, "reasons": tuple(reasons)})
