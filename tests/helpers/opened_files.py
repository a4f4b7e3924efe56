"""Records which files this process opens, through Python's audit hooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LISTS: list[list[Path]] = []  # of the blocks that are active now


@contextmanager
def opened_files() -> Iterator[list[Path]]:
    """The paths that are opened inside the block, each as often as it is opened."""
    paths: list[Path] = []
    if not _INSTALLED:
        sys.addaudithook(_note)  # cannot be removed: outside the blocks it does nothing
        _INSTALLED.append(True)
    _LISTS.append(paths)
    try:
        yield paths
    finally:
        _LISTS.remove(paths)


_INSTALLED: list[bool] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _LISTS and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        for paths in _LISTS:
            paths.append(Path(os.fsdecode(arguments[0])))
