"""The files of an archive in columns, by folder and name, and the place of their bytes in a tar or zip."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError


class ArchiveFile(NamedTuple):
    """Where the bytes of a file lie."""

    size: int  # bytes of the file
    start: int = 0  # where in the source it begins
    stored: int = 0  # bytes in the source
    source: int = 0  # which of the tree's sources holds it
    packing: int = 0  # compression method of a zip, or one of the tree's own codes


class IndexRow(NamedTuple):
    """A file as the listing gives it."""

    at: int
    folder: int  # place in the listing's folders
    name: str


@dataclass(frozen=True, eq=False)
class FileIndex(Mapping[str, int]):
    """Sizes in bytes by path, sorted by folder and name; a file is also known by its place in that order."""

    folders: tuple[str, ...]  # paths that end in "/", and "" for the top
    first: NDArray[np.int64]  # place of each folder's first file, and the number of files
    names: bytes = field(repr=False)  # joined without separators
    ends: NDArray[np.int64]  # where each name ends
    spans: NDArray[np.int64]  # (files, 3): size, start, stored
    ways: NDArray[np.int16]  # (files, 2): source, packing

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[str]:
        for row in self.rows():
            yield self.folders[row.folder] + row.name

    def __getitem__(self, path: str) -> int:
        return self.size(self._place(path))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._find(path) is not None

    def path(self, at: int) -> str:
        """Path of the file at a place."""
        return self.folders[int(self.first.searchsorted(at, "right")) - 1] + self.name(at)

    def name(self, at: int) -> str:
        """Name of the file at a place, without its folder."""
        return _decode_name(self.names[int(self.ends[at - 1]) if at else 0 : int(self.ends[at])])

    def size(self, at: int) -> int:
        """Size in bytes of the file at a place."""
        return int(self.spans[at, 0])

    def entry_at(self, at: int) -> ArchiveFile:
        """Where the bytes of the file at a place lie."""
        return ArchiveFile(*self.spans[at].tolist(), *self.ways[at].tolist())

    def entry(self, path: str) -> ArchiveFile:
        """Where the bytes of a file lie."""
        return self.entry_at(self._place(path))

    def folders_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The folder index of the file at each place."""
        return self.first.searchsorted(places, "right") - 1

    def rows(self) -> Iterator[IndexRow]:
        """Yield every file in order, with its folder as an index, so that a folder's path is parsed once."""
        start = 0
        for folder, (first, last) in enumerate(zip(self.first[:-1].tolist(), self.first[1:].tolist(), strict=True)):
            for at, end in enumerate(self.ends[first:last].tolist(), first):
                yield IndexRow(at, folder, _decode_name(self.names[start:end]))
                start = end

    def some(self, places: Iterable[int]) -> FileIndex:
        """The index of the files at some places only."""
        return build_index((self.path(at), self.entry_at(at)) for at in places)

    def _place(self, path: str) -> int:
        place = self._find(path)
        if place is None:
            raise KeyError(path)
        return place

    def _find(self, path: str) -> int | None:
        top, slash, name = path.rpartition("/")
        folder = self._folder_places.get(top + slash)
        if folder is None:
            return None
        within = range(int(self.first[folder]), int(self.first[folder + 1]))
        place = bisect_left(within, name, key=self.name)
        return within[place] if place < len(within) and self.name(within[place]) == name else None

    @cached_property
    def _folder_places(self) -> dict[str, int]:
        return {folder: place for place, folder in enumerate(self.folders)}


def build_index(files: Iterable[tuple[str, ArchiveFile]]) -> FileIndex:
    """Build the index of files given in any order; of two with the same path the later counts."""
    places: dict[str, int] = {}
    folder, spans, ways = array("i"), array("q"), array("h")
    names, ends = bytearray(), array("q", [0])
    for path, entry in files:
        top, slash, name = path.rpartition("/")
        folder.append(places.setdefault(top + slash, len(places)))
        names += name.encode("utf-8", "surrogatepass")  # allows file names that are not valid Unicode
        ends.append(len(names))
        spans.extend(entry[:3])
        ways.extend(entry[3:])
    return _sort_columns(places, np.array(folder, np.int32), names, np.array(ends, np.int64), spans, ways)


def _sort_columns(
    places: Mapping[str, int],
    folder: NDArray[np.int32],
    names: bytearray,
    ends: NDArray[np.int64],
    *columns: array[int],
) -> FileIndex:
    """Sort the columns by folder and name; names are sorted one folder at a time to save memory."""
    folders = tuple(sorted(places))
    by_folder = folder.argsort(kind="stable")
    bounds = np.concatenate([[0], np.bincount(folder, minlength=len(places)).cumsum()])
    order, first, ordered = array("q"), array("q", [0]), bytearray()
    for name in folders:
        start, stop = bounds[places[name]], bounds[places[name] + 1]
        called = {bytes(names[ends[at] : ends[at + 1]]): at for at in by_folder[start:stop].tolist()}
        for text, at in sorted(called.items()):
            order.append(at)
            ordered += text
        first.append(len(order))
    kept = np.array(order, np.int64)
    spans, ways = np.array(columns[0], np.int64).reshape(-1, 3), np.array(columns[1], np.int16).reshape(-1, 2)
    lengths = np.diff(ends)[kept]
    return FileIndex(folders, np.array(first, np.int64), bytes(ordered), lengths.cumsum(), spans[kept], ways[kept])


