"""The photos of a run in columns, 0.1 kB for each where an object takes 0.5 kB; a sample is made when asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import overload

import numpy as np

from counterfoil.store.packed_texts import CodedTexts, CompactTexts, HexadecimalTexts, PackedTexts, pack_texts
from counterfoil.types import Sample


class SampleTable(Sequence[Sample]):
    """Samples that are kept in columns."""

    def __init__(self, rows: Sequence[Sample]) -> None:
        ids = PackedTexts([row.id for row in rows])
        masked = [row.mask is not None for row in rows]
        self._fill(masked, lambda name: [getattr(row, name) or "" for row in rows], ids)

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> SampleTable:
        """The samples, in columns if they are not."""
        return samples if isinstance(samples, cls) else cls(samples)

    @classmethod
    def join(cls, tables: Sequence[SampleTable]) -> SampleTable:
        """The samples of several tables, one after the other."""
        joined = cls.__new__(cls)
        masked = [masked for table in tables for masked in table._masked.tolist()]
        ids = PackedTexts.join([table._ids for table in tables])
        joined._fill(masked, lambda name: [text for table in tables for text in table.column(name)], ids)
        return joined

    def _fill(self, masked: Sequence[bool], column: Callable[[str], list[str]], ids: PackedTexts) -> None:
        """Pack the columns one after the other, so that the texts of one alone are objects."""
        self._masked = np.array(masked, bool)
        self._ids, self._labels = ids, CodedTexts(column("label"))
        self._digests, self._origins, self._licences = (
            pack_texts(column(name)) for name in ("digest", "origin", "licence")
        )
        self._images, self._masks = (self._pack_path(column(name)) for name in ("image", "mask"))

    def _pack_path(self, texts: list[str]) -> CompactTexts:
        """A column of paths; that of the ids where it is the same."""
        return self._ids if all(map(str.__eq__, texts, self._ids)) else pack_texts(texts)

    @overload
    def __getitem__(self, place: int) -> Sample: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, place: int | slice) -> Sample | tuple[Sample, ...]:
        """A sample, or some of them."""
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        place = range(len(self))[place]
        return Sample(
            id=self._ids[place], label=self._labels[place], image=self._images[place],
            mask=self._masks[place] if self._masked[place] else None, digest=self._digests[place],
            origin=self._origins[place], licence=self._licences[place],
        )  # fmt: skip

    def __iter__(self) -> Iterator[Sample]:
        columns = (self._ids, self._labels, self._images, self._masks, self._digests, self._origins, self._licences)
        for masked, name, label, image, mask, *rest in zip(self._masked.tolist(), *columns, strict=True):
            yield Sample(name, label, image, mask if masked else None, *rest)

    def column(self, name: str) -> CompactTexts:
        """One field of every sample; a mask that is not there is empty."""
        columns: dict[str, CompactTexts] = {
            "id": self._ids, "label": self._labels, "image": self._images, "mask": self._masks,
            "digest": self._digests, "origin": self._origins, "licence": self._licences,
        }  # fmt: skip
        return columns[name]

    def __len__(self) -> int:
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Sample.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def by_id(self) -> Mapping[str, Sample]:
        """The samples by their id; where they are not in its order, as objects."""
        return SamplesById(self, self._ids) if self._is_ordered() else {sample.id: sample for sample in self}

    def in_order(self) -> SampleTable:
        """The samples in the order of their ids."""
        return self if self._is_ordered() else SampleTable(sorted(self, key=lambda sample: sample.id))

    def _is_ordered(self) -> bool:
        return all(first < second for first, second in pairwise(map(self._ids.encoded, range(len(self)))))

    def with_labels(self, label_of: Mapping[str, str]) -> SampleTable:
        """The samples with other labels in place of theirs."""
        changed = copy(self)
        changed._labels = self._labels.renamed(label_of)
        return changed

    def has_doubles(self) -> bool:
        """Whether two samples may have one digest; False where none have."""
        if not isinstance(self._digests, HexadecimalTexts):
            return len(set(self._digests)) < len(self)
        return len(np.unique(self._digests.prefixes())) < len(self)


class SamplesById(Mapping[str, Sample]):
    """Samples in the order of their ids, found by halving."""

    def __init__(self, samples: SampleTable, ids: PackedTexts) -> None:
        self._samples, self._ids = samples, ids

    @property
    def samples(self) -> SampleTable:
        """The samples in their order."""
        return self._samples

    def __getitem__(self, name: str) -> Sample:
        wanted = name.encode("utf-8", "surrogatepass")
        place = bisect_left(range(len(self._ids)), wanted, key=self._ids.encoded)
        if place == len(self._ids) or self._ids.encoded(place) != wanted:
            raise KeyError(name)
        return self._samples[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
