"""Published benchmarks, read from their archives as they were released, without unpacking where they are one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from counterfoil.errors import UserError, did_you_mean
from counterfoil.published import (
    challenge,
    imagenet_9,
    imagenet_c,
    imagenet_d,
    imagenet_e,
    imagenet_v2,
    imagenet_val,
    objectnet,
    ximagenet_12,
)
from counterfoil.published.archive import Archive
from counterfoil.published.class_folders import IMAGENET_A, IMAGENET_R, IMAGENET_SKETCH
from counterfoil.published.exhibits import Kind
from counterfoil.published.finding import Glimpse
from counterfoil.published.tree import Tree, open_tree

__all__ = ["ARCHIVES", "Archive", "Kind", "Reader", "open_archive", "possible", "recognise"]


class Reader(NamedTuple):
    """How one archive is recognised and read."""

    expected: str  # what it looks for, in words
    fits: Callable[[Tree], bool]
    read: Callable[[Tree], Archive]


ARCHIVES: dict[str, Reader] = {  # in the order in which they are recognised: the more telling layouts first
    imagenet_e.NAME: Reader(imagenet_e.EXPECTED, imagenet_e.fits, imagenet_e.read),
    imagenet_d.NAME: Reader(imagenet_d.EXPECTED, imagenet_d.fits, imagenet_d.read),
    ximagenet_12.NAME: Reader(ximagenet_12.EXPECTED, ximagenet_12.fits, ximagenet_12.read),
    imagenet_9.NAME: Reader(imagenet_9.EXPECTED, imagenet_9.fits, imagenet_9.read),
    challenge.NAME: Reader(challenge.EXPECTED, challenge.fits, challenge.read),
    challenge.NAME_EVERY: Reader(challenge.EXPECTED, challenge.fits, challenge.read_every),
    imagenet_c.NAME: Reader(imagenet_c.EXPECTED, imagenet_c.fits, imagenet_c.read),
    IMAGENET_SKETCH.name: Reader(IMAGENET_SKETCH.expected, IMAGENET_SKETCH.fits, IMAGENET_SKETCH.read),
    IMAGENET_A.name: Reader(IMAGENET_A.expected, IMAGENET_A.fits, IMAGENET_A.read),
    IMAGENET_R.name: Reader(IMAGENET_R.expected, IMAGENET_R.fits, IMAGENET_R.read),
    imagenet_v2.NAME: Reader(imagenet_v2.EXPECTED, imagenet_v2.fits, imagenet_v2.read),
    objectnet.NAME: Reader(objectnet.EXPECTED, objectnet.fits, objectnet.read),
    imagenet_val.NAME: Reader(imagenet_val.EXPECTED, imagenet_val.fits, imagenet_val.read),
}
_SAME_FILES = dict.fromkeys((challenge.NAME, challenge.NAME_EVERY), (imagenet_9.NAME, challenge.NAME))


def open_archive(name: str, path: Path) -> Archive:
    """The archive of this name at a path: a folder, a tar or a zip; another benchmark's is named and refused."""
    reader = _reader(name)
    tree = open_tree(path)
    other = _recognised(Glimpse(tree))
    if other is not None and other not in (name, *_SAME_FILES.get(name, ())):
        raise UserError(f"expected {name} with {reader.expected}, but '{path}' looks like {other}; say {other}:{path}")
    return reader.read(tree)


def recognise(path: Path) -> str | None:
    """The name of the archive at a path; None where it is none that is known."""
    return _recognised(Glimpse(open_tree(path)))


def possible(path: Path) -> list[str]:
    """Archives that class folders at a path may be of, where the names of the files do not tell which."""
    tree = Glimpse(open_tree(path))
    names = [folders.name for folders in (IMAGENET_A, IMAGENET_R, IMAGENET_SKETCH) if folders.may_fit(tree)]
    return [*names, imagenet_val.NAME] if IMAGENET_SKETCH.name in names else names


def _recognised(tree: Tree) -> str | None:
    return next((name for name, reader in ARCHIVES.items() if reader.fits(tree)), None)


def _reader(name: str) -> Reader:
    if name not in ARCHIVES:
        raise UserError(f"expected one of {', '.join(ARCHIVES)}, got '{name}'{did_you_mean(name, ARCHIVES)}")
    return ARCHIVES[name]
