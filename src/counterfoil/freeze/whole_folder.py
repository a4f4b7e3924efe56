"""A folder that is there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from counterfoil.errors import UserError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def whole_folder(out: Path, bytes_needed: int) -> Iterator[Path]:
    """A hidden sibling of `out` to write into; it takes the name when the block ends well, else it is removed."""
    _check_absent(out)
    partial = out.absolute().with_name(f".{out.absolute().name}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        _check_room(partial.parent, out, bytes_needed)
        shutil.rmtree(partial, ignore_errors=True)  # of a freeze that was killed
        partial.mkdir()
        yield partial
        if out.is_dir():
            out.rmdir()  # checked to be empty
        os.rename(partial, out)
    except (OSError, UserError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__  # the store words a full disk itself
        if not isinstance(cause, OSError) or cause.errno not in _NO_ROOM:
            raise
        raise UserError(
            f"no room is left while writing the benchmark to '{out}' ({os.strerror(cause.errno).lower()}):"
            " nothing of it was kept, workspace and earlier versions are as they were; free some space and run again"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


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
