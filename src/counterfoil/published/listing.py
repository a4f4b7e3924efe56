"""The files of an archive in columns: some sixty bytes each of millions, where objects would take a thousand."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Entry(NamedTuple):
    """Where the bytes of a file lie."""

    size: int  # bytes of the file
    start: int = 0  # where in the source it begins
    stored: int = 0  # bytes in the source
    source: int = 0  # which of the tree's sources holds it
    packing: int = 0  # how a zip packed it, or one of the tree's own ways


class Row(NamedTuple):
    """A file as the listing tells it."""

    at: int
    folder: int  # place in the listing's folders
    name: str


@dataclass(frozen=True, eq=False)
class Listing(Mapping[str, int]):
    """Sizes in bytes by path, sorted by folder and name; a file is also known by its place in that order."""

    folders: tuple[str, ...]  # paths that end in "/", and "" for the top
    first: NDArray[np.int64]  # place of each folder's first file, and the number of files
    names: bytes = field(repr=False)  # one after the other
    ends: NDArray[np.int64]  # where each name ends
    spans: NDArray[np.int64]  # (files, 3): size, start, stored
    ways: NDArray[np.int16]  # (files, 2): source, packing

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[str]:
        for row in self.rows():
            yield self.folders[row.folder] + row.name

    def __getitem__(self, path: str) -> int:
        return self.size(self._place(path))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._find(path) is not None

    def path(self, at: int) -> str:
        """The path of the file at a place."""
        return self.folders[int(self.first.searchsorted(at, "right")) - 1] + self.name(at)

    def name(self, at: int) -> str:
        """The name of the file at a place, without its folder."""
        return _text(self.names[int(self.ends[at - 1]) if at else 0 : int(self.ends[at])])

    def size(self, at: int) -> int:
        """The size in bytes of the file at a place."""
        return int(self.spans[at, 0])

    def entry_at(self, at: int) -> Entry:
        """Where the bytes of the file at a place lie."""
        return Entry(*self.spans[at].tolist(), *self.ways[at].tolist())

    def entry(self, path: str) -> Entry:
        """Where the bytes of a file lie."""
        return self.entry_at(self._place(path))

    def folders_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The folder of the file at each place, by its own place."""
        return self.first.searchsorted(places, "right") - 1

    def rows(self) -> Iterator[Row]:
        """Every file in order, its folder by place: what a folder's path says is worked out once a folder."""
        start = 0
        for folder, (first, last) in enumerate(zip(self.first[:-1].tolist(), self.first[1:].tolist(), strict=True)):
            for at, end in enumerate(self.ends[first:last].tolist(), first):
                yield Row(at, folder, _text(self.names[start:end]))
                start = end

    def some(self, places: Iterable[int]) -> Listing:
        """The files at some places."""
        return listed((self.path(at), self.entry_at(at)) for at in places)

    def _place(self, path: str) -> int:
        found = self._find(path)
        if found is None:
            raise KeyError(path)
        return found

    def _find(self, path: str) -> int | None:
        top, slash, name = path.rpartition("/")
        folder = self._folder_places.get(top + slash)
        if folder is None:
            return None
        within = range(int(self.first[folder]), int(self.first[folder + 1]))
        found = bisect_left(within, name, key=self.name)
        return within[found] if found < len(within) and self.name(within[found]) == name else None

    @cached_property
    def _folder_places(self) -> dict[str, int]:
        return {folder: place for place, folder in enumerate(self.folders)}


def listed(found: Iterable[tuple[str, Entry]]) -> Listing:
    """The listing of files in any order; of two with one path the later counts."""
    places: dict[str, int] = {}
    folder, spans, ways = array("i"), array("q"), array("h")
    names, ends = bytearray(), array("q", [0])
    for path, entry in found:
        top, slash, name = path.rpartition("/")
        folder.append(places.setdefault(top + slash, len(places)))
        names += name.encode("utf-8", "surrogatepass")  # as files are called whose names are no text
        ends.append(len(names))
        spans.extend(entry[:3])
        ways.extend(entry[3:])
    return _sorted(places, np.array(folder, np.int32), names, np.array(ends, np.int64), spans, ways)


def _sorted(
    places: Mapping[str, int],
    folder: NDArray[np.int32],
    names: bytearray,
    ends: NDArray[np.int64],
    *columns: array[int],
) -> Listing:
    """The columns by folder and name; one folder's names at a time are sorted, since all of them would take room."""
    folders = tuple(sorted(places))
    by_folder = folder.argsort(kind="stable")
    bounds = np.concatenate([[0], np.bincount(folder, minlength=len(places)).cumsum()])
    order, first, ordered = array("q"), array("q", [0]), bytearray()
    for name in folders:
        start, stop = bounds[places[name]], bounds[places[name] + 1]
        called = {bytes(names[ends[at] : ends[at + 1]]): at for at in by_folder[start:stop].tolist()}
        for text, at in sorted(called.items()):
            order.append(at)
            ordered += text
        first.append(len(order))
    kept = np.array(order, np.int64)
    spans, ways = np.array(columns[0], np.int64).reshape(-1, 3), np.array(columns[1], np.int16).reshape(-1, 2)
    lengths = np.diff(ends)[kept]
    return Listing(folders, np.array(first, np.int64), bytes(ordered), lengths.cumsum(), spans[kept], ways[kept])


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")
