"""Finished pictures to fit on beside the photos' copies: what mining and people kept of a workspace, or a benchmark.

A picture may have been made of a photo that is judged, or of one that looks like it, or on its background. Each picture
therefore knows the parts that its photos are in, and is fitted on only where all of these are being fitted on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection as AnyOf
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmark.picture_selection import BenchmarkSelection
from counterfoil.builder import encode_png
from counterfoil.errors import Unusable, UserError
from counterfoil.generation.near_duplicates import count_differing_bits, hash_perceptually
from counterfoil.labels.label_space import LabelSpace
from counterfoil.progress import Extent, show_progress
from counterfoil.published.catalogue import open_collection
from counterfoil.remedies.photo_parts import MOST_BITS, HashedPhoto, PhotoParts
from counterfoil.statistics.answers import Condition
from counterfoil.store.files import write_atomically
from counterfoil.store.picture_collection import Collection, WorkspaceCollection
from counterfoil.types import Picture, StoredVariant

_ORIGINAL = "original"


class MinedPicture(NamedTuple):
    """A picture to fit on."""

    name: str  # of its variant
    label: str
    condition: Condition
    file: Path
    parts: frozenset[int]  # of the photos that it was made of, or that look like them


@dataclass(frozen=True, kw_only=True)
class MinedPictures:
    """The pictures of a collection that a repair may fit on."""

    address: str = ""
    digest: str = ""
    pictures: tuple[MinedPicture, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)  # by reason

    def usable(self, parts: AnyOf[int]) -> list[MinedPicture]:
        """Those whose photos are all in these parts, or in none."""
        return [picture for picture in self.pictures if picture.parts <= set(parts)]

    def of_part(self, part: int) -> list[MinedPicture]:
        """Those of photos of this part alone: to choose on, since no fit without the part has used them."""
        return [picture for picture in self.pictures if picture.parts == {part}]

    def record(self) -> dict[str, object]:
        """What repair.json says of them."""
        tied = sum(bool(picture.parts) for picture in self.pictures)
        return {"address": self.address, "digest": self.digest, "pictures": len(self.pictures),
                "of_judged_photos": tied, "left_out": dict(self.left_out)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MinedReader:
    """Reads a collection, and finds the parts that each picture belongs to."""

    address: str
    parts: PhotoParts
    hashed: Mapping[str, HashedPhoto]
    space: LabelSpace
    folder: Path  # into which the pictures are written

    def read(self) -> MinedPictures:
        """The pictures of the photos' classes; raises `UserError` where there is none."""
        classes, kept, left_out = set(self.parts.labels), [], Counter(self._unkept)
        for stored in show_progress(self._tested, Extent(stage="reading pictures to fit on", unit="pictures",
                                                         total=len(self._tested))):  # fmt: skip
            label = self._resolve(stored.variant.label)
            if label is None or label not in classes:
                left_out["of another class"] += 1
                continue
            try:
                kept.append(self._keep(stored, label))
            except Unusable:
                left_out["cannot be read"] += 1
        if not kept:
            reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it holds none"
            raise UserError(f"expected pictures of the photos' classes in '{self.address}', found none: {reasons}")
        return MinedPictures(address=self.address, digest=self._collection.digest, pictures=tuple(kept),
                             left_out=dict(left_out))  # fmt: skip

    @cached_property
    def _collection(self) -> Collection:
        return open_collection(self.address)

    @cached_property
    def _selected(self) -> tuple[Sequence[StoredVariant], Mapping[str, int]]:
        """What mining and people kept of a workspace; of another collection every picture."""
        collection = self._collection
        if isinstance(collection, WorkspaceCollection):
            kept, left_out = BenchmarkSelection(collection.workspace, originals=False).kept()
            return kept, {reason: count for reason, count in left_out.items() if count}
        return list(collection.pictures), {}

    @property
    def _unkept(self) -> Mapping[str, int]:
        return self._selected[1]

    @cached_property
    def _tested(self) -> list[StoredVariant]:
        """The edited pictures: originals teach nothing that the photos do not."""
        return [stored for stored in self._selected[0] if stored.variant.attribute != _ORIGINAL]

    def _resolve(self, label: str) -> str | None:
        try:
            return self.space.resolve(label)
        except UserError:
            return None

    def _keep(self, stored: StoredVariant, label: str) -> MinedPicture:
        image = self._collection.read(stored)
        variant = stored.variant
        path = self.folder / f"{variant.id}.png"
        if not path.is_file():
            write_atomically(path, encode_png(Picture(image, np.zeros((1, 1), np.uint8))))
        owners = [name for name in (variant.sample_id, variant.donor_id) if name is not None]
        parts = {part for name in owners for part in self._parts_of_photo(name)} | set(self._parts_alike(image))
        return MinedPicture(variant.id, label, Condition(variant.attribute, variant.edit, variant.level), path,
                            frozenset(parts))  # fmt: skip

    def _parts_of_photo(self, name: str) -> set[int]:
        """The parts of a photo of the collection: by its digest, or by how its original looks."""
        known = self._origins.get(name)
        if known is None:
            return set()
        digest, original = known
        parts = {part for part, samples in enumerate(self.parts.parts) for one in samples if one.digest == digest}
        return parts or (set(self._parts_alike(self._collection.read(original))) if original is not None else set())

    @cached_property
    def _origins(self) -> dict[str, tuple[str, StoredVariant | None]]:
        """For each photo of the collection its digest, and its original where there is one."""
        origins: dict[str, tuple[str, StoredVariant | None]] = {}
        for stored in self._collection.pictures:
            name = stored.variant.sample_id
            if name is None:
                continue
            known = origins.get(name, ("", None))
            original = stored if stored.variant.attribute == _ORIGINAL else known[1]
            origins[name] = (stored.sample_digest or known[0], original)
        return origins

    def _parts_alike(self, image: NDArray[np.uint8]) -> Iterator[int]:
        """The parts of photos that look like a picture."""
        bits = hash_perceptually(image)
        for part, hashes in enumerate(self._hashes):
            if int(count_differing_bits(hashes, bits).min()) <= MOST_BITS:
                yield part

    @cached_property
    def _hashes(self) -> list[NDArray[np.uint8]]:
        """The perceptual hashes of the photos of each part."""
        bits = [[self.hashed[sample.id].bits for sample in samples] for samples in self.parts.parts]
        return [np.stack([row for row in part if row is not None]) for part in bits]
