"""A folder written whole or not at all; atomic writes, folder names."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from counterfoil.errors import UserError

MANIFEST = "manifest.parquet"


RECORD = "benchmark.json"


def refuse_to_write_into(folder: Path) -> None:
    """Nothing is written into a benchmark, nor below it: with another file in it, it is not what was frozen."""
    place = folder.resolve()
    for above in (place, *place.parents):
        if (above / RECORD).is_file() and (above / MANIFEST).is_file():
            raise UserError(
                f"expected a folder outside of every frozen benchmark, got '{folder}', which would change the one in"
                f" '{above}'; choose another --out"
            )


if sys.platform != "win32":
    import fcntl

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def whole_folder(out: Path, bytes_needed: int) -> Iterator[Path]:
    """A hidden sibling of `out` to write into; it takes the name when the block ends well, else it is removed."""
    _check_absent(out)
    refuse_to_write_into(out)
    place = out.resolve()  # a link to an empty folder stays a link
    partial = place.with_name(f".{place.name}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        _check_room(partial.parent, out, bytes_needed)
        with _alone(partial, out):
            yield partial
            if place.is_dir():
                place.rmdir()  # checked to be empty
            os.rename(partial, place)
    except (OSError, UserError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__  # the store words a full disk itself
        if not isinstance(cause, OSError) or cause.errno not in _NO_ROOM:
            raise
        raise UserError(
            f"no room is left while writing the benchmark to '{out}' ({os.strerror(cause.errno).lower()}):"
            " nothing of it was kept, workspace and earlier versions are as they were; free some space and run again"
        ) from error


@contextlib.contextmanager
def _alone(partial: Path, out: Path) -> Iterator[None]:
    """The partial folder, empty and for this process only; whatever ends the block early, it is removed."""
    partial.mkdir(exist_ok=True)
    with _locked(partial, out):
        try:
            _check_absent(out)  # another freeze may have finished a moment ago
            for left in partial.iterdir():  # of a freeze that was killed
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


@contextlib.contextmanager
def _locked(folder: Path, out: Path) -> Iterator[None]:
    """The lock goes with the process, whatever ends it."""
    if sys.platform == "win32":  # it has no such locks: there two freezes into one folder are not told apart
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor, folder, out)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path, out: Path) -> None:
    if sys.platform == "win32":
        return
    busy = UserError(f"another freeze is writing '{out}': wait for it, or choose another --out")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise busy from error
    except OSError:  # a file system without locks on folders, such as NFS
        return
    if not folder.is_dir() or not os.path.samestat(os.fstat(descriptor), folder.stat()):
        raise busy  # the other one has just renamed it


def _check_absent(out: Path) -> None:
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise UserError(
            f"expected a folder that is not there yet, got '{out}', which holds something: a frozen version is never"
            " overwritten; choose another --out"
        )


def _check_room(parent: Path, out: Path, bytes_needed: int) -> None:
    """Better to know before an hour of copying."""
    free = shutil.disk_usage(parent).free
    if free < bytes_needed:
        raise UserError(
            f"no room for the benchmark in '{out}': its pictures take {bytes_needed / 1e6:,.1f} MB, the disk has"
            f" {free / 1e6:,.1f} MB free; free some space or choose another --out"
        )


_NAME_BYTES = 200  # that every file system takes, with room for an ending


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name only when the block ends well; a failure leaves nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(
                f"the disk is full while writing {path}: free some space and run the command again"
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write a small file whole."""
    with written_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def folder_name(text: str) -> str:
    """A label as the name of one folder: labels come from strangers' files, and "../x" or "/x" would lead elsewhere."""
    plain = re.sub(r"[/\\\x00-\x1f\x7f]", "_", text).encode("utf-8", "replace")[:_NAME_BYTES].decode("utf-8", "ignore")
    return "_" * max(1, len(plain)) if plain in ("", ".", "..") else plain
