"""A lock between processes that share a cache."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file; wait while another process holds it."""
    with path.open("ab") as file:  # closed by the system when a process is killed, and with it the lock is gone
        _wait_for(file.fileno())
        yield


if sys.platform == "win32":
    import errno
    import msvcrt

    def _wait_for(descriptor: int) -> None:
        while True:
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError as problem:
                if problem.errno != errno.EDEADLOCK:  # what Windows says after ten seconds of waiting
                    raise

else:
    import fcntl

    def _wait_for(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
