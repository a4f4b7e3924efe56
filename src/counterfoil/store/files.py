"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from counterfoil.errors import UserError

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
