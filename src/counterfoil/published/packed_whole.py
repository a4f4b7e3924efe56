"""Tars that are packed as a whole, as ImageNet-V2 and ImageNet-9 come: unpacked once into the cache.

Such a file can be read from its beginning only, and pictures are read in any order, by many at once; so the plain tar
is kept. Pictures hardly shrink: it takes about the room of the file.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

from counterfoil.embedded.fetch.fetching import cache_folder
from counterfoil.embedded.fetch.lock import locked
from counterfoil.errors import UserError
from counterfoil.published.packed import broken
from counterfoil.store.files import written_whole

_OPENERS: dict[bytes, Callable[[Path], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_BLOCK = 1 << 22
_KEPT_FREE = 1 << 30  # bytes of disk that unpacking leaves
_KNOWN_BY = 1 << 16  # bytes at both ends by which a file is known again, wherever it was moved
_MARK = slice(257, 262)  # where the first header of a tar says that it is one


def is_packed_whole(where: Path) -> bool:
    """Whether a file is packed by gzip, bzip2 or xz."""
    return _magic(where) in _OPENERS


def plain_tar(where: Path) -> Path:
    """The tar within a packed file: in the cache, into which it is unpacked on first use."""
    key = _key(where)
    place, lock = cache_folder() / "archives" / f"{key}.tar", cache_folder() / "downloads" / f"{key}.lock"
    if place.is_file():
        return place
    for folder in (place.parent, lock.parent):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(lock):
        if not place.is_file():  # another process may have unpacked it while we waited
            print(f"unpacking {where.name} once into {place}", file=sys.stderr, flush=True)
            _remove_halves(place)
            _unpack(where, place)
    return place


def _remove_halves(place: Path) -> None:
    """What killed processes left of it, gigabytes perhaps; none is still being written, since we hold the lock."""
    for half in place.parent.glob(f".{place.name}.*"):
        half.unlink(missing_ok=True)


def _unpack(where: Path, place: Path) -> None:
    try:
        with _OPENERS[_magic(where)](where) as plain, written_whole(place) as written:
            block = plain.read(_BLOCK)
            if block[_MARK] != b"ustar":
                raise UserError(f"expected a tar within '{where}', found something else; unpack it and give the folder")
            while block:
                _refuse_full(where, place, len(block) + where.stat().st_size - written.tell())
                written.write(block)
                block = plain.read(_BLOCK)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise broken(where, "packed tar", str(error)) from error
    except OSError as error:
        if error.errno is None:  # what bzip2 calls damage
            raise broken(where, "packed tar", str(error)) from error
        raise UserError(f"expected to write {place}, got: {error}; set COUNTERFOIL_CACHE to another folder") from error


def _refuse_full(where: Path, place: Path, wanted: int) -> None:
    """Stop before the disk is full: at the start by the size of the packed file, later by each block."""
    free = shutil.disk_usage(place.parent).free
    if free - max(wanted, 0) < _KEPT_FREE:
        raise UserError(
            f"expected room to unpack '{where}' into {place.parent}, where {free / 1e9:.1f} GB are free: make room, set"
            " COUNTERFOIL_CACHE to another folder, or unpack it yourself and give the folder"
        )


def _key(where: Path) -> str:
    """Known again by its size and its two ends, which hold the sum over all bytes that gzip and xz write."""
    size = where.stat().st_size
    with where.open("rb") as file:
        first = file.read(_KNOWN_BY)
        file.seek(max(0, size - _KNOWN_BY), os.SEEK_SET)
        return hashlib.sha256(f"{size}\n".encode() + first + file.read()).hexdigest()[:32]


def _magic(where: Path) -> bytes:
    """How a packed file begins, nothing for others; a plain tar may begin with the name BZh_photos/."""
    with where.open("rb") as file:
        first = file.read(_MARK.stop)
    return next((magic for magic in _OPENERS if first.startswith(magic) and first[_MARK] != b"ustar"), b"")
