"""Collections of finished pictures to evaluate: the protocol, and a workspace as a collection."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import LabelSpace, imagenet1k
from counterfoil.store.prediction_tables import read_skipped
from counterfoil.store.workspace import Workspace
from counterfoil.types import EditLevel, Model, Skipped, StoredVariant


class Collection(Protocol):
    """Finished pictures to evaluate: a workspace, a frozen benchmark, a published archive.

    `CollectionBase` has the defaults of its methods.
    """

    @property
    def name(self) -> str:
        """Its name in reports, such as "imagenet-e"."""

    @property
    def digest(self) -> str:
        """Hash over all that may change an answer; a run is not resumed where it differs."""

    @property
    def space(self) -> LabelSpace | None:
        """The label space, with the ids that count as each class; None for the first model's own."""

    @property
    def scoring(self) -> Literal["all", "subset"]:
        """The default scoring: whether columns of no class compete."""

    @property
    def surrogates(self) -> Mapping[str, str]:
        """The models that chose the pictures, with the digests of their weights; their own results are biased."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for every report on it, such as that the pictures are training pictures."""

    @property
    def references(self) -> Mapping[EditLevel, EditLevel]:
        """What kinds of pictures are compared with, where that is not the original; by default none."""

    @property
    def pictures(self) -> Sequence[StoredVariant]:
        """Every picture in a fixed order; within a sample the original first, where there is one."""

    @property
    def skipped(self) -> Sequence[Skipped]:
        """What was skipped, and why."""

    @property
    def is_frozen(self) -> bool:
        """Whether its digest stands for every picture: one that cannot be read ends an evaluation; by default not."""

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        """The pixels, (height, width, 3), RGB; safe for threads and forked processes.

        Raises `Unusable` where that fails, or where the pixels do not have the recorded hash.
        """

    def adapt(self, model: Model) -> Model:
        """The model adapted to this collection; by default the model itself."""


class CollectionBase:
    """Defaults of a `Collection`."""

    @cached_property
    def references(self) -> Mapping[EditLevel, EditLevel]:
        """None: every kind is compared as this program's edit of its name is."""
        return {}

    @property
    def is_frozen(self) -> bool:
        """No: a picture that cannot be read is skipped with its reason."""
        return False

    def adapt(self, model: Model) -> Model:
        """The model, unchanged."""
        return model


@dataclass(frozen=True, eq=False)
class LabelledPictures(Sequence[StoredVariant]):
    """Some pictures of a collection; each record is made on access, since a collection may hold millions."""

    pictures: Sequence[StoredVariant]
    positions: Sequence[int]
    label_of: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, which: int) -> StoredVariant: ...
    @overload
    def __getitem__(self, which: slice) -> LabelledPictures: ...
    def __getitem__(self, which: int | slice) -> StoredVariant | LabelledPictures:
        if isinstance(which, slice):
            return LabelledPictures(self.pictures, self.positions[which], self.label_of)
        return self._relabel(self.pictures[self.positions[which]])

    def __iter__(self) -> Iterator[StoredVariant]:
        if isinstance(self.positions, range):  # a contiguous part of the collection, which is iterated faster
            return map(self._relabel, self.pictures[self.positions.start : self.positions.stop : self.positions.step])
        return (self._relabel(self.pictures[position]) for position in self.positions)

    def _relabel(self, stored: StoredVariant) -> StoredVariant:
        variant, label = stored.variant, self.label_of[stored.variant.label]
        named = stored if variant.label == label else replace(stored, variant=replace(variant, label=label))
        return ensure_sample(named)

    @cached_property
    def by_id(self) -> PicturesById:
        """The pictures by the ids of their variants."""
        return PicturesById(self)


@dataclass(frozen=True, eq=False)
class PicturesById:
    """Pictures looked up by the ids of their variants, in eight bytes each."""

    pictures: Sequence[StoredVariant]

    @cached_property
    def _hashes(self) -> NDArray[np.int64]:
        return np.fromiter((hash(stored.variant.id) for stored in self.pictures), np.int64, len(self.pictures))

    def __contains__(self, variant_id: str) -> bool:
        return any(True for _ in self._find(variant_id))

    def __getitem__(self, variant_id: str) -> StoredVariant:
        for stored in self._find(variant_id):
            return stored
        raise KeyError(variant_id)

    def _find(self, variant_id: str) -> Iterator[StoredVariant]:
        positions = np.flatnonzero(self._hashes == hash(variant_id))
        alike = (self.pictures[int(position)] for position in positions)
        return (stored for stored in alike if stored.variant.id == variant_id)


def ensure_sample(stored: StoredVariant) -> StoredVariant:
    """The picture; one without a sample becomes a sample of its own."""
    variant = stored.variant
    return stored if variant.sample_id else replace(stored, variant=replace(variant, sample_id=variant.id))


@dataclass(frozen=True)
class WorkspaceCollection(CollectionBase):
    """Every picture of a workspace; the models that chose among them are known after mining."""

    workspace: Workspace
    scoring: Literal["all", "subset"] = "all"

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.workspace.folder.resolve().name

    @property
    def digest(self) -> str:
        """Hash over every picture's id and pixels."""
        return self.workspace.digest

    @cached_property
    def space(self) -> LabelSpace | None:
        """The classes it was painted for, else ImageNet's where it has every label, else None."""
        painted_for = self.workspace.record.get("classes")
        if painted_for:
            return load_label_space(str(painted_for))
        known = imagenet1k()
        return known if all(stored.variant.label in known for stored in self.pictures) else None

    @property
    def surrogates(self) -> Mapping[str, str]:
        """The models used by mining, with the digests of their weights."""
        mined = self.workspace.mined
        return {} if mined is None else mined.surrogates

    @property
    def notes(self) -> Sequence[str]:
        """A note that all pictures are evaluated, where mining kept only some."""
        mined = self.workspace.mined
        if mined is None:
            return ()
        return (f"Mining kept {len(mined.kept)} of the {len(self.pictures)} pictures; all of them are shown here.",)

    @property
    def pictures(self) -> Sequence[StoredVariant]:
        """Every picture in the order of the manifest."""
        return self.workspace.pictures

    @cached_property
    def skipped(self) -> Sequence[Skipped]:
        """The pictures that could not be made."""
        return tuple(read_skipped(self.workspace.folder))

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        """The pixels, checked against the hash in the manifest; raises `Unusable`."""
        image = self.workspace.read(stored)
        if stored.sha256 and hashlib.sha256(image.tobytes()).hexdigest() != stored.sha256:
            raise Unusable(f"{stored.file} has other pixels than the manifest says: it was changed since it was made")
        return image