def _decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


IN_TAR = -1  # stored in a tar without compression
NO_BYTES = -3  # listed in a tar without bytes: links that lead outside, sparse files, devices
_END_OF_TAR = b"\0" * 1024
_ENCRYPTED = 0x1
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")  # a plain tar of PK_photos/ begins with PK too
_UNKNOWN_PACKING = 0x7FFF  # the largest value that the column holds; no compression method has a number near it
_BLOCK = 1 << 20


def list_packed_files(where: Path) -> Iterator[tuple[str, ArchiveFile]]:
    """Yield every file of a tar or a zip with the place of its bytes."""
    with where.open("rb") as file:
        is_zip = file.read(4) in _ZIPS
    return _within(where, "zip", _list_zip(where)) if is_zip else _within(where, "tar", _list_tar(where))


def _within(where: Path, kind: str, files: Iterator[tuple[str, ArchiveFile]]) -> Iterator[tuple[str, ArchiveFile]]:
    """Yield the files; raises `UserError` where one has a negative size or does not lie within the archive."""
    room = where.stat().st_size
    for path, entry in files:
        if min(entry[:3]) < 0 or entry.start + entry.stored > room or entry.size > sys.maxsize:
            raise broken_archive(where, kind, f"{path!a} does not lie within it")
        yield path, entry


def broken_archive(where: Path, kind: str, why: str) -> UserError:
    """Return the error for a truncated or damaged archive."""
    return UserError(f"expected a whole {kind}, got '{where}', which is truncated or damaged ({why}); fetch it again")


def _list_tar(where: Path) -> Iterator[tuple[str, ArchiveFile]]:
    """Yield the files of a tar; raises `UserError` where it is truncated or damaged."""
    links: dict[str, str] = {}  # one file under two names
    try:
        with tarfile.open(where, "r:") as archive:
            for member in _members(archive):
                if member.islnk():
                    links[_normalise(member.name)] = _normalise(member.linkname)
                elif not member.isdir():
                    yield _normalise(member.name), _entry(member)
            end = archive.offset
    except (tarfile.TarError, ValueError) as error:
        if not tarfile.is_tarfile(where):
            raise UserError(f"expected a folder, a .tar or a .zip, got '{where}', which is none of them") from error
        raise broken_archive(where, "tar", str(error)) from error
    _check_end(where, end)
    if links:
        yield from _resolve_links(where, links)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar in order and drop each afterwards: tarfile would keep a kilobyte per member."""
    while (member := archive.next()) is not None:
        yield member
        archive.members.clear()  # type: ignore[attr-defined]  # public by its name, left out of the type stubs


def _resolve_links(where: Path, links: Mapping[str, str]) -> Iterator[tuple[str, ArchiveFile]]:
    """Yield the hard links with the files they point to, found in a second pass, since few tars have any."""
    wanted = set(links.values())
    with tarfile.open(where, "r:") as archive:
        files = {_normalise(one.name): _entry(one) for one in _members(archive) if _normalise(one.name) in wanted}
    yield from ((name, files.get(target, ArchiveFile(0, packing=NO_BYTES))) for name, target in links.items())


def _entry(member: tarfile.TarInfo) -> ArchiveFile:
    stored = 0 if member.issparse() else member.size  # for a sparse file, member.size is the expanded size
    packing = IN_TAR if member.isreg() and not member.issparse() else NO_BYTES
    return ArchiveFile(member.size, member.offset_data, stored, packing=packing)


def _check_end(where: Path, end: int) -> None:
    with where.open("rb") as file:
        file.seek(-min(len(_END_OF_TAR), where.stat().st_size), os.SEEK_END)
        if file.read() != _END_OF_TAR:
            raise broken_archive(where, "tar", "its end mark is missing")
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):  # tarfile takes a damaged header for the end
            raise broken_archive(where, "tar", f"no header at byte {end:,}")
        while block := file.read(_BLOCK):
            if block.strip(b"\0"):
                raise UserError(
                    f"expected one tar in '{where}', got several joined in one file, of which only the first would be"
                    " read; unpack it with `tar --ignore-zeros` and give the folder"
                )


def _list_zip(where: Path) -> Iterator[tuple[str, ArchiveFile]]:
    """Yield the files of a zip; raises `UserError` where it has a password."""
    try:
        with zipfile.ZipFile(where) as archive:
            entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        raise broken_archive(where, "zip", str(error)) from error
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise UserError(f"expected a zip without a password, got '{where}'; unpack it and give the folder")
    for entry in entries:
        packing = min(entry.compress_type, _UNKNOWN_PACKING)
        yield (
            _normalise(entry.filename),
            ArchiveFile(entry.file_size, entry.header_offset, entry.compress_size, packing=packing),
        )


def _normalise(name: str) -> str:
    """Return the path without a leading "./", with which many tars begin every name."""
    return str(PurePosixPath(name)) if name.startswith(("./", "/")) or "//" in name else name
