"""Fills of a run on disk: what one worker painted and measured for a photo's hole, another need not do again.

A photo that lends its background to others is filled for each of them; in a run of many photos, or of several
processes, the one that filled it first no longer has it in memory. Only what a task keeps is stored, under a hash of
all that it depends on, so that the choice among the fills is the same. The folder belongs to one run and goes with it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.edits.fill_choice import FillTask
from counterfoil.edits.fill_quality import FillQuality
from counterfoil.store.files import write_atomically

MOST_BYTES = 2**30  # of a run; further fills are not stored


@dataclass
class FillStore:
    """A folder of fills; closed, it holds nothing. Several processes may use one folder, each with its own store."""

    kind: str = ""  # the fills that there are: others choose otherwise
    folder: Path | None = None
    room: int = MOST_BYTES  # bytes that may still be written

    def open(self, folder: Path, workers: int = 1) -> None:
        """Use a folder, as one of so many workers."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.room = folder, MOST_BYTES // workers

    def close(self) -> None:
        """Use no folder any more."""
        self.folder = None

    def restore(self, task: FillTask) -> bool:
        """Give a task what is stored for its hole; whether anything was."""
        if self.folder is None or task.avoid is not None:
            return False
        try:
            content = self._path(self.folder, task).read_bytes()
        except OSError:
            return False
        head, _, pixels = content.partition(b"\n")
        about = json.loads(head)
        count = 3 * int(np.count_nonzero(task.hole))
        for place, name in enumerate(about["made"]):
            image = task.image.copy()
            image[task.hole] = np.frombuffer(pixels, np.uint8, count, place * count).reshape(-1, 3)
            task.made[name] = image
        task.qualities.update({name: FillQuality(*values) for name, values in about["qualities"]})
        task.disagreements.update({frozenset(pair): value for pair, value in about["disagreements"]})
        task.appearances.update(dict(about["appearances"]))
        return True

    def save(self, task: FillTask) -> None:
        """Store what was made and measured for a hole, as long as there is room."""
        if self.folder is None or task.avoid is not None or not task.made:
            return
        about: dict[str, Any] = {
            "made": list(task.made),
            "qualities": [[name, list(map(float, quality))] for name, quality in task.qualities.items()],
            "disagreements": [[sorted(pair), float(value)] for pair, value in task.disagreements.items()],
            "appearances": [[name, float(value)] for name, value in task.appearances.items()],
        }
        planes = (np.ascontiguousarray(image[task.hole]).tobytes() for image in task.made.values())
        content = b"".join(chain([json.dumps(about).encode(), b"\n"], planes))
        if len(content) > self.room:
            return
        self.room -= len(content)
        try:
            write_atomically(self._path(self.folder, task), content, durable=False)
        except OSError:  # a full disk: the work goes on without
            self.room = 0

    def _path(self, folder: Path, task: FillTask) -> Path:
        return folder / _hash(f"{__version__} {self.kind} {task.hole.shape}", task.image, task.hole)


def _hash(words: str, *planes: NDArray[Any]) -> str:
    digest = hashlib.sha256(words.encode())
    for plane in planes:
        digest.update(np.ascontiguousarray(plane).data)
    return digest.hexdigest()
