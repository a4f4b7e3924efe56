"""A folder written atomically: under a hidden name first, by one process, after a check of disk space."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.store.files import DISK_FULL, sync_disk, sync_folder
from counterfoil.store.folder_lock import refuse_benchmark, try_lock


@contextlib.contextmanager
def write_folder_atomically(out: Path, bytes_needed: int) -> Iterator[Path]:
    """A hidden folder beside `out` to write into; it is renamed when the block succeeds, else removed."""
    _check_absent(out)
    refuse_benchmark(out)
    target = out.resolve()  # a link to an empty folder stays a link
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        _check_free_space(partial.parent, out, bytes_needed)
        with _claim_partial(partial, out):
            yield partial
            if target.is_dir():
                target.rmdir()  # checked to be empty
            sync_disk()
            os.rename(partial, target)
            sync_folder(target.parent)
    except (OSError, UserError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__  # the store raises `UserError` for a full disk
        if not isinstance(cause, OSError) or cause.errno not in DISK_FULL:
            raise
        raise UserError(
            f"no room is left while writing the benchmark to '{out}' ({os.strerror(cause.errno).lower()}):"
            " nothing of it was kept, workspace and earlier versions are as they were; free some space and run again"
        ) from error


@contextlib.contextmanager
def _claim_partial(partial: Path, out: Path) -> Iterator[None]:
    """Hold the partial folder, emptied and locked for this process; it is removed where the block fails."""
    partial.mkdir(exist_ok=True)
    with _lock_folder(partial, out):
        try:
            _check_absent(out)  # another process may have just finished
            for left in partial.iterdir():  # left by a killed process
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


@contextlib.contextmanager
def _lock_folder(folder: Path, out: Path) -> Iterator[None]:
    if sys.platform == "win32":  # Windows has no locks on folders
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        locked = try_lock(descriptor)
        renamed = not folder.is_dir() or not os.path.samestat(os.fstat(descriptor), folder.stat())
        if not locked or renamed:  # renamed: the other process has just finished
            raise UserError(f"another freeze is writing '{out}': wait for it, or choose another --out")
        yield
    finally:
        os.close(descriptor)


def _check_absent(out: Path) -> None:
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise UserError(
            f"expected a folder that is not there yet, got '{out}', which holds something: a frozen version is never"
            " overwritten; choose another --out"
        )


def _check_free_space(parent: Path, out: Path, bytes_needed: int) -> None:
    """Raises `UserError`, before the copying, where there is too little disk space."""
    free = shutil.disk_usage(parent).free
    if free < bytes_needed:
        raise UserError(
            f"no room for the benchmark in '{out}': its pictures take {bytes_needed / 1e6:,.1f} MB, the disk has"
            f" {free / 1e6:,.1f} MB free; free some space or choose another --out"
        )
