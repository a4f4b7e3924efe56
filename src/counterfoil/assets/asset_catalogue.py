"""The catalogue of assets: the distribution that holds each one, its hash, and its path in the cache."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from counterfoil.store.files import hash_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHIPPED_CATALOGUE = Path(__file__).with_name("assets.toml")
_SETTLED_NS = 2_000_000_000  # a file younger than this may change again within one tick of the file system's clock
_VERIFIED: dict[tuple[FileState, ...], str] = {}  # hash of an asset whose files are in this state, in this process


class FileState(NamedTuple):
    """Path, inode, size and times of a file; where they are unchanged it is not hashed again."""

    path: str
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


@dataclass(frozen=True)
class Distribution:
    """One file on the package index: a wheel or an sdist."""

    name: str
    version: str
    file: str
    sha256: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file, or a folder of files, that lies inside a distribution."""

    name: str
    distribution: Distribution
    members: tuple[str, ...]  # patterns of paths inside the archive
    is_folder: bool
    sha256: str  # of the file; of a folder's listing as `sha256sum` prints it
    size: int
    licence: str
    what: str
    hub: str = ""  # repository of the authors' model hub that has the same file, where there is one
    hub_file: str = ""

    def place(self, cache: Path) -> Path:
        """The asset's path in a cache; it holds the hash, so that two versions can lie side by side."""
        stem = f"{self.name}-{self.sha256[:12]}"
        return cache / "assets" / (stem if self.is_folder else stem + PurePosixPath(self.members[0]).suffix)

    def is_intact(self, path: Path) -> bool:
        """Whether the path holds exactly this asset; unchanged files are not hashed again."""
        files = self._files(path)
        states = tuple(_state(file) for file in files)
        if not files or sum(state.size for state in states) != self.size:
            return False
        if _VERIFIED.get(states) == self.sha256:
            return True
        intact = self._digest(files) == self.sha256
        newest = max(max(state.modified_ns, state.changed_ns) for state in states)
        if intact and time.time_ns() - newest > _SETTLED_NS:
            _VERIFIED[states] = self.sha256
        return intact

    def _files(self, path: Path) -> list[Path]:
        if not self.is_folder:
            return [path] if path.is_file() else []
        if not path.is_dir():
            return []
        # File managers add files of their own to folders, so only the members' names are compared.
        names = [PurePosixPath(member).name for member in self.members]
        return sorted(file for file in path.iterdir() if any(fnmatchcase(file.name, name) for name in names))

    def _digest(self, files: list[Path]) -> str:
        if not self.is_folder:
            return hash_file(files[0])
        listing = "".join(f"{hash_file(file)}  {file.name}\n" for file in files)
        return hashlib.sha256(listing.encode()).hexdigest()


def read_catalogue(path: Path) -> dict[str, Asset]:
    """The assets of a catalogue file by name."""
    with path.open("rb") as file:
        entries = tomllib.load(file)
    return {name: _asset(name, entry) for name, entry in entries.items()}


def _state(path: Path) -> FileState:
    about = path.stat()
    return FileState(str(path), about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def _asset(name: str, entry: Mapping[str, Any]) -> Asset:
    return Asset(
        name=name,
        distribution=Distribution(
            name=entry["distribution"],
            version=entry["version"],
            file=entry["distribution_file"],
            sha256=entry["distribution_sha256"],
            size=entry["distribution_size"],
        ),
        members=tuple(entry["members"]) if "members" in entry else (entry["member"],),
        is_folder="members" in entry,
        sha256=entry["sha256"],
        size=entry["size"],
        licence=entry["licence"],
        what=entry["what"],
        hub=entry.get("hub", ""),
        hub_file=entry.get("hub_file", ""),
    )
