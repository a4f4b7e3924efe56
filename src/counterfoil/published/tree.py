"""The files of an archive, wherever they lie: a folder, a tar, a zip, a folder of tars; nothing is unpacked.

Every read opens its file anew and seeks, so that any number of threads and forked processes may read at once.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from counterfoil.errors import Unusable, UserError
from counterfoil.published.unpacking import refuse_bomb, unpacked

_COMPRESSED = {b"\x1f\x8b": ("gzip", "gzip -dk"), b"BZ": ("bzip2", "bzip2 -dk"), b"\xfd7": ("xz", "xz -dk")}
_END_OF_TAR = b"\0" * 1024
_LOCAL_HEADER = 30  # bytes of a zip's local header before the name
_ENCRYPTED = 0x1


class Tree(Protocol):
    """Files by their path, whatever holds them."""

    @property
    def where(self) -> Path:
        """What the user named."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Every file's size in bytes by its path, sorted by path."""

    def read(self, path: str) -> bytes:
        """The bytes of one file; raises `Unusable` where that fails."""


class _Part(NamedTuple):
    """Where a file lies within an archive."""

    start: int
    stored: int  # bytes in the archive
    size: int  # bytes of the file
    packing: int | None = None  # how a zip packed it; None in a tar


def open_tree(where: Path) -> Tree:
    """The files at a path; an archive that is truncated or packed as a whole is refused."""
    if where.is_dir():
        return _folder(where)
    if not where.is_file():
        raise UserError(f"expected a folder, a .tar or a .zip, got '{where}', which is not there; check the path")
    with where.open("rb") as file:
        magic = file.read(4)
    if magic[:2] in _COMPRESSED:
        kind, command = _COMPRESSED[magic[:2]]
        raise UserError(
            f"expected a .tar, a .zip or a folder, got '{where}', which is packed by {kind} as a whole and cannot be"
            f" read picture by picture; run: {command} {where.name}"
        )
    return PackedTree(where, _zip_parts(where) if magic[:2] == b"PK" else _tar_parts(where))


def _folder(where: Path) -> Tree:
    """A folder; where it holds archives beside no folder, as ImageNet-C comes, their files together."""
    inside = sorted(where.iterdir())
    packed = [path for path in inside if path.suffix.lower() in (".tar", ".zip") and path.is_file()]
    if packed and not any(path.is_dir() for path in inside):
        return JoinedTree(where, tuple(open_tree(path) for path in packed))
    return FolderTree(where)


@dataclass(frozen=True)
class FolderTree:
    """An unpacked archive."""

    where: Path

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Every file's size by its path."""
        found: dict[str, int] = {}
        for folder, folders, names in os.walk(self.where, followlinks=True, onerror=_refuse):
            folders[:] = [name for name in folders if not _leads_up(Path(folder) / name)]
            inside = PurePosixPath(Path(folder).relative_to(self.where).as_posix())
            for name in names:
                path = Path(folder) / name
                found[str(inside / name)] = path.stat().st_size if path.exists() else -1  # a link to nowhere
        return dict(sorted(found.items()))

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        try:
            return (self.where / path).read_bytes()
        except OSError as error:
            raise Unusable(f"{path} cannot be read: {error.strerror}") from error


def _leads_up(folder: Path) -> bool:
    """Whether a folder is a link to one that it lies in: such links would be followed for ever."""
    if not folder.is_symlink():
        return False
    real = folder.resolve()
    return any(real == above.resolve() for above in folder.parents)


def _refuse(error: OSError) -> None:
    """A folder that cannot be read would be missing without a word."""
    raise error


@dataclass(frozen=True)
class PackedTree:
    """An archive in one file, indexed once."""

    where: Path
    parts: Mapping[str, _Part] = field(repr=False)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Every file's size by its path."""
        return {path: part.size for path, part in sorted(self.parts.items())}

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        part = self.parts[path]
        refuse_bomb(part.size)
        if part.packing is None:
            return self._bytes(part.start, part.size)
        header = self._bytes(part.start, _LOCAL_HEADER)
        names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        data = self._bytes(part.start + _LOCAL_HEADER + names, part.stored)
        return unpacked(data, part.packing, part.size)

    def _bytes(self, start: int, length: int) -> bytes:
        try:
            with self.where.open("rb") as file:
                file.seek(start)
                data = file.read(length)
        except OSError as error:
            raise Unusable(f"{self.where.name} cannot be read: {error.strerror}") from error
        if len(data) < length:
            raise Unusable(f"{self.where.name} ends within a picture")
        return data


def _tar_parts(where: Path) -> dict[str, _Part]:
    """Where each file of a tar lies; a tar that does not end as it should is refused."""
    try:
        with tarfile.open(where, "r:") as archive:
            members = [member for member in archive if member.isfile() or member.islnk()]
            end = archive.offset
    except (tarfile.TarError, ValueError) as error:
        if not tarfile.is_tarfile(where):
            raise UserError(f"expected a folder, a .tar or a .zip, got '{where}', which is none of them") from error
        raise _broken(where, "tar", str(error)) from error
    with where.open("rb") as file:
        file.seek(-min(len(_END_OF_TAR), where.stat().st_size), os.SEEK_END)
        if file.read() != _END_OF_TAR:
            raise _broken(where, "tar", "its end mark is missing")
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):  # tarfile takes a broken header for the end
            raise _broken(where, "tar", f"no header at byte {end:,}")
    parts = {_plain(item.name): _Part(item.offset_data, item.size, item.size) for item in members if item.isfile()}
    links = {_plain(item.name): _plain(item.linkname) for item in members if item.islnk()}  # one file under two names
    return {**parts, **{name: parts[target] for name, target in links.items() if target in parts}}


def _zip_parts(where: Path) -> dict[str, _Part]:
    """Where each file of a zip lies; a zip with a password is refused."""
    try:
        with zipfile.ZipFile(where) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    except zipfile.BadZipFile as error:
        raise _broken(where, "zip", str(error)) from error
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise UserError(f"expected a zip without a password, got '{where}'; unpack it and give the folder")
    return {
        _plain(entry.filename): _Part(entry.header_offset, entry.compress_size, entry.file_size, entry.compress_type)
        for entry in entries
    }


@dataclass(frozen=True)
class JoinedTree:
    """Several archives that are one benchmark, such as ImageNet-C's blur.tar, noise.tar and so on."""

    where: Path
    parts: tuple[Tree, ...] = field(repr=False)

    @cached_property
    def _part_of(self) -> dict[str, Tree]:
        return {path: part for part in self.parts for path in part.sizes}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Every file's size by its path."""
        return {path: self._part_of[path].sizes[path] for path in sorted(self._part_of)}

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        return self._part_of[path].read(path)


def _plain(name: str) -> str:
    """A path as others have it: many tars begin every name with "./"."""
    return str(PurePosixPath(name)) if name.startswith(("./", "/")) or "//" in name else name


def _broken(where: Path, kind: str, why: str) -> UserError:
    return UserError(f"expected a whole {kind}, got '{where}', which is truncated or damaged ({why}); fetch it again")
