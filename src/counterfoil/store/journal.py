"""The append-only journal of finished work, from which a run is resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from counterfoil.errors import UserError
from counterfoil.store.folder_lock import lock_file


class Journal:
    """Lines `{"key": ..., "entry": ...}`; only their offsets are held in memory."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("a+b")
        lock_file(self._file, path)
        self._places: dict[str, int] = {}
        self._index()

    def _index(self) -> None:
        self._file.seek(0)
        place = 0
        for line in self._file:
            try:
                key = json.loads(line)["key"]
            except (ValueError, KeyError, TypeError):
                key = None  # a line cut off when the run was killed: that item is done again
            if key is not None and line.endswith(b"\n"):
                self._places[key] = place
            place += len(line)
        if place and not _ends_with_newline(self._file):
            self._append(b"\n")

    def _append(self, line: bytes) -> int:
        """Append a line to the file; returns its offset."""
        place = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise UserError(
                f"the journal {self._path} cannot be written: {error.strerror}; make room and run again"
            ) from error
        return place

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def add(self, key: str, entry: Mapping[str, Any]) -> None:
        """Record a finished item."""
        line = json.dumps({"key": key, "entry": entry}, separators=(",", ":")).encode() + b"\n"
        self._places[key] = self._append(line)

    def entry(self, key: str) -> dict[str, Any]:
        """The entry recorded under this key."""
        self._file.seek(self._places[key])
        line = json.loads(self._file.readline())
        if line["key"] != key:
            raise UserError(f"the journal {self._path} was changed by another program: remove its folder and run again")
        entry: dict[str, Any] = line["entry"]
        return entry

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _ends_with_newline(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")
