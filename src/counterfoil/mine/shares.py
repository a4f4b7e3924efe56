"""Shares of pictures, with what they owe to each photo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.types import PhotoShare


class Photos(NamedTuple):
    """Which photo each picture is of."""

    photo: NDArray[np.intp]  # (pictures,)
    many: int

    def counts(
        self, hits: NDArray[np.bool_], kinds: Iterable[NDArray[np.bool_]] | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """How many pictures of each photo are hit, (photos, questions), of each kind alone; hits are looked up once.

        Hits are (questions, pictures), a kind is (pictures,); without kinds all pictures are one.
        """
        questions = len(hits)
        question, picture = np.nonzero(hits)
        cell = self.photo[picture] * questions + question
        for kind in [np.ones(hits.shape[1], bool)] if kinds is None else kinds:
            found = np.bincount(cell, kind[picture], self.many * questions)
            yield np.asarray(found.reshape(self.many, questions), np.float64)


class Shares(NamedTuple):
    """Several shares of one kind added up, and over how many sets; a set without a picture has none."""

    sets: int
    empty: int
    total: PhotoShare  # all fields in sum
    lowest: float
    highest: float

    def joined(self, other: Shares) -> Shares:
        """Both together."""
        lowest, highest = np.fmin(self.lowest, other.lowest), np.fmax(self.highest, other.highest)
        total = _added(self.total, other.total)
        return Shares(self.sets + other.sets, self.empty + other.empty, total, float(lowest), float(highest))

    @property
    def mean(self) -> PhotoShare:
        """The mean share over the sets that have one."""
        if not self.sets:
            return self.total._replace(value=np.nan)
        value, pulls, parts, pictures = self.total
        return PhotoShare(value / self.sets, pulls / self.sets, parts / self.sets, pictures / self.sets)


def shares(hits: NDArray[np.float64], among: NDArray[np.float64]) -> Shares:
    """The shares of counted hits among counted pictures, (photos, sets) each."""
    filled = among.sum(axis=0) > 0
    own, every = hits[:, filled], among[:, filled]
    sizes = every.sum(axis=0)
    values = own.sum(axis=0) / sizes
    parts = every / sizes
    # where all succeed or all fail, pictures of one photo may be one picture for all that is seen
    pictures = np.where((values == 0) | (values == 1), 1 / (parts**2).sum(axis=0), sizes)
    pulls = ((own - values * every) / sizes).sum(axis=1)
    total = PhotoShare(float(values.sum()), pulls, parts.sum(axis=1), float(pictures.sum()))
    ends = (float(values.min()), float(values.max())) if filled.any() else (np.nan, np.nan)
    return Shares(int(filled.sum()), int((~filled).sum()), total, *ends)


def share(hits: NDArray[np.bool_], among: NDArray[np.bool_], photos: Photos) -> PhotoShare:
    """The share of hits among pictures, (pictures,) each, or (models, pictures) for all their pairs together."""
    photo = np.broadcast_to(photos.photo, among.shape)[among]
    own, every = (np.bincount(photo, weight, photos.many)[:, None].astype(np.float64) for weight in (hits[among], None))
    return shares(own, every).mean._replace(pictures=float(len(photo)))


def _added(first: PhotoShare, second: PhotoShare) -> PhotoShare:
    return PhotoShare(
        first.value + second.value,
        first.pulls + second.pulls,
        first.parts + second.parts,
        first.pictures + second.pictures,
    )
