"""The SHA-256 of every file of a run or workspace that later commands read, and the refusal of files that changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.store.files import hash_file, write_atomically

CHECKSUMS = "checksums.json"
_NAMES = (
    "run.json", "variants.parquet", "masks.csv", "factors.parquet", "skipped.csv", "summary.json", "mined.json",
    "verified.json", "usage.json", "quality/quality.json", "quality/removed.parquet", "work/plan.json",
    "work/samples.parquet",
)  # fmt: skip
_REMOVABLE = {
    "summary.json",
    "mined.json",
    "verified.json",
    "usage.json",
}  # results that people remove to renew them
_VERIFIED: dict[str, tuple[tuple[object, ...], str]] = {}  # by path: state of the file when it was hashed, and the hash


def forget_checksums(folder: Path) -> None:
    """Called before files change: until they are recorded again the folder counts as unfinished."""
    (folder / CHECKSUMS).unlink(missing_ok=True)


def record_checksums(folder: Path) -> None:
    """Record the hash of every file that later commands read; the record holds a hash of itself."""
    files = {name: hash_settled(folder / name) for name in _list_names(folder)}
    write_atomically(folder / CHECKSUMS, json.dumps({"files": files, "sha256": _hash_record(files)}, indent=1))


def renew_checksums(folder: Path) -> None:
    """Record the hashes again where they are recorded: the results of later steps belong to them."""
    if (folder / CHECKSUMS).is_file():
        record_checksums(folder)


def has_checksums(folder: Path) -> bool:
    """Whether the folder holds a finished run or workspace of this version."""
    return (folder / CHECKSUMS).is_file()


def list_changed_files(folder: Path) -> list[str]:
    """What differs from the record, one line per file; empty where nothing does or where there is no record."""
    if not os.path.lexists(folder / CHECKSUMS):
        return []
    try:
        recorded: dict[str, Any] = json.loads((folder / CHECKSUMS).read_bytes())
        files: dict[str, str] = recorded["files"]
        intact = recorded["sha256"] == _hash_record(files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # a folder in its place too
        intact, files = False, {}
    if not intact:
        return [f"{CHECKSUMS} is damaged"]
    missing = [f"{name} is missing" for name in files if name not in _REMOVABLE and not (folder / name).is_file()]
    there = (name for name in files if (folder / name).is_file())
    changed = [name for name in there if hash_settled(folder / name) != files[name]]
    return [*missing, *(f"{name} is not as it was written" for name in changed)]


def refuse_changed(folder: Path) -> None:
    """Raises `UserError` where a file of a run or workspace is not as it was written."""
    changed = list_changed_files(folder)
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UserError(
            f"expected the folder as counterfoil wrote it in '{folder}', but {changed[0]}{more}; `counterfoil check"
            f" {folder}` names all: restore them, or run the command that made the folder again"
        )


def _list_names(folder: Path) -> Iterator[str]:
    yield from (name for name in _NAMES if (folder / name).is_file())
    for path in sorted((folder / "predictions").glob("*.parquet")):
        yield f"predictions/{path.name}"


def _hash_record(files: Any) -> str:
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


def hash_settled(path: Path) -> str:
    """The hash of a file; in one process a file that did not change is hashed once."""
    about = os.stat(path)
    state = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    known = _VERIFIED.get(str(path.absolute()))
    if known is None or known[0] != state:
        known = _VERIFIED[str(path.absolute())] = (state, hash_file(path))
    return known[1]
