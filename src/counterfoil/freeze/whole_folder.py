"""A folder that is there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.freeze.record import refuse_to_write_into

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
