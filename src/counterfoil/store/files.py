"""Files written whole under a temporary name and then renamed, their hashes, and labels as folder names."""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from counterfoil.errors import UserError

MANIFEST, RECORD = "manifest.parquet", "benchmark.json"  # the files that mark a folder as a frozen benchmark
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_TOKEN_BYTES = 4  # of the random end of a temporary name
_NAME_BYTES = 200  # that every file system allows, with room for a suffix


@contextlib.contextmanager
def open_atomically(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A file that gets its name only when the block succeeds; a failure leaves nothing behind.

    A `durable` file is on the disk, with its name, when the block is left, also where the machine then loses power.
    """
    make_durable_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(_TOKEN_BYTES)}")
    try:
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(
                f"the disk is full while writing {path}: free some space and run the command again"
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def is_half_written(name: str) -> bool:
    """Whether a file has the temporary name of one that is being written, or was when its process was killed."""
    return re.fullmatch(rf"\..+\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}", name) is not None


def make_durable_folder(folder: Path) -> None:
    """Make a folder with those above it, each with its name on the disk."""
    if folder.is_dir():
        return
    make_durable_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_disk() -> None:
    """Bring all that was written to the disk: at the end of many files, where one by one would take longer."""
    if os.name != "nt":  # Windows has no such call
        os.sync()


def sync_folder(folder: Path) -> None:
    """Bring the names of a folder to the disk."""
    if os.name == "nt":  # Windows cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def format_csv(rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV; a null character, which Python 3.10 cannot write or read there, is shown as its escape."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    for row in rows:
        table.writerow([cell.replace("\0", "\\0") if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def write_atomically(path: Path, content: str | bytes, durable: bool = True) -> Path:
    """Write a small file under a temporary name and rename it; of a path that is not UTF-8 the bytes are spelt out."""
    with open_atomically(path, durable) as file:
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
    return path


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def make_folder_name(text: str) -> str:
    """A label as a safe folder name: labels come from untrusted files, and "../x" or "/x" would leave the folder."""
    plain = re.sub(r"[/\\\x00-\x1f\x7f]", "_", text).encode("utf-8", "replace")[:_NAME_BYTES].decode("utf-8", "ignore")
    return "_" * max(1, len(plain)) if plain in ("", ".", "..") else plain
