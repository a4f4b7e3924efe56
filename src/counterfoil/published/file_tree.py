"""The files of a folder, tar or zip by path; compressed tars are unpacked once into the cache.

Every read opens its file anew and seeks, so that any number of threads and forked processes may read at once.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import logging
import lzma
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Protocol

from counterfoil.assets.cache import cache_folder
from counterfoil.errors import Unusable, UserError
from counterfoil.sources.archive_index import (
    IN_TAR,
    NO_BYTES,
    ArchiveFile,
    FileIndex,
    broken_archive,
    build_index,
    list_packed_files,
)
from counterfoil.sources.bounded_reads import read_span, read_user_file, refuse_oversized
from counterfoil.sources.folder_entries import is_link_to_parent
from counterfoil.store.files import open_atomically, write_atomically
from counterfoil.store.folder_lock import wait_for_lock
from counterfoil.store.run_checksums import hash_settled

_log = logging.getLogger(__name__)
_OPENERS: dict[bytes, Callable[[Path], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_BLOCK = 1 << 22
_KEPT_FREE = 1 << 30  # bytes of disk that unpacking leaves
_MOST_RATIO = 20  # unpacked bytes per packed byte; JPEGs and PNGs hardly compress
_MOST_UNPACKED = 1 << 28  # bytes that any compressed tar may unpack to
_KNOWN_BY = 1 << 16  # bytes at both ends that identify a file, also after it was moved
_MARK = slice(257, 262)  # position of the magic bytes in the first header of a tar


def is_compressed(where: Path) -> bool:
    """Whether a file is compressed by gzip, bzip2 or xz."""
    return _magic(where) in _OPENERS


def unpack_tar(where: Path) -> Path:
    """Return the tar within a compressed file, unpacked into the cache on first use and compared with its hash."""
    key = _key(where)
    place, lock = cache_folder() / "archives" / f"{key}.tar", cache_folder() / "downloads" / f"{key}.lock"
    if _is_whole(place):
        return place
    for folder in (place.parent, lock.parent):
        folder.mkdir(parents=True, exist_ok=True)
    with wait_for_lock(lock):
        if not _is_whole(place):  # another process may have unpacked it while we waited
            if place.is_file():
                _log.warning("%s has not the hash recorded when it was unpacked; it is unpacked again", place)
            _log.info("unpacking %s once into %s", where.name, place)
            _remove_halves(place)
            _unpack(where, place)
    return place


def _is_whole(place: Path) -> bool:
    """Whether an unpacked tar has the hash that was recorded when it was unpacked; hashed once in a process."""
    proof = place.with_suffix(".sha256")
    return place.is_file() and proof.is_file() and proof.read_bytes().strip() == hash_settled(place).encode()


def _remove_halves(place: Path) -> None:
    """Delete partial files of killed processes; none is in use, since this process holds the lock."""
    for half in place.parent.glob(f".{place.name}.*"):
        half.unlink(missing_ok=True)


def _unpack(where: Path, place: Path) -> None:
    try:
        place.with_suffix(".sha256").unlink(missing_ok=True)
        digest = hashlib.sha256()
        with _OPENERS[_magic(where)](where) as plain, open_atomically(place) as written:
            block = plain.read(_BLOCK)
            if block[_MARK] != b"ustar":
                raise UserError(f"expected a tar within '{where}', found something else; unpack it and give the folder")
            while block:
                _refuse_bomb(where, written.tell() + len(block))
                _refuse_full(where, place, len(block) + where.stat().st_size - written.tell())
                written.write(block)
                digest.update(block)
                block = plain.read(_BLOCK)
        write_atomically(place.with_suffix(".sha256"), digest.hexdigest())
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise broken_archive(where, "packed tar", str(error)) from error
    except OSError as error:
        if error.errno is None:  # bzip2 reports damaged data without an errno
            raise broken_archive(where, "packed tar", str(error)) from error
        raise UserError(f"expected to write {place}, got: {error}; set COUNTERFOIL_CACHE to another folder") from error


def _refuse_bomb(where: Path, unpacked: int) -> None:
    """Raise `UserError` where a compressed tar unpacks to far more than pictures would."""
    most = _MOST_UNPACKED + _MOST_RATIO * where.stat().st_size
    if unpacked > most:
        raise UserError(
            f"expected pictures in '{where}', which unpacks to more than {most / 1e9:.1f} GB, {_MOST_RATIO} times its"
            " size: pictures do not compress so well; if it is what you want, unpack it and give the folder"
        )


def _refuse_full(where: Path, place: Path, wanted: int) -> None:
    """Raise `UserError` where the disk would get full: checked for the packed file at first, then for each block."""
    free = shutil.disk_usage(place.parent).free
    if free - max(wanted, 0) < _KEPT_FREE:
        raise UserError(
            f"expected room to unpack '{where}' into {place.parent}, where {free / 1e9:.1f} GB are free: make room, set"
            " COUNTERFOIL_CACHE to another folder, or unpack it yourself and give the folder"
        )


def _key(where: Path) -> str:
    """A key from the file's size and its two ends, which include the checksum that gzip and xz write."""
    size = where.stat().st_size
    with where.open("rb") as file:
        first = file.read(_KNOWN_BY)
        file.seek(max(0, size - _KNOWN_BY), os.SEEK_SET)
        return hashlib.sha256(f"{size}\n".encode() + first + file.read()).hexdigest()[:32]


def _magic(where: Path) -> bytes:
    """The magic bytes of a compressed file, empty for others; a plain tar may begin with the name BZh_photos/."""
    with where.open("rb") as file:
        first = file.read(_MARK.stop)
    return next((magic for magic in _OPENERS if first.startswith(magic) and first[_MARK] != b"ustar"), b"")


