"""Bytes of photos from object storage on the local disk, by digest, within a bound; the longest unused go first."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from counterfoil.assets.cache import cache_folder
from counterfoil.errors import UserError
from counterfoil.store.files import write_atomically

_SETTING = "COUNTERFOIL_PHOTO_CACHE_GB"
_DEFAULT_GB = 10.0
_KEPT_SHARE = 0.8  # of the bound, when it was passed: so that the folder is not listed for every photo


class PhotoCache:
    """A folder of files that several threads and processes share."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most = folder, most_bytes
        self._held: int | None = None  # bytes, as far as this process knows; None before the folder was listed
        self._lock = threading.Lock()

    def read(self, name: str) -> bytes | None:
        """The bytes under a name; None where they are not here."""
        path = self._folder / name
        try:
            content = path.read_bytes()
            os.utime(path)  # used last
        except OSError:  # never here, or removed by another process meanwhile
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        """Keep the bytes under a name; a cache without room, or on a full disk, keeps nothing."""
        if len(content) > self._most:
            return
        try:
            write_atomically(self._folder / name, content, durable=False)
        except UserError:  # the disk is full
            return
        with self._lock:
            self._held = self._measure() if self._held is None else self._held + len(content)
            if self._held > self._most:
                self._held = self._shrink()

    def _measure(self) -> int:
        return sum(size for _, size, _ in self._list())

    def _shrink(self) -> int:
        """Remove what was not used for longest; returns the bytes that are left."""
        files = sorted(self._list())
        held = sum(size for _, size, _ in files)
        for _, size, path in files:
            if held <= _KEPT_SHARE * self._most:
                break
            Path(path).unlink(missing_ok=True)
            held -= size
        return held

    def _list(self) -> list[tuple[float, int, str]]:
        """When each file was last used, its size and its path."""
        rows = []
        for entry in os.scandir(self._folder):
            try:
                about = entry.stat()
            except FileNotFoundError:  # removed by another process
                continue
            rows.append((about.st_mtime, about.st_size, entry.path))
        return rows


def open_photo_cache() -> PhotoCache:
    """The cache of this user, of COUNTERFOIL_PHOTO_CACHE_GB gigabytes; 0 keeps nothing."""
    text = os.environ.get(_SETTING, str(_DEFAULT_GB))
    try:
        gigabytes = float(text)
    except ValueError as error:
        raise UserError(f"expected a number of gigabytes in {_SETTING}, got '{text}'") from error
    return PhotoCache(cache_folder() / "photos-from-storage", int(gigabytes * 1e9))
