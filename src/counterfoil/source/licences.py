"""licences.csv: where the photos of a folder come from, and under which licence."""

from __future__ import annotations

import csv
from pathlib import Path

from counterfoil.errors import UserError

LICENCES = "licences.csv"
_COLUMNS = ("file", "licence", "origin")


def read_licences(path: Path) -> dict[str, tuple[str, str]]:
    """Origin and licence by photo, `<label>/<name>.jpg`; nothing where there is no such file."""
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in _COLUMNS[:2] if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"expected the columns {', '.join(_COLUMNS)} in {path}, found no {missing[0]}")
            return {_text(row, "file"): (_text(row, "origin"), _text(row, "licence")) for row in reader}
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"expected a CSV file in UTF-8, got {path}, which cannot be read: {error}") from error


def _text(row: dict[str, str | None], column: str) -> str:
    return (row.get(column) or "").strip()