_STREAMED = 0x8  # zip flag: the checksum follows the data
_DESCRIPTOR = b"PK\x07\x08"  # may precede that checksum


def decompress(data: bytes, packing: int, size: int) -> bytes:
    """Return the decompressed bytes; `size` is what the zip lists, and more than that means damage or a bomb."""
    if packing == zipfile.ZIP_STORED:
        return data
    if packing != zipfile.ZIP_DEFLATED:
        raise Unusable("the zip packs this file in a way other than deflate; unpack it and give the folder")
    try:
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size + 1)
    except zlib.error as error:
        raise Unusable(f"the archive is damaged: {error}") from error
    if len(content) != size:
        raise Unusable(f"the archive is damaged: a file has not the {size:,} bytes that the zip says")
    return content


def verify_checksum(content: bytes, header: bytes, behind: bytes) -> None:
    """Raise `Unusable` where the checksum does not match: a JPEG with a wrong bit still decodes."""
    checksum = behind.removeprefix(_DESCRIPTOR)[:4] if header[6] & _STREAMED else header[14:18]
    if zlib.crc32(content) != int.from_bytes(checksum, "little"):
        raise Unusable("the archive is damaged: a file has not the check sum that the zip says")


LOOSE = -2  # an ordinary file in a folder
_LOCAL_HEADER = 30  # bytes of a zip's local header before the name
_BEHIND = 8  # bytes after a file in a zip that may hold its checksum; the central directory always follows
_ARCHIVES = (".tar", ".zip", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


class Tree(Protocol):
    """Files by their path, in a folder or an archive."""

    @property
    def where(self) -> Path:
        """The path that the user gave."""

    @property
    def sizes(self) -> FileIndex:
        """Every file's size in bytes by its path, sorted by path."""

    def read(self, path: str) -> bytes:
        """The bytes of one file; raises `Unusable` where that fails."""


@dataclass(frozen=True)
class FileTree:
    """Files listed once: ordinary ones, and those within archives."""

    where: Path
    sizes: FileIndex = field(repr=False)
    sources: tuple[Path, ...]  # the folder or the archives that hold the files

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        entry = self.sizes.entry(path)
        source = self.sources[entry.source]
        refuse_oversized(max(entry.size, entry.stored))
        if entry.packing == LOOSE:
            return _read_loose(source / path, path)
        if entry.packing == NO_BYTES:
            raise Unusable("the tar holds a link or a file with holes in its place; unpack it and give the folder")
        if entry.packing == IN_TAR:
            return read_span(source, entry.start, entry.size, source.name)
        return _read_zipped(source, entry)


def open_tree(where: Path) -> FileTree:
    """Open the files at a path; a compressed tar is unpacked once; raises `UserError` where an archive is truncated."""
    if where.is_dir():
        return _open_folder(where)
    if not where.is_file():
        raise UserError(f"expected a folder, a .tar or a .zip, got '{where}', which is not there; check the path")
    source = _uncompressed(where)
    return FileTree(where, build_index(list_packed_files(source)), (source,))


def _open_folder(where: Path) -> FileTree:
    """Open a folder with the archives in it, as ImageNet-C ships; a loose file takes precedence over a packed one."""
    archives = sorted(path for path in where.iterdir() if path.name.lower().endswith(_ARCHIVES) and path.is_file())
    has_pictures = bool(archives) and any(path.lower().endswith(_PICTURES) for path, _ in _list_loose_files(where))
    sources: list[Path] = [where]
    used: set[str] = set()
    packed: list[Iterable[tuple[str, ArchiveFile]]] = []
    for path in archives:
        files = _list_stray_archive(path) if has_pictures else list_packed_files(_uncompressed(path))
        if files is not None:
            packed.append(_set_source(files, len(sources)))
            sources.append(_uncompressed(path))
            used.add(path.name)
    loose = ((path, entry) for path, entry in _list_loose_files(where) if path not in used)
    return FileTree(where, build_index(chain(*packed, loose)), tuple(sources))


def _uncompressed(path: Path) -> Path:
    return unpack_tar(path) if is_compressed(path) else path


def _list_stray_archive(path: Path) -> Iterable[tuple[str, ArchiveFile]] | None:
    """List an archive that lies beside unpacked pictures; None where it is not one or is compressed."""
    try:
        return None if is_compressed(path) else list(list_packed_files(path))
    except UserError:
        return None


def _set_source(files: Iterable[tuple[str, ArchiveFile]], source: int) -> Iterator[tuple[str, ArchiveFile]]:
    return ((path, entry._replace(source=source)) for path, entry in files)


def _list_loose_files(where: Path) -> Iterator[tuple[str, ArchiveFile]]:
    for folder, folders, names in os.walk(where, followlinks=True, onerror=_refuse):
        folders[:] = [name for name in folders if not is_link_to_parent(Path(folder) / name)]
        inside = PurePosixPath(Path(folder).relative_to(where).as_posix())
        for name in names:
            yield str(inside / name), ArchiveFile(_size(os.path.join(folder, name)), packing=LOOSE)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:  # a broken or circular link: reading it gives the error
        return -1


def _refuse(error: OSError) -> None:
    """Raise the error: os.walk would otherwise skip an unreadable folder without a message."""
    raise error


def _read_loose(file: Path, called: str) -> bytes:
    try:
        return read_user_file(file)
    except Unusable as error:
        raise Unusable(f"{called}: {error}") from error


def _read_zipped(source: Path, entry: ArchiveFile) -> bytes:
    header = read_span(source, entry.start, _LOCAL_HEADER, source.name)
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    data = read_span(source, entry.start + _LOCAL_HEADER + names, entry.stored + _BEHIND, source.name)
    content = decompress(data[: entry.stored], entry.packing, entry.size)
    verify_checksum(content, header, data[entry.stored :])
    return content
