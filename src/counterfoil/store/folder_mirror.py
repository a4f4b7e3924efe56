"""A folder at an address of object storage, as a local folder that this process works in.

The rest of the program knows paths alone. `open_folder` makes a temporary folder here and takes over what is small;
parts and pictures are fetched when they are read. A part, a picture or a plan is put when it is made, the tables and
the report when the folder is closed. Every process has a mirror of its own, so nothing old is ever read.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.errors import expect_path
from counterfoil.store.files import write_atomically
from counterfoil.store.object_storage import ObjectStorage, is_address
from counterfoil.store.run_checksums import CHECKSUMS

_ON_DEMAND = ("/work/parts/", "/pictures/")  # many files, of which a process reads few
_HERE_ONLY = (".lock", "/lock")  # endings of files that mean something on one machine
_AT_ONCE = 16  # calls


@dataclass
class FolderMirror:
    """A local folder and the address whose files it holds."""

    folder: Path
    storage: ObjectStorage
    states: dict[str, tuple[int, int]] = field(default_factory=dict)  # of files that are the same here and there
    temporary: tempfile.TemporaryDirectory[str] | None = None  # removed with the process; another process has none

    def pull(self) -> None:
        """Take over every file but parts and pictures."""
        listed = [file.name for file in self.storage.list_files()]
        names = [name for name in listed if not any(folder in f"/{name}" for folder in _ON_DEMAND)]
        for top in {name.split("/")[0] for name in listed if "/" in name}:
            (self.folder / top).mkdir(exist_ok=True)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self.fetch, names))

    def fetch(self, name: str) -> bool:
        """Take over one file; returns whether it is there."""
        try:
            content = self.storage.read(name)
        except FileNotFoundError:
            return False
        write_atomically(self.folder / name, content, durable=False)
        self.states[name] = self._state(name)
        return True

    def put(self, name: str) -> None:
        """Put one file as it is now."""
        self.storage.write(name, (self.folder / name).read_bytes())
        self.states[name] = self._state(name)

    def put_new(self, name: str) -> bool:
        """Put one file unless there is one already, which is then taken over; returns whether there was none."""
        is_new = self.storage.write_new(name, (self.folder / name).read_bytes())
        if not is_new:
            return not self.fetch(name)
        self.states[name] = self._state(name)
        return True

    def remove(self, name: str) -> None:
        """Remove one file at the address."""
        self.storage.remove(name)
        self.states.pop(name, None)

    def push(self) -> int:
        """Put what changed here and remove what was removed here; returns how many files were put.

        The checksums come last: until they are there the folder counts as unfinished.
        """
        here = [path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()]
        gone = [name for name in self.states if not (self.folder / name).is_file()]
        changed = [name for name in here if _is_shared(name) and self.states.get(name) != self._state(name)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self.remove, sorted(gone, key=lambda name: name != CHECKSUMS)))
            list(pool.map(self.put, [name for name in changed if name != CHECKSUMS]))
        if CHECKSUMS in changed:
            self.put(CHECKSUMS)
        return len(changed)

    def _state(self, name: str) -> tuple[int, int]:
        about = (self.folder / name).stat()
        return about.st_size, about.st_mtime_ns


def _is_shared(name: str) -> bool:
    return not Path(name).name.startswith(".") and not name.endswith(_HERE_ONLY)


_MIRRORS: dict[Path, FolderMirror] = {}  # of this process, by their folders


def open_folder(place: str | Path) -> Path:
    """The folder to work in: the path itself, or a mirror of the address, with what is there already."""
    path = expect_path(place, "a folder")
    if not is_address(place):
        return path
    storage = ObjectStorage(str(place))
    for known in _MIRRORS.values():
        if known.storage.address == storage.address and known.temporary is not None:
            return known.folder
    temporary = tempfile.TemporaryDirectory(prefix="counterfoil-mirror-")
    mirror = FolderMirror(Path(temporary.name).resolve(), storage, temporary=temporary)
    mirror.pull()
    _MIRRORS[mirror.folder] = mirror
    return mirror.folder


def push_folder(folder: Path) -> int:
    """Bring a mirror's changes to its address; returns how many files were put. Other folders are left alone."""
    mirror = _MIRRORS.get(folder)
    return 0 if mirror is None else mirror.push()


def close_folder(folder: Path) -> int:
    """Bring a mirror's changes to its address and remove it here."""
    try:
        return push_folder(folder)
    finally:
        mirror = _MIRRORS.pop(folder, None)
        if mirror is not None and mirror.temporary is not None:
            mirror.temporary.cleanup()


def describe_place(path: Path) -> str:
    """A path as users know it: below the address, where its folder is a mirror."""
    mirror, name = _find(path)
    return str(path) if mirror is None else f"{mirror.storage.address}/{name}".rstrip("/.")


def name_addresses(text: str) -> str:
    """A message with the addresses in place of the mirrors' folders, which users do not know."""
    for folder, mirror in _MIRRORS.items():
        text = text.replace(str(folder), mirror.storage.address)
    return text


def list_addresses() -> dict[Path, str]:
    """The addresses of this process's mirrors by their folders, for a process on another machine."""
    return {folder: mirror.storage.address for folder, mirror in _MIRRORS.items()}


def join_mirrors(addresses: dict[Path, str]) -> None:
    """Know the mirrors of the process that gave out the work, under the same paths; nothing is taken over."""
    for folder, address in addresses.items():
        if folder not in _MIRRORS and not folder.is_dir():  # on another machine
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _MIRRORS.setdefault(folder, FolderMirror(folder, ObjectStorage(address)))


def fetch_file(path: Path) -> bool:
    """Whether a file is here, after it was fetched where its folder is a mirror."""
    if path.is_file():
        return True
    mirror, name = _find(path)
    return mirror is not None and mirror.fetch(name)


def is_mirrored(path: Path) -> bool:
    """Whether a path lies in the mirror of an address."""
    return _find(path)[0] is not None


def has_file(path: Path) -> bool:
    """Whether a file is here or at the address of its mirror."""
    mirror, name = _find(path)
    return path.is_file() or (mirror is not None and mirror.storage.exists(name))


def list_folder(folder: Path) -> set[str]:
    """The names of the files below a folder, here and at the address of its mirror."""
    mirror, name = _find(folder)
    there = [] if mirror is None else mirror.storage.list_files(name)
    names = {file.name.removeprefix(f"{name}/") for file in there}
    for place, _, files in os.walk(folder):
        below = Path(place).relative_to(folder)
        names |= {(below / file).as_posix() for file in files}
    return names


def put_file(path: Path) -> None:
    """Put a file that was written into a mirror; in another folder nothing is to be done."""
    mirror, name = _find(path)
    if mirror is not None:
        mirror.put(name)


def put_new_file(path: Path) -> bool:
    """Put a file unless one is there, which is then taken over; True where the file is as it was written here."""
    mirror, name = _find(path)
    return mirror is None or mirror.put_new(name)


def remove_file(path: Path) -> None:
    """Remove a file, and the one at the address where its folder is a mirror."""
    path.unlink(missing_ok=True)
    remove_stored(path)


def remove_stored(path: Path) -> None:
    """Remove a file at the address of its mirror; the one here stays."""
    mirror, name = _find(path)
    if mirror is not None:
        mirror.remove(name)


def _find(path: Path) -> tuple[FolderMirror | None, str]:
    """The mirror that a path lies in and its name there; None in every other folder."""
    for folder in (path, *path.parents) if _MIRRORS else ():
        if folder in _MIRRORS:
            return _MIRRORS[folder], path.relative_to(folder).as_posix()
    return None, ""
