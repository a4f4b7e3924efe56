"""Files that are made of assets once and kept in the cache folder: rewritten networks, planes of ground."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from counterfoil.assets.cache import cache_folder
from counterfoil.store.files import hash_file, write_atomically

_log = logging.getLogger(__name__)


def keep_derived(name: str, make: Callable[[], bytes]) -> Path | bytes:
    """The file of this name in the cache folder, with its hash beside it.

    Args:
        name: Of the file, with the version of what makes it.
        make: Gives the content; called only where the file is not there or is damaged.

    Returns:
        The path; or the content, where the cache folder cannot be written.
    """
    file = cache_folder() / name
    record = file.with_suffix(".sha256")
    if record.is_file() and file.is_file() and hash_file(file) == record.read_text(encoding="ascii").strip():
        return file
    content = make()
    try:
        write_atomically(file, content)
        write_atomically(record, hashlib.sha256(content).hexdigest() + "\n")
    except OSError as error:
        _log.info("%s is not kept: %s", name, error)
        return content
    return file
