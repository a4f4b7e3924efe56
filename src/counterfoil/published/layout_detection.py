"""Match the files of an archive to a layout by folder and name; the others are counted as strays."""

from __future__ import annotations

import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.published.file_tree import Tree
from counterfoil.sources.archive_index import FileIndex
from counterfoil.types import Skipped

PICTURE = r"[^/.][^/]*\.(?i:jpe?g|png|webp|bmp)"  # a file name; excludes hidden files such as ._x.JPEG


class MatchedFile(NamedTuple):
    """A file that matches the layout: its place in the tree's listing, and the parts of its path."""

    at: int
    file: str
    parts: Mapping[str, str]  # of its folder's path
    name: str


@dataclass(frozen=True)
class MatchedFiles:
    """Files of one layout in the order of their paths; created on access, since there may be millions."""

    listing: FileIndex
    at: NDArray[np.int64]
    parts_of: Mapping[int, Mapping[str, str]]  # the parts of each folder's path

    def __len__(self) -> int:
        return len(self.at)

    def __iter__(self) -> Iterator[MatchedFile]:
        for at, folder in zip(self.at.tolist(), self.listing.folders_of(self.at).tolist(), strict=True):
            name = self.listing.name(at)
            yield MatchedFile(at, self.listing.folders[folder] + name, self.parts_of[folder], name)

    def where(self, fits: Callable[[Mapping[str, str]], bool]) -> MatchedFiles:
        """The files whose folder has these parts."""
        folders = [folder for folder, parts in self.parts_of.items() if fits(parts)]
        return MatchedFiles(self.listing, self.at[np.isin(self.listing.folders_of(self.at), folders)], self.parts_of)

    def files(self) -> Iterator[str]:
        """Their paths."""
        return (place.file for place in self)

    def folders(self, *parts: str) -> Counter[tuple[str, ...]]:
        """Number of files by the values of some parts of the folder's path."""
        counts: Counter[tuple[str, ...]] = Counter()
        codes, times = np.unique(self.listing.folders_of(self.at), return_counts=True)
        for folder, many in zip(codes.tolist(), times.tolist(), strict=True):
            counts[tuple(self.parts_of[folder][part] for part in parts)] += many
        return counts


@dataclass(frozen=True)
class LayoutFiles:
    """The files of one layout, and the other files."""

    places: MatchedFiles
    strays: tuple[str, ...]
    root: str = ""

    def folders(self, part: str) -> Counter[str]:
        """Number of files by the value of one part of the path."""
        return Counter({values[0]: many for values, many in self.places.folders(part).items()})


def match_layout(
    tree: Tree, folders: str, names: str = PICTURE, *, beside: str = "", any_root: bool = False
) -> LayoutFiles:
    """Return the files whose name and folder, below the archive's top folder, match the two patterns.

    Archives are unpacked into folders of any name, so the top folder is the one that most matching files share;
    files that match elsewhere (`__MACOSX/...`) are strays. `beside` matches files that belong to the archive but are
    not pictures to show; with `any_root` files may lie under several top folders.
    """
    matching = _match_files(tree.sizes, folders, names)
    roots = Counter({key[0]: many for key, many in matching.folders("root").items()})
    root = min(roots, key=lambda name: (-roots[name], name.count("/"), name), default="")
    places = matching if any_root else matching.where(lambda parts: parts["root"] == root)
    return LayoutFiles(places, tuple(_list_strays(places, rf"{re.escape(root)}(?:{beside})" if beside else None)), root)


def _match_files(listing: FileIndex, folders: str, names: str) -> MatchedFiles:
    layout, named = re.compile(rf"(?P<root>(?:.*/)?)(?:{folders})"), re.compile(names)
    parts_of = {
        place: {name: sys.intern(text) for name, text in match.groupdict("").items()}
        for place, folder in enumerate(listing.folders)
        if (match := layout.fullmatch(folder)) and _readable(folder) == folder
    }
    at = array("q")
    for row in listing.rows():
        if row.folder in parts_of and named.fullmatch(row.name) and _readable(row.name) == row.name:
            at.append(row.at)
    return MatchedFiles(listing, np.array(at, np.int64), parts_of)


def _list_strays(places: MatchedFiles, known: str | None) -> Iterator[str]:
    used = np.zeros(len(places.listing), bool)
    used[places.at] = True
    for at in np.flatnonzero(~used).tolist():
        path = places.listing.path(at)
        if known is None or not re.fullmatch(known, path):
            yield path


def _readable(path: str) -> str:
    """The path as valid UTF-8; names in other encodings cannot be written to a table."""
    return path if path.isascii() else path.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class FolderSample:
    """A few files of every folder of a tree, enough to recognise the archive."""

    tree: Tree
    most: int = 20_000
    of_a_folder: int = 20

    @property
    def where(self) -> Path:
        """The path that the user gave."""
        return self.tree.where

    @cached_property
    def sizes(self) -> FileIndex:
        """Sizes of some files by path: the first of each folder, thinned out where there are too many."""
        first = self.tree.sizes.first.tolist()
        places = [at for start, stop in pairwise(first) for at in range(start, min(stop, start + self.of_a_folder))]
        return self.tree.sizes.some(places[:: -(-len(places) // self.most) or 1])

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        return self.tree.read(path)


def skip_strays(name: str, strays: Collection[str]) -> list[Skipped]:
    """Return strays as counted rows: one each where a folder has few, else one row per folder."""
    by_folder: defaultdict[str, list[str]] = defaultdict(list)
    for path in map(_readable, strays):
        by_folder[str(PurePosixPath(path).parent)].append(path)
    rows: list[Skipped] = []
    for folder, paths in sorted(by_folder.items()):
        if len(paths) <= 5:
            rows += [Skipped(path, "source", "", f"the file is no part of {name}") for path in paths]
        else:
            reason = f"{len(paths):,} files that are no part of {name}, such as {PurePosixPath(paths[0]).name}"
            rows.append(Skipped(f"{folder}/", "source", "", reason))
    return rows


def require_pictures(places: MatchedFiles, name: str, expected: str, tree: Tree) -> None:
    """Raise `UserError` where no picture matches the archive's layout."""
    if not places:
        raise UserError(
            f"expected {name} with {expected} at '{tree.where}', found {_describe_tree(tree)}; check the path"
        )


def _describe_tree(tree: Tree) -> str:
    """Describe the files that are there instead."""
    tops = Counter(path.split("/")[0] + ("/" if "/" in path else "") for path in tree.sizes)
    if not tops:
        return "no file at all"
    names = [f"'{name}'" for name, _ in tops.most_common(4)]
    more = f" and {len(tops) - 4} more" if len(tops) > 4 else ""
    return f"{len(tree.sizes):,} files in {', '.join(names)}{more}"


def note_unresized(side: int) -> str:
    """Return the note for pictures that the authors' script shows without resizing."""
    return (
        f"The authors show these pictures of {side} x {side} pixels without resizing them; a model whose preprocessing"
        " resizes first and then crops sees their middle enlarged, and its numbers are not quite those of the papers."
    )


def read_text(tree: Tree, path: str) -> str:
    """Read a required text file of an archive."""
    try:
        return tree.read(path).decode("utf-8-sig")
    except (Unusable, UnicodeDecodeError) as error:
        raise UserError(f"expected text in UTF-8 in {path} at '{tree.where}', which cannot be read: {error}") from error


def note_partial(what: str, there: int, whole: int) -> list[str]:
    """Return a note where a copy is incomplete."""
    if there == whole:
        return []
    word = "a partial copy" if there < whole else "more than were published"
    return [f"The archive holds {there:,} of {whole:,} {what}: {word}."]
