"""The entries of users' folders: every one is listed, those that are neither file nor folder with the reason."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from counterfoil.sources.bounded_reads import describe_os_error, find_fault


class FolderEntry(NamedTuple):
    """One entry of a folder."""

    path: Path
    fault: str = ""  # why it cannot be used: a dangling link, a FIFO, a folder without permission; empty otherwise


def list_entries(folder: Path) -> list[FolderEntry]:
    """The entries in the order of their names, without hidden ones; a folder that cannot be read is one entry."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        return [FolderEntry(folder, describe_folder_error(folder, error))]
    return [FolderEntry(path, find_fault(path)) for path in paths]


def walk_files(folder: Path, endings: Sequence[str] = ("",)) -> list[FolderEntry]:
    """The files below a folder with one of these endings, sorted; linked folders are followed, but not in circles."""
    entries: list[FolderEntry] = []

    def add_folder(error: OSError) -> None:
        place = Path(error.filename)
        entries.append(FolderEntry(place, describe_folder_error(place, error)))

    for place, folders, names in os.walk(folder, followlinks=True, onerror=add_folder):
        circles = [name for name in folders if is_link_to_parent(Path(place) / name)]
        entries += [FolderEntry(Path(place) / name, "the link leads to a folder that holds it") for name in circles]
        folders[:] = sorted(set(folders) - set(circles))
        paths = [Path(place) / name for name in names if name.lower().endswith(tuple(endings))]
        entries += [FolderEntry(path, find_fault(path)) for path in paths]
    return sorted(entries)


def is_link_to_parent(folder: Path) -> bool:
    """Whether a folder is a link to one of its parents, which would be followed for ever."""
    if not folder.is_symlink():
        return False
    real = folder.resolve()
    return any(real == above.resolve() for above in folder.parents)


def describe_folder_error(folder: Path, error: OSError) -> str:
    """The reason why a folder cannot be listed."""
    return describe_os_error(folder, error).replace("the file", "the folder")
