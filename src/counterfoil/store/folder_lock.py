"""A folder belongs to one run and one process: the same run continues, another is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.store.files import refuse_to_write_into, write_atomically

if sys.platform != "win32":
    import fcntl

MAY_DIFFER = frozenset({"command", "environment", "samples"})  # between two sessions of one run
_CALLED = {  # fields of the record that a user knows by another word
    "images": "source of photos", "masks": "folder of masks", "recipe_digest": "recipe",
    "collection_digest": "collection",
    "models": "model", "model_digests": "model", "identities": "model",
}  # fmt: skip


class FolderClaimedError(UserError):
    """A folder that holds another run's results; `different` says in what it differs."""

    def __init__(self, folder: Path, different: str) -> None:
        super().__init__(
            f"expected an empty folder or this run's own in {folder}, but it holds a run with another {different};"
            " choose another --out or remove the folder"
        )
        self.different = different


def claim_folder(folder: Path, asked: Mapping[str, object], may_differ: frozenset[str] = MAY_DIFFER) -> None:
    """Mark the folder as this run's; one that holds another run's results, or a benchmark, is refused."""
    refuse_to_write_into(folder)
    _make(folder)
    record = json.loads(json.dumps(asked))
    path = folder / "run.json"
    if path.is_file():
        there = _record(path)
        different = [name for name in record if name not in may_differ and not _same(there.get(name), record[name])]
        if different:
            raise FolderClaimedError(folder, _words(different))
    write_atomically(path, json.dumps(record, indent=1))


def _words(different: list[str]) -> str:
    return " and ".join(dict.fromkeys(_CALLED.get(name, name.replace("_", " ")) for name in different))


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


def lock_file(file: Any, path: Path) -> None:
    """Only one run may write into a folder; the lock goes with the process, whatever ends it."""
    if sys.platform == "win32":  # it has no such locks: there two runs in one folder are not told apart
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UserError(
            f"another run is writing into {path.parent.parent}: wait for it, or choose another --out"
        ) from error
