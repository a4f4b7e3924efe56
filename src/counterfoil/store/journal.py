"""What is already done: one line per finished piece of work, appended, so that kill -9 loses nothing finished."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any


class Journal:
    """Lines `{"key": ..., "entry": ...}`; only their places are held in memory."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        self._places: dict[str, int] = {}
        self._end = 0
        self._index()

    def _index(self) -> None:
        self._file.seek(0)
        for line in self._file:
            try:
                key = json.loads(line)["key"]
            except (ValueError, KeyError, TypeError):
                key = None  # a line that was being written when the run died: that piece is done again
            if key is not None and line.endswith(b"\n"):
                self._places[key] = self._end
            self._end += len(line)
        if self._end and not _ends_with_newline(self._file):
            self._append(b"\n")

    def _append(self, line: bytes) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(line)
        self._file.flush()
        self._end += len(line)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def add(self, key: str, entry: Mapping[str, Any]) -> None:
        """Note a finished piece of work."""
        place = self._end
        self._append(json.dumps({"key": key, "entry": entry}, separators=(",", ":")).encode() + b"\n")
        self._places[key] = place

    def entry(self, key: str) -> dict[str, Any]:
        """What was noted under this key."""
        self._file.seek(self._places[key])
        found: dict[str, Any] = json.loads(self._file.readline())["entry"]
        return found

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _ends_with_newline(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")
