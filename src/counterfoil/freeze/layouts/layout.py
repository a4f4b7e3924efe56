"""What a layout is: pictures go in one by one, and it says where each came to lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from counterfoil.freeze.entries import Entry, Place

DATA = "data"


class Layout(Protocol):
    """Pictures as files of one kind, in the folder of a benchmark."""

    def add(self, entry: Entry, data: bytes) -> None:
        """Take one picture's bytes."""

    def finish(self) -> list[Place]:
        """Write what is left, and say where each picture lies, in the order in which they came."""


@dataclass(frozen=True)
class Site:
    """Where a layout builds: the folder, the labels in the order that numbers stand for, the size of shards."""

    folder: Path
    labels: Sequence[str]
    shard_bytes: int
