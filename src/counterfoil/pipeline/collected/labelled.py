"""The pictures that an evaluation shows, with labels as its models know them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from counterfoil.types import Exhibit


@dataclass(frozen=True, eq=False)
class Labelled(Sequence[Exhibit]):
    """Some pictures of a collection; each is made when it is looked at, since a collection may hold millions."""

    exhibits: Sequence[Exhibit]
    places: Sequence[int]
    label_of: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, which: int) -> Exhibit: ...
    @overload
    def __getitem__(self, which: slice) -> Labelled: ...
    def __getitem__(self, which: int | slice) -> Exhibit | Labelled:
        if isinstance(which, slice):
            return Labelled(self.exhibits, self.places[which], self.label_of)
        return self._shown(self.exhibits[self.places[which]])

    def __iter__(self) -> Iterator[Exhibit]:
        if isinstance(self.places, range):  # a part of the collection in one piece: it is gone through faster
            return map(self._shown, self.exhibits[self.places.start : self.places.stop : self.places.step])
        return (self._shown(self.exhibits[place]) for place in self.places)

    def _shown(self, exhibit: Exhibit) -> Exhibit:
        variant, label = exhibit.variant, self.label_of[exhibit.variant.label]
        named = exhibit if variant.label == label else replace(exhibit, variant=replace(variant, label=label))
        return with_sample(named)

    @cached_property
    def by_id(self) -> ById:
        """The pictures by the ids of their variants."""
        return ById(self)


@dataclass(frozen=True, eq=False)
class ById:
    """Pictures looked up by the ids of their variants, in eight bytes each."""

    exhibits: Sequence[Exhibit]

    @cached_property
    def _hashes(self) -> NDArray[np.int64]:
        return np.fromiter((hash(exhibit.variant.id) for exhibit in self.exhibits), np.int64, len(self.exhibits))

    def __contains__(self, variant_id: str) -> bool:
        return any(True for _ in self._called(variant_id))

    def __getitem__(self, variant_id: str) -> Exhibit:
        for exhibit in self._called(variant_id):
            return exhibit
        raise KeyError(variant_id)

    def _called(self, variant_id: str) -> Iterator[Exhibit]:
        places = np.flatnonzero(self._hashes == hash(variant_id))
        alike = (self.exhibits[int(place)] for place in places)
        return (exhibit for exhibit in alike if exhibit.variant.id == variant_id)


def with_sample(exhibit: Exhibit) -> Exhibit:
    """A picture that is of no sample is one by itself."""
    variant = exhibit.variant
    return exhibit if variant.sample_id else replace(exhibit, variant=replace(variant, sample_id=variant.id))
