"""The files of an archive, wherever they lie: a folder, a tar, a zip, several of them in a folder.

Every read opens its file anew and seeks, so that any number of threads and forked processes may read at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Protocol

from counterfoil.errors import Unusable, UserError
from counterfoil.published.listing import Entry, Listing, listed
from counterfoil.published.packed import IN_TAR, NO_BYTES, packed_files
from counterfoil.published.packed_whole import is_packed_whole, plain_tar
from counterfoil.published.unpacking import check_sum, refuse_bomb, unpacked

LOOSE = -2  # a file that lies in a folder as it is
_LOCAL_HEADER = 30  # bytes of a zip's local header before the name
_BEHIND = 8  # bytes behind a file in a zip that may hold its check sum; the list of all files follows in any case
_ARCHIVES = (".tar", ".zip", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


class Tree(Protocol):
    """Files by their path, whatever holds them."""

    @property
    def where(self) -> Path:
        """What the user named."""

    @property
    def sizes(self) -> Listing:
        """Every file's size in bytes by its path, sorted by path."""

    def read(self, path: str) -> bytes:
        """The bytes of one file; raises `Unusable` where that fails."""


@dataclass(frozen=True)
class FileTree:
    """Files that were listed once: loose ones, and those within archives."""

    where: Path
    sizes: Listing = field(repr=False)
    sources: tuple[Path, ...]  # the folder or the archives that hold them

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        entry = self.sizes.entry(path)
        source = self.sources[entry.source]
        refuse_bomb(max(entry.size, entry.stored))
        if entry.packing == LOOSE:
            return _bytes(source / path, path, 0, None)
        if entry.packing == NO_BYTES:
            raise Unusable("the tar holds a link or a file with holes in its place; unpack it and give the folder")
        if entry.packing == IN_TAR:
            return _bytes(source, source.name, entry.start, entry.size)
        return _from_zip(source, entry)


def open_tree(where: Path) -> FileTree:
    """The files at a path; an archive that is truncated is refused, one packed as a whole is unpacked once."""
    if where.is_dir():
        return _folder(where)
    if not where.is_file():
        raise UserError(f"expected a folder, a .tar or a .zip, got '{where}', which is not there; check the path")
    source = _plain(where)
    return FileTree(where, listed(packed_files(source)), (source,))


def _folder(where: Path) -> FileTree:
    """A folder with the files of the archives in it, as ImageNet-C comes; a loose file counts before a packed one."""
    archives = sorted(path for path in where.iterdir() if path.name.lower().endswith(_ARCHIVES) and path.is_file())
    has_pictures = bool(archives) and any(path.lower().endswith(_PICTURES) for path, _ in _loose_files(where))
    sources: list[Path] = [where]
    used: set[str] = set()
    packed: list[Iterable[tuple[str, Entry]]] = []
    for path in archives:
        files = _beside_pictures(path) if has_pictures else packed_files(_plain(path))
        if files is not None:
            packed.append(_from(files, len(sources)))
            sources.append(_plain(path))
            used.add(path.name)
    loose = ((path, entry) for path, entry in _loose_files(where) if path not in used)
    return FileTree(where, listed(chain(*packed, loose)), tuple(sources))


def _plain(path: Path) -> Path:
    return plain_tar(path) if is_packed_whole(path) else path


def _beside_pictures(path: Path) -> Iterable[tuple[str, Entry]] | None:
    """An archive beside unpacked pictures: what is none, or would have to be unpacked first, is a stray file there."""
    try:
        return None if is_packed_whole(path) else list(packed_files(path))
    except UserError:
        return None


def _from(files: Iterable[tuple[str, Entry]], source: int) -> Iterator[tuple[str, Entry]]:
    return ((path, entry._replace(source=source)) for path, entry in files)


def _loose_files(where: Path) -> Iterator[tuple[str, Entry]]:
    for folder, folders, names in os.walk(where, followlinks=True, onerror=_refuse):
        folders[:] = [name for name in folders if not _leads_up(Path(folder) / name)]
        inside = PurePosixPath(Path(folder).relative_to(where).as_posix())
        for name in names:
            yield str(inside / name), Entry(_size(os.path.join(folder, name)), packing=LOOSE)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:  # a link to nowhere or to itself: reading it will say so
        return -1


def _leads_up(folder: Path) -> bool:
    """Whether a folder is a link to one that it lies in: such links would be followed for ever."""
    if not folder.is_symlink():
        return False
    real = folder.resolve()
    return any(real == above.resolve() for above in folder.parents)


def _refuse(error: OSError) -> None:
    """A folder that cannot be read would be missing without a word."""
    raise error


def _from_zip(source: Path, entry: Entry) -> bytes:
    header = _bytes(source, source.name, entry.start, _LOCAL_HEADER)
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    data = _bytes(source, source.name, entry.start + _LOCAL_HEADER + names, entry.stored + _BEHIND)
    found = unpacked(data[: entry.stored], entry.packing, entry.size)
    check_sum(found, header, data[entry.stored :])
    return found


def _bytes(file: Path, called: str, start: int, length: int | None) -> bytes:
    """So many bytes of a file, or all of it."""
    try:
        with file.open("rb") as opened:
            opened.seek(start)
            data = opened.read() if length is None else opened.read(length)
    except OSError as error:
        raise Unusable(f"{called} cannot be read: {error.strerror}") from error
    if length is not None and len(data) < length:
        raise Unusable(f"{called} ends within a picture")
    return data
