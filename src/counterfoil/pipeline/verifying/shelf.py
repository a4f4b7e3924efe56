"""The pictures as they lie on the disk: each is compared with the manifest before anybody sees or decides on it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from counterfoil.errors import Unusable
from counterfoil.freeze.checking import decoded, pixel_hash
from counterfoil.store import Workspace
from counterfoil.types import Exhibit


@dataclass(frozen=True)
class Shelf:
    """The pictures of a workspace by variant; pixels are hashed once for each state of a file."""

    workspace: Workspace
    _known: dict[str, tuple[int, int]] = field(default_factory=dict)  # variant to time and size of what was checked

    @cached_property
    def _exhibits(self) -> Mapping[str, Exhibit]:
        return {row.variant.id: row for row in self.workspace.exhibits}

    def file(self, variant_id: str) -> str:
        """Where a picture lies in the workspace."""
        return self._exhibits[variant_id].file

    def read(self, variant_id: str) -> bytes:
        """The PNG; raises `Unusable` where it cannot be read, or is another picture than the manifest names."""
        path = self._path(variant_id)
        try:
            state = _state(path.stat())
            data = path.read_bytes()
        except OSError as error:
            raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error
        if self._known.get(variant_id) != state:
            self._check(variant_id, data)
            self._known[variant_id] = state
        return data

    def changed_since(self, time: float, variant_ids: Iterable[str]) -> list[str]:
        """What is wrong with pictures that are missing or were overwritten; only files written later are opened."""
        found = []
        for name in variant_ids:
            try:
                if _written(self._path(name)) >= time:
                    self.read(name)
            except Unusable as error:
                found.append(str(error))
        return found

    def _path(self, variant_id: str) -> Path:
        return self.workspace.folder / self.file(variant_id)

    def _check(self, variant_id: str, data: bytes) -> None:
        exhibit = self._exhibits[variant_id]
        if exhibit.sha256 and pixel_hash(decoded(data, exhibit.file)) != exhibit.sha256:
            raise Unusable(f"{exhibit.file} was overwritten since it was built")


def _state(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_size


def _written(path: Path) -> float:
    """When the file or its name was last written: one that was moved here keeps its time of writing."""
    try:
        found = path.stat()
    except OSError as error:
        raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error
    return max(found.st_mtime, found.st_ctime)
