"""A published archive as a collection: its pictures in a fixed order, read one by one from where they lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.labels import LabelSpace
from counterfoil.published.pixels import pixels
from counterfoil.published.tree import Tree
from counterfoil.types import Attribute, Exhibit, Skipped, Variant


class Kind(NamedTuple):
    """What was done to the pictures of one folder: one row of the table of drops."""

    attribute: Attribute
    edit: str
    level: str


ORIGINAL = Kind("original", "original", "none")


@dataclass(frozen=True)
class Archive:
    """A published benchmark, read where it lies."""

    name: str
    tree: Tree = field(repr=False)
    exhibits: tuple[Exhibit, ...] = field(repr=False)
    space: LabelSpace | None = None
    scoring: Literal["all", "subset"] = "all"
    skipped: tuple[Skipped, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    surrogates: Mapping[str, str] = field(default_factory=dict)
    border: int = 0  # pixels cropped from every side
    distractors: Mapping[str, str] = field(default_factory=dict, repr=False)  # wrong answers to offer, by sample

    @cached_property
    def digest(self) -> str:
        """Hash over every picture's path, size in bytes and label.

        The bytes themselves are not hashed: that would read gigabytes at every start. A run hashes the pixels of
        every picture that it shows, so a picture that was changed to the same size is found out there.
        """
        sizes = self.tree.sizes
        rows = [(item.file, sizes.get(item.file, 0), item.variant.label, item.variant.id) for item in self.exhibits]
        about = [self.name, self.border, sorted(self.distractors.items()), sorted(rows)]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

    def read(self, exhibit: Exhibit) -> NDArray[np.uint8]:
        """The pixels of one picture, (height, width, 3), RGB; raises `Unusable` where that fails."""
        image = pixels(self.tree.read(exhibit.file))
        if not self.border:
            return image
        if min(image.shape[:2]) <= 2 * self.border:
            raise Unusable(f"the picture is not larger than its border of {self.border} pixels")
        return np.ascontiguousarray(image[self.border : -self.border, self.border : -self.border])


class Found(NamedTuple):
    """One picture of an archive."""

    file: str
    sample: str  # what joins the pictures of one object
    label: str
    kind: Kind
    replicate: int = 0


def once(found: Iterable[Found]) -> tuple[list[Found], list[Skipped]]:
    """The pictures, and second ones of the same object and kind, such as a.png beside a.JPEG: an object counts once."""
    kept: list[Found] = []
    twice: list[Skipped] = []
    for item in _in_order(found):
        if kept and item[1:] == kept[-1][1:]:
            twice.append(Skipped(item.file, "source", item.kind.edit, f"the same object and kind as {kept[-1].file}"))
        else:
            kept.append(item)
    return kept, twice


def _in_order(found: Iterable[Found]) -> Sequence[Found]:
    return sorted(found, key=lambda item: (item.sample, item.kind != ORIGINAL, item.kind, item.replicate, item.file))


def exhibits_of(name: str, found: Iterable[Found]) -> tuple[Exhibit, ...]:
    """The pictures in a fixed order: by sample, its original first, then by kind."""
    ordered = _in_order(found)
    settings = json.dumps({"archive": name})
    digests: dict[str, str] = {}  # archives of millions of pictures share what they can
    for sample in {item.sample for item in ordered}:
        digests[sample] = hashlib.sha256(f"{name}\n{sample}".encode()).hexdigest()
    return tuple(Exhibit(_variant(name, item, settings), item.file, "", digests[item.sample]) for item in ordered)


def _variant(name: str, item: Found, settings: str) -> Variant:
    about = "\n".join((name, item.sample, *item.kind, str(item.replicate)))
    key = hashlib.sha256(about.encode()).digest()
    seed = int.from_bytes(key[8:16], "big")
    return Variant(key.hex()[:16], item.sample, item.label, *item.kind, settings, seed, replicate=item.replicate)
