"""A folder belongs to one run: the same command goes on in it, another is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.store import write_atomically

MAY_DIFFER = frozenset({"command", "environment", "samples"})  # between two sessions of one run


def claim(folder: Path, asked: Mapping[str, object], may_differ: frozenset[str] = MAY_DIFFER) -> None:
    """Mark the folder as this run's; a folder that holds another run's results is refused."""
    _make(folder)
    record = json.loads(json.dumps(asked))
    path = folder / "run.json"
    if path.is_file():
        there = _record(path)
        different = [name for name in record if name not in may_differ and not _same(there.get(name), record[name])]
        if different:
            raise UserError(
                f"expected an empty folder or this run's own in {folder}, but it holds a run with another"
                f" {' and '.join(different)}; choose another --out or remove the folder"
            )
    write_atomically(path, json.dumps(record, indent=1))


def _same(there: object, asked: object) -> bool:
    """What an older version did not note yet is as good as empty."""
    return (there or None) == (asked or None)


def _make(folder: Path) -> None:
    try:
        (folder / "work").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"expected a folder to write into, got '{folder}': {error.strerror}; choose another --out"
        ) from error


def _record(path: Path) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"expected the record of a run in {path}, which is damaged: remove the folder") from error
    return found
