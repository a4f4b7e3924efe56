"""What the files of a benchmark say, hashed apart from their bytes: another pyarrow writes the same rows otherwise.

The digest of a benchmark covers the content of its tables, and of croissant.json, which names their hashes. All other
files are covered by their bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from counterfoil.freeze.croissant import CROISSANT, size_of
from counterfoil.freeze.record import FileNote
from counterfoil.store import open_parquet

THREADS = 8
_TABLE = ".parquet"


def with_contents(folder: Path, notes: Mapping[str, FileNote]) -> dict[str, FileNote]:
    """The notes, with the content of each file that has one; computed in threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        contents = pool.map(lambda name: file_content(folder, name, notes), notes)
        return {
            name: note.model_copy(update={"content": content})
            for (name, note), content in zip(notes.items(), contents, strict=True)
        }


def file_content(folder: Path, name: str, notes: Mapping[str, FileNote]) -> str:
    """Hash over what a table or croissant.json says; empty for every other file."""
    if name.endswith(_TABLE):
        return _table_content(folder / name)
    return _croissant_content(folder / name, notes) if name == CROISSANT else ""


def _table_content(path: Path) -> str:
    """Hash over the values of each column in the order of the rows, whatever the row groups.

    An offset is left out: where a picture begins in its shard is up to the writer of the shard.
    """
    with open_parquet(path) as file:
        columns = {name: hashlib.sha256() for name in file.schema_arrow.names if name != "offset"}
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            for name, digest in columns.items():
                digest.update(_canonical(table[name].to_pylist())[1:-1] + b",")
    return hashlib.sha256(_canonical({name: digest.hexdigest() for name, digest in columns.items()})).hexdigest()


def _croissant_content(path: Path, notes: Mapping[str, FileNote]) -> str:
    """Hash over croissant.json without hash and size of each table, where they are those that its note names."""
    try:
        said = json.loads(path.read_bytes())
        for part in said["distribution"]:
            name = part["@id"]
            if name.endswith(_TABLE) and name in notes:
                note = notes[name]
                if (part["sha256"], part["contentSize"]) == (note.sha256, size_of(note)):
                    del part["sha256"], part["contentSize"]
        return hashlib.sha256(_canonical(said)).hexdigest()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""  # not as we write it, so no content that a record could name


def _canonical(said: Any) -> bytes:
    """JSON that is the same whatever the order of keys."""
    return json.dumps(
        said, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_without_json
    ).encode()  # fmt: skip


def _without_json(value: object) -> str:
    """A picture by the hash of its bytes; what no table of ours holds by its text."""
    return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else str(value)
