"""The pictures of a workspace, checked against its manifest: one that was overwritten is not shown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from counterfoil.errors import Unusable
from counterfoil.sources.pixels import decode_picture, hash_pixels
from counterfoil.store.workspace import Workspace
from counterfoil.types import StoredVariant


@dataclass(frozen=True)
class PictureReader:
    """Reads pictures by variant; pixels are hashed once for each state of a file."""

    workspace: Workspace
    _checked: dict[str, tuple[int, int]] = field(default_factory=dict)  # variant to time and size of its file

    @cached_property
    def _stored(self) -> Mapping[str, StoredVariant]:
        return {row.variant.id: row for row in self.workspace.pictures}

    def file(self, variant_id: str) -> str:
        """The path of a picture within the workspace."""
        return self._stored[variant_id].file

    def read(self, variant_id: str) -> bytes:
        """The PNG; raises `Unusable` where it cannot be read, or is another picture than the manifest names."""
        path = self.workspace.folder / self.file(variant_id)
        status = _stat(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error
        state = (status.st_mtime_ns, status.st_size)
        if self._checked.get(variant_id) != state:
            stored = self._stored[variant_id]
            if stored.sha256 and hash_pixels(decode_picture(content, stored.file)) != stored.sha256:
                raise Unusable(f"{stored.file} was overwritten since it was built")
            self._checked[variant_id] = state
        return content

    def find_changes(self, since: float, variant_ids: Iterable[str]) -> list[str]:
        """What is wrong with pictures that are missing or were overwritten; only files written later are opened."""
        faults = []
        for variant_id in variant_ids:
            try:
                status = _stat(self.workspace.folder / self.file(variant_id))
                # a file that was moved here keeps its time of writing, but not that of its name
                if max(status.st_mtime, status.st_ctime) >= since:
                    self.read(variant_id)
            except Unusable as error:
                faults.append(str(error))
        return faults


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error
