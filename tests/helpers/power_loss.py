"""A loss of power: a process runs under a layer that notes writes, syncs and renames, and what was not synced is lost.

The model is stricter than most file systems: the content of a file is lost unless the file was synced after its last
write, and a name is lost unless its folder was synced after the file or folder got it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_SOURCE = Path(__file__).with_name("power_loss.c")


def compile_layer(folder: Path) -> Path:
    """The layer as a shared library; the test is skipped where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = folder / "power_loss.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def run_until_cut(
    command: Sequence[str], library: Path, folder: Path, after: int | None
) -> subprocess.CompletedProcess[str]:
    """Run a command that writes below a folder; the power goes before a sync, or after the end."""
    environment = {**os.environ, "LD_PRELOAD": str(library), "POWER_FOLDER": str(folder), "POWER_LOG": _log(folder)}
    if after is not None:
        environment["POWER_AFTER"] = str(after)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def count_syncs(folder: Path) -> int:
    """How many syncs a finished command asked for."""
    return sum(line.startswith(("sync", "all")) for line in Path(_log(folder)).read_text().splitlines())


def copy_survivors(folder: Path, to: Path) -> list[str]:
    """Copy what a loss of power leaves of a folder; files whose content was not synced are empty."""
    unsynced, named = _replay(folder)
    kept = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        steps = [folder / part for part in (*reversed(relative.parents), relative) if part != Path()]
        if not all(str(step) in named for step in steps):
            continue
        if path.is_dir():
            (to / relative).mkdir(parents=True, exist_ok=True)
            continue
        (to / relative).parent.mkdir(parents=True, exist_ok=True)
        (to / relative).write_bytes(b"" if str(path) in unsynced else path.read_bytes())
        kept.append(relative.as_posix())
    return kept


def _replay(folder: Path) -> tuple[set[str], set[str]]:
    """The files whose content is not on the disk, and the paths whose names are."""
    unsynced: set[str] = set()
    named: set[str] = set()
    there: dict[str, set[str]] = {}  # by folder: names that were given since its last sync
    for line in Path(_log(folder)).read_text().splitlines():
        kind, first, second = line.split("\t")
        if kind == "write":
            unsynced.add(first)
            there.setdefault(os.path.dirname(first), set()).add(first)
        elif kind == "rename":
            there.setdefault(os.path.dirname(second), set()).add(second)
            there.get(os.path.dirname(first), set()).discard(first)
            named.discard(second)
            named.discard(first)
            unsynced.discard(second)
            if first in unsynced:
                unsynced.remove(first)
                unsynced.add(second)
        elif kind == "all":
            unsynced.clear()
            named |= {str(path) for path in folder.rglob("*")}
        elif os.path.isdir(first):
            named |= there.pop(first, set()) | {str(path) for path in Path(first).iterdir() if path.is_dir()}
        else:
            unsynced.discard(first)
    return unsynced, named


def _log(folder: Path) -> str:
    return str(folder.with_name(f"{folder.name}.log"))
