"""Where each file of a tar or a zip lies; an archive that is damaged is refused before a picture is read."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from counterfoil.errors import UserError
from counterfoil.published.listing import Entry

IN_TAR = -1  # how a file lies in a tar: as it is
NO_BYTES = -3  # what a tar names without its bytes: links that lead elsewhere, files with holes, devices
_END_OF_TAR = b"\0" * 1024
_ENCRYPTED = 0x1
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")  # a tar of PK_photos/ begins with PK too
_UNKNOWN_PACKING = 0x7FFF  # as much as a listing has room for; no number near it means anything
_BLOCK = 1 << 20


def packed_files(where: Path) -> Iterator[tuple[str, Entry]]:
    """Every file of a tar or a zip with the place of its bytes."""
    with where.open("rb") as file:
        is_zip = file.read(4) in _ZIPS
    return _within(where, "zip", _in_zip(where)) if is_zip else _within(where, "tar", _in_tar(where))


def _within(where: Path, kind: str, files: Iterator[tuple[str, Entry]]) -> Iterator[tuple[str, Entry]]:
    """Files that lie in the archive: a size below zero leads tarfile back for ever, a huge one past every number."""
    room = where.stat().st_size
    for path, entry in files:
        if min(entry[:3]) < 0 or entry.start + entry.stored > room or entry.size > sys.maxsize:
            raise broken(where, kind, f"{path!a} does not lie within it")
        yield path, entry


def broken(where: Path, kind: str, why: str) -> UserError:
    """What is said of an archive that did not come whole."""
    return UserError(f"expected a whole {kind}, got '{where}', which is truncated or damaged ({why}); fetch it again")


def _in_tar(where: Path) -> Iterator[tuple[str, Entry]]:
    """The files of a tar; one that does not end as it should is refused."""
    links: dict[str, str] = {}  # one file under two names
    try:
        with tarfile.open(where, "r:") as archive:
            for member in _members(archive):
                if member.islnk():
                    links[_plain(member.name)] = _plain(member.linkname)
                elif not member.isdir():
                    yield _plain(member.name), _entry(member)
            end = archive.offset
    except (tarfile.TarError, ValueError) as error:
        if not tarfile.is_tarfile(where):
            raise UserError(f"expected a folder, a .tar or a .zip, got '{where}', which is none of them") from error
        raise broken(where, "tar", str(error)) from error
    _check_end(where, end)
    if links:
        yield from _linked(where, links)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """What a tar holds, in order, forgotten once it was seen: tarfile keeps a kilobyte of every member."""
    while (member := archive.next()) is not None:
        yield member
        archive.members.clear()  # type: ignore[attr-defined]  # public by its name, left out of the type stubs


def _linked(where: Path, links: Mapping[str, str]) -> Iterator[tuple[str, Entry]]:
    """The further names of files; where they lie is looked up in a second pass, since few tars have any."""
    wanted = set(links.values())
    with tarfile.open(where, "r:") as archive:
        found = {_plain(one.name): _entry(one) for one in _members(archive) if _plain(one.name) in wanted}
    yield from ((name, found.get(target, Entry(0, packing=NO_BYTES))) for name, target in links.items())


def _entry(member: tarfile.TarInfo) -> Entry:
    stored = 0 if member.issparse() else member.size  # of a file with holes it is the whole one's size
    packing = IN_TAR if member.isreg() and not member.issparse() else NO_BYTES
    return Entry(member.size, member.offset_data, stored, packing=packing)


def _check_end(where: Path, end: int) -> None:
    with where.open("rb") as file:
        file.seek(-min(len(_END_OF_TAR), where.stat().st_size), os.SEEK_END)
        if file.read() != _END_OF_TAR:
            raise broken(where, "tar", "its end mark is missing")
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):  # tarfile takes a broken header for the end
            raise broken(where, "tar", f"no header at byte {end:,}")
        while block := file.read(_BLOCK):
            if block.strip(b"\0"):
                raise UserError(
                    f"expected one tar in '{where}', got several joined in one file, of which only the first would be"
                    " read; unpack it with `tar --ignore-zeros` and give the folder"
                )


def _in_zip(where: Path) -> Iterator[tuple[str, Entry]]:
    """The files of a zip; one with a password is refused."""
    try:
        with zipfile.ZipFile(where) as archive:
            entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        raise broken(where, "zip", str(error)) from error
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise UserError(f"expected a zip without a password, got '{where}'; unpack it and give the folder")
    for entry in entries:
        packing = min(entry.compress_type, _UNKNOWN_PACKING)
        yield _plain(entry.filename), Entry(entry.file_size, entry.header_offset, entry.compress_size, packing=packing)


def _plain(name: str) -> str:
    """A path as others have it: many tars begin every name with "./"."""
    return str(PurePosixPath(name)) if name.startswith(("./", "/")) or "//" in name else name
