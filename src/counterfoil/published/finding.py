"""Which files of a tree belong to an archive's layout, and which lie there by chance."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from counterfoil.errors import Unusable, UserError
from counterfoil.published.tree import Tree
from counterfoil.types import Skipped

PICTURE = r"[^/.][^/]*\.(?i:jpe?g|png|webp|bmp)"  # a file's name; hidden files such as ._x.JPEG are none


class Place(NamedTuple):
    """A file that fits the layout: its path, and what the parts of the path say."""

    file: str
    parts: dict[str, str]


@dataclass(frozen=True)
class Findings:
    """The files of one layout, and the others."""

    places: tuple[Place, ...]
    strays: tuple[str, ...]
    root: str = ""

    def folders(self, part: str) -> Counter[str]:
        """How many files have each value of one part of the path."""
        return Counter(place.parts[part] for place in self.places)


def find(tree: Tree, pattern: str, *, beside: str = "", any_root: bool = False) -> Findings:
    """The files whose path below the archive's own top folder matches the pattern.

    Archives are unpacked into folders of any name, so the top folder is the one that most matching files share;
    files that match elsewhere (`__MACOSX/...`) are strays. `beside` matches what belongs to the archive but is no
    picture to show; with `any_root` files may lie under several top folders.
    """
    layout = re.compile(rf"(?P<root>(?:.*/)?)(?:{pattern})")
    names = [name for name in layout.groupindex if name != "root"]
    matches = {path: match for path in tree.sizes if (match := layout.fullmatch(path)) and _readable(path) == path}
    roots = Counter(match["root"] for match in matches.values())
    root = min(roots, key=lambda name: (-roots[name], name.count("/"), name), default="")
    known = re.compile(rf"{re.escape(root)}(?:{beside})") if beside else None
    places = [
        Place(path, {name: sys.intern(match[name]) for name in names})  # interned: millions of files, few names
        for path, match in matches.items()
        if any_root or match["root"] == root
    ]
    used = {place.file for place in places}
    strays = [path for path in tree.sizes if path not in used and not (known and known.fullmatch(path))]
    return Findings(tuple(places), tuple(strays), root)


def _readable(path: str) -> str:
    """The path as UTF-8 has it; a name in other bytes can stand in no table."""
    return path if path.isascii() else path.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class Glimpse:
    """A few files of every folder of a tree, spread over all of them: enough to see which archive it is."""

    tree: Tree
    most: int = 20_000
    of_a_folder: int = 20

    @property
    def where(self) -> Path:
        """What the user named."""
        return self.tree.where

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Some files' sizes by path; small folders are there as a whole, unless folders themselves are too many."""
        seen: Counter[str] = Counter()
        paths = []
        for path in self.tree.sizes:
            folder = path.rpartition("/")[0]
            seen[folder] += 1
            if seen[folder] <= self.of_a_folder:
                paths.append(path)
        return {path: self.tree.sizes[path] for path in paths[:: -(-len(paths) // self.most) or 1]}

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        return self.tree.read(path)


def stray_rows(name: str, strays: Collection[str]) -> list[Skipped]:
    """Strays as counted rows: one by one where few lie together, else a row per folder."""
    by_folder: defaultdict[str, list[str]] = defaultdict(list)
    for path in map(_readable, strays):
        by_folder[str(PurePosixPath(path).parent)].append(path)
    rows: list[Skipped] = []
    for folder, paths in sorted(by_folder.items()):
        if len(paths) <= 5:
            rows += [Skipped(path, "source", "", f"the file is no part of {name}") for path in paths]
        else:
            told = f"{len(paths):,} files that are no part of {name}, such as {PurePosixPath(paths[0]).name}"
            rows.append(Skipped(f"{folder}/", "source", "", told))
    return rows


def refuse_none(places: Sequence[Place], name: str, expected: str, tree: Tree) -> None:
    """An archive without a single picture where they should be is not this archive."""
    if not places:
        raise UserError(f"expected {name} with {expected} at '{tree.where}', found {_told(tree)}; check the path")


def _told(tree: Tree) -> str:
    """What lies there instead."""
    tops = Counter(path.split("/")[0] + ("/" if "/" in path else "") for path in tree.sizes)
    if not tops:
        return "no file at all"
    names = [f"'{name}'" for name, _ in tops.most_common(4)]
    more = f" and {len(tops) - 4} more" if len(tops) > 4 else ""
    return f"{len(tree.sizes):,} files in {', '.join(names)}{more}"


def text_of(tree: Tree, path: str) -> str:
    """A text file that an archive cannot be read without."""
    try:
        return tree.read(path).decode("utf-8-sig")
    except (Unusable, UnicodeDecodeError) as error:
        raise UserError(f"expected text in UTF-8 in {path} at '{tree.where}', which cannot be read: {error}") from error


def partial_note(what: str, there: int, whole: int) -> list[str]:
    """A sentence where a copy is not whole."""
    if there == whole:
        return []
    word = "a partial copy" if there < whole else "more than were published"
    return [f"The archive holds {there:,} of {whole:,} {what}: {word}."]
