"""Shares of pictures, photos weighed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Photos(NamedTuple):
    """Which photo each picture is of, and how often each photo counts: a row of ones, or photos resampled."""

    photo: NDArray[np.intp]  # (pictures,)
    weights: NDArray[np.float64]  # (rows, photos)

    def weighed(self, hits: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How many pictures are hit, (rows, questions); hits are (questions, pictures)."""
        return self.weighed_kinds(hits, [np.ones(hits.shape[1], bool)])[0]

    def weighed_kinds(self, hits: NDArray[np.bool_], kinds: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.float64]]:
        """The same of each kind of pictures alone; a kind is (pictures,). The hits are looked up once for all."""
        photos, questions = self.weights.shape[1], len(hits)
        question, picture = np.nonzero(hits)
        cell = self.photo[picture] * questions + question
        sums = (np.bincount(cell, kind[picture], photos * questions).reshape(photos, questions) for kind in kinds)
        return [np.asarray(self.weights @ counts, np.float64) for counts in sums]


def share(hits: NDArray[np.bool_], among: NDArray[np.bool_], photos: Photos) -> NDArray[np.float64]:
    """The share of hits among pictures, (rows, questions); hits and among are (questions, pictures)."""
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "no picture"
        return np.asarray(photos.weighed(hits & among) / photos.weighed(among), np.float64)
