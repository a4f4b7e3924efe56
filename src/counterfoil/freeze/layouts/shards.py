"""Pictures in shards: data/<split>-<number>.<ending>, a new one when the last is large enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from counterfoil.freeze.entries import Entry, Place, Split
from counterfoil.freeze.layouts.layout import DATA, Site


class Shard(Protocol):
    """One open file that takes pictures."""

    taken: int  # bytes of pictures

    def add(self, entry: Entry, data: bytes) -> None:
        """Take one picture's bytes."""

    def close(self) -> list[Place]:
        """Finish the file and say where each of its pictures lies."""


class ShardedLayout:
    """Shards of one kind, those of each split apart."""

    def __init__(self, site: Site, ending: str, open_shard: Callable[[Path, str], Shard]) -> None:
        self._site, self._ending, self._open_shard = site, ending, open_shard
        self._open: dict[Split, Shard] = {}
        self._places: dict[Split, list[Place]] = {}
        self._numbers: dict[Split, int] = {}
        self._came: list[Split] = []
        (site.folder / DATA).mkdir()

    def add(self, entry: Entry, data: bytes) -> None:
        """Put one picture into the open shard of its split."""
        split = entry.split
        if split not in self._open:
            number = self._numbers[split] = self._numbers.get(split, -1) + 1
            name = f"{DATA}/{split}-{number:05d}.{self._ending}"
            self._open[split] = self._open_shard(self._site.folder / name, name)
        self._open[split].add(entry, data)
        self._came.append(split)
        if self._open[split].taken >= self._site.shard_bytes:
            self._close(split)

    def finish(self) -> list[Place]:
        """Close what is open."""
        for split in list(self._open):
            self._close(split)
        following = {split: iter(places) for split, places in self._places.items()}
        return [next(following[split]) for split in self._came]

    def _close(self, split: Split) -> None:
        self._places.setdefault(split, []).extend(self._open.pop(split).close())
