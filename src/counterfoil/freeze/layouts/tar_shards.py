"""WebDataset: tar files in which <key>.png, <key>.json and <key>.cls belong together; the same pictures, same bytes."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path

from counterfoil.freeze.entries import Entry, Place
from counterfoil.freeze.layouts.layout import Site
from counterfoil.freeze.layouts.shards import ShardedLayout

_BLOCK = 512
_RECORD = 20 * _BLOCK  # tar files end on a whole record


class TarShard:
    """One tar file; its members have no owner and no time, so that nothing but the pictures makes its bytes."""

    def __init__(self, path: Path, name: str, numbers: Mapping[str, int]) -> None:
        self._file = path.open("wb")
        self._name, self._numbers = name, numbers
        self._places: list[Place] = []
        self.taken = 0

    def add(self, entry: Entry, data: bytes) -> None:
        """The picture, what is known of it, and the number of its label."""
        key = re.sub(r"[^\w-]+", "_", entry.variant.id)  # a dot would end the key
        offset = self._member(f"{key}.png", data)
        self._member(f"{key}.json", json.dumps(entry.shown, ensure_ascii=False, sort_keys=True).encode())
        self._member(f"{key}.cls", str(self._numbers[entry.variant.label]).encode())
        self._places.append(Place(self._name, f"{key}.png", offset, len(data), hashlib.sha256(data).hexdigest()))
        self.taken += len(data)

    def _member(self, name: str, data: bytes) -> int:
        """Write one member; gives back where its bytes begin."""
        about = tarfile.TarInfo(name)
        about.size = len(data)
        self._file.write(about.tobuf(tarfile.USTAR_FORMAT))
        offset = self._file.tell()
        self._file.write(data + bytes(-len(data) % _BLOCK))
        return offset

    def close(self) -> list[Place]:
        """End the file as tar files end."""
        self._file.write(bytes(2 * _BLOCK))
        self._file.write(bytes(-self._file.tell() % _RECORD))
        self._file.close()
        return self._places


def tar_layout(site: Site) -> ShardedLayout:
    """Tar shards."""
    numbers = {label: number for number, label in enumerate(site.labels)}
    return ShardedLayout(site, "tar", lambda path, name: TarShard(path, name, numbers))
