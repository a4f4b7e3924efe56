"""A published archive as a collection: its pictures are kept in columns and read in place."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.labels.label_space import LabelSpace
from counterfoil.published.file_tree import Tree
from counterfoil.sources.pixels import decode_archive_picture
from counterfoil.store.picture_collection import CollectionBase
from counterfoil.types import Attribute, EditLevel, Model, Skipped, StoredVariant, Variant

_T = TypeVar("_T")
_AT_ONCE = 1 << 14  # pictures whose columns are converted to Python numbers together


class ArchiveCondition(NamedTuple):
    """The condition of the pictures of one folder: one row of the table of drops."""

    attribute: Attribute
    edit: str
    level: str

    @property
    def place(self) -> EditLevel:
        """Edit and level, as other kinds name it for a reference."""
        return EditLevel(self.edit, self.level)


ORIGINAL = ArchiveCondition("original", "original", "none")


class ArchivePicture(NamedTuple):
    """One picture of an archive."""

    at: int  # place of its file in the order of the archive's files
    sample: str  # joins the pictures of one object
    label: str
    kind: ArchiveCondition
    replicate: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class ArchivePictures(Sequence[StoredVariant]):
    """The pictures in a fixed order: by sample, its original first, then by kind."""

    name: str  # of the archive
    file_at: Callable[[int], str]  # the path of a file by its place
    samples: tuple[str, ...]
    labels: tuple[str, ...]
    kinds: tuple[ArchiveCondition, ...]
    rows: NDArray[np.int32]  # (pictures, 5): places of file, sample, label and kind, and the replicate

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, which: int) -> StoredVariant: ...
    @overload
    def __getitem__(self, which: slice) -> ArchivePictures: ...
    def __getitem__(self, which: int | slice) -> StoredVariant | ArchivePictures:
        if isinstance(which, slice):
            return replace(self, rows=self.rows[which])
        return next(iter(replace(self, rows=self.rows[which][None])))

    def __iter__(self) -> Iterator[StoredVariant]:
        settings = json.dumps({"archive": self.name})
        current, digest, about = -1, "", hashlib.sha256()
        for file, sample, label, kind, replicate in self._cells():
            if sample != current:  # pictures of one sample stand together
                current, about = sample, hashlib.sha256(f"{self.name}\n{self.samples[sample]}".encode())
                digest = about.hexdigest()
            key = about.copy()
            key.update("\n".join(("", *self.kinds[kind], str(replicate))).encode())
            variant_digest = key.digest()
            variant = Variant(
                variant_digest.hex()[:16], self.samples[sample], self.labels[label], *self.kinds[kind], settings,
                int.from_bytes(variant_digest[8:16], "big"), replicate=replicate,
            )  # fmt: skip
            yield StoredVariant(variant, self.file_at(file), "", digest)

    def _cells(self) -> Iterator[list[int]]:
        for start in range(0, len(self.rows), _AT_ONCE):
            yield from self.rows[start : start + _AT_ONCE].tolist()

    def by_file(self) -> Iterator[tuple[int, str, str]]:
        """Yield the place of its file, the label and the id of each picture, in the order of the files."""
        ids = np.fromiter((stored.variant.id for stored in self), "S16", len(self))
        order = self.rows[:, 0].argsort(kind="stable")
        for start in range(0, len(order), _AT_ONCE):
            rows = order[start : start + _AT_ONCE]
            for (file, _, label, *_), name in zip(self.rows[rows].tolist(), ids[rows].tolist(), strict=True):
                yield file, self.labels[label], name.decode()


def collect_pictures(name: str, file_at: Callable[[int], str], pictures: Iterable[ArchivePicture]) -> ArchivePictures:
    """Return the pictures that a reader found, in order."""
    samples: dict[str, int] = {}
    labels: dict[str, int] = {}
    kinds: dict[ArchiveCondition, int] = {}
    cells = array("i")
    for at, sample, label, kind, replicate in pictures:
        cells.append(at)
        cells.append(samples.setdefault(sample, len(samples)))
        cells.append(labels.setdefault(label, len(labels)))
        cells.append(kinds.setdefault(kind, len(kinds)))
        cells.append(replicate)
    rows = np.array(cells, np.int32).reshape(-1, len(ArchivePicture._fields))
    by_sample = _rank_places(samples, sorted(samples))[rows[:, 1]]
    by_kind = _rank_places(kinds, sorted(kinds, key=lambda kind: (kind != ORIGINAL, kind)))[rows[:, 3]]
    order = np.lexsort((rows[:, 0], rows[:, 4], by_kind, by_sample))
    return ArchivePictures(name, file_at, tuple(samples), tuple(labels), tuple(kinds), rows[order])


def _rank_places(places: Mapping[_T, int], in_order: Sequence[_T]) -> NDArray[np.int32]:
    """The rank of the value at each place."""
    ranks = np.empty(len(places), np.int32)
    ranks[[places[item] for item in in_order]] = np.arange(len(places), dtype=np.int32)
    return ranks


def drop_duplicates(pictures: ArchivePictures) -> tuple[ArchivePictures, list[Skipped]]:
    """Return the pictures without further ones of the same object and kind (a.png beside a.JPEG), and those skipped."""
    rows = pictures.rows
    again = np.zeros(len(rows), bool)
    again[1:] = (rows[1:, 1:] == rows[:-1, 1:]).all(axis=1)
    first = np.maximum.accumulate(np.where(again, 0, np.arange(len(rows))))
    twice = [
        Skipped(second.file, "source", second.variant.edit, f"the same object and kind as {pictures[kept].file}")
        for row, kept in ((int(row), int(first[row])) for row in np.flatnonzero(again))
        for second in (pictures[row],)
    ]
    return replace(pictures, rows=rows[~again]), twice


@dataclass(frozen=True, kw_only=True)
class Archive(CollectionBase):
    """A published benchmark, read in place."""

    name: str
    tree: Tree = field(repr=False)
    pictures: ArchivePictures = field(repr=False)
    space: LabelSpace | None = None
    scoring: Literal["all", "subset"] = "all"
    skipped: tuple[Skipped, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    surrogates: Mapping[str, str] = field(default_factory=dict)
    border: int = 0  # pixels cropped from every side
    distractors: Mapping[str, str] = field(default_factory=dict, repr=False)  # wrong answers to offer, by sample
    references: Mapping[EditLevel, EditLevel] = field(default_factory=dict)  # kinds by name

    @cached_property
    def digest(self) -> str:
        """Hash over every picture's path, size in bytes and label.

        The bytes themselves are not hashed: that would read gigabytes at every start. A run hashes the pixels of every
        picture that it shows, which detects a picture that changed but kept its size.
        """
        about = json.dumps([self.name, self.border, sorted(self.distractors.items()), []])
        hashed = hashlib.sha256(about.removesuffix("]]").encode())
        for number, (at, label, name) in enumerate(self.pictures.by_file()):
            row = (self.pictures.file_at(at), self.size(at), label, name)
            hashed.update(f"{', ' if number else ''}{json.dumps(row)}".encode())
        hashed.update(b"]]")
        return hashed.hexdigest()

    def size(self, at: int) -> int:
        """Size in bytes of the file at a place."""
        return self.tree.sizes.size(at)

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        """The pixels of one picture, (height, width, 3), RGB; raises `Unusable` where that fails."""
        image = decode_archive_picture(self.tree.read(stored.file))
        if not self.border:
            return image
        if min(image.shape[:2]) <= 2 * self.border:
            raise Unusable(f"the picture is not larger than its border of {self.border} pixels")
        return np.ascontiguousarray(image[self.border : -self.border, self.border : -self.border])

    def adapt(self, model: Model) -> Model:
        """Return the model, with the wrong answers that the archive ships as choices."""
        return model.offering(self.distractors)
