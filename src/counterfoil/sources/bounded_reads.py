"""Files of users read within bounds: regular files alone, and no more bytes than a picture can have.

Every reader of photos, masks and archives takes its bytes from here. A FIFO would block for ever, a device would never
end, and a member of an archive may claim any size.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from counterfoil.errors import Unusable
from counterfoil.types import Item, Output

MOST_BYTES = 1 << 28  # per picture, mask or member of an archive; anything larger is treated as a bomb
MOST_LABEL_BYTES = 1 << 20  # per label or annotation inside an archive
_AHEAD = 1024  # files handed to threads at once: each that waits takes more memory than its row in the list
_KINDS = {
    stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}  # fmt: skip


def refuse_oversized(size: int, most: int = MOST_BYTES) -> None:
    """Raise `Unusable` where the size of a file is larger than any picture."""
    if size > most:
        raise Unusable(f"{size:,} bytes are more than {most:,} allowed")


def read_user_file(path: Path) -> bytes:
    """The bytes of a regular file; raises `Unusable` where it cannot be read, is too large, or is something else."""
    try:
        # without O_NONBLOCK, opening a FIFO waits for a writer
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise Unusable(f"it is {_KINDS.get(stat.S_IFMT(about.st_mode), 'something else')}, not a file")
            refuse_oversized(about.st_size)
            content = file.read(about.st_size + 1)  # MOST_BYTES would reserve as much address space in every thread
            if len(content) > about.st_size:  # it has grown since
                content += file.read(MOST_BYTES)
    except OSError as error:
        raise Unusable(describe_os_error(path, error)) from error
    refuse_oversized(len(content))
    return content


def map_files(work: Callable[[Item], Output], files: Iterable[Item], threads: int = 8) -> Iterator[Output]:
    """The results of work that reads files, in order, made by several threads."""
    waiting = iter(files)
    with ThreadPoolExecutor(threads) as pool:
        while few := list(itertools.islice(waiting, _AHEAD)):
            yield from pool.map(work, few)


def read_span(path: Path, start: int, length: int, called: str) -> bytes:
    """This many bytes of an archive from a place on; raises `Unusable` where they are not there or too many."""
    refuse_oversized(length)
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(length)
    except OSError as error:
        raise Unusable(f"{called} cannot be read: {error.strerror}") from error
    if len(data) < length:
        raise Unusable(f"{called} ends within a picture")
    return data


def find_fault(path: Path) -> str:
    """Why a path is neither a file nor a folder: a dangling or circular link, a FIFO; empty where it is one."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return describe_os_error(path, error)
    kind = stat.S_IFMT(mode)
    return "" if kind in (stat.S_IFREG, stat.S_IFDIR) else f"it is {_KINDS.get(kind, 'something else')}, not a file"


def describe_os_error(path: Path, error: OSError) -> str:
    """The reason why a path cannot be read, with the target of a link that leads to nothing."""
    if error.errno == errno.ELOOP:
        return "the link leads in a circle"
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and path.is_symlink():
        target = os.fspath(path.readlink()).encode("utf-8", "backslashreplace").decode()
        return f"the link leads to nothing: {target} is not there"
    return f"the file cannot be read: {error.strerror}"
