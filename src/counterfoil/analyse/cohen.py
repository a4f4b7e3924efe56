"""Cohen's kappa of two annotators, and its mean over the pairs of several."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.verdict_table import Ratings


class Pair(NamedTuple):
    """What two annotators answered to the pictures that both answered."""

    both: NDArray[np.bool_]  # (pictures,)
    features: NDArray[np.float64]  # (pictures of both, 2 + 2 * answers)

    def weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Their kappa for every row of weights (rows, pictures)."""
        return _cohen(weights[:, self.both] @ self.features)

    @property
    def left_out(self) -> NDArray[np.float64]:
        """Their kappa without each picture, (pictures,)."""
        own = np.zeros((len(self.both), self.features.shape[1]))
        own[self.both] = self.features
        return _cohen(own.sum(axis=0) - own)


def pairs_of(ratings: Ratings) -> list[Pair]:
    """The pairs of annotators that answered a picture in common."""
    found = []
    for first, second in itertools.combinations(range(len(ratings.annotators)), 2):
        codes = ratings.codes[:, first], ratings.codes[:, second]
        features, both = _pair_features(*codes, len(ratings.answers))
        if both.any():
            found.append(Pair(both, features))
    return found


def mean_kappa(kappas: list[NDArray[np.float64]], rows: int) -> NDArray[np.float64]:
    """The mean over the pairs that have a kappa, (rows,)."""
    found = np.array(kappas).reshape(len(kappas), rows)
    defined = np.isfinite(found)
    with np.errstate(invalid="ignore"):  # 0 / 0: no pair has a kappa
        return np.asarray(np.where(defined, found, 0.0).sum(axis=0) / defined.sum(axis=0), np.float64)


def beyond_chance(observed: NDArray[np.float64], by_chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Agreement beyond chance; NaN where chance agrees always, up to what a float adds."""
    room = np.where(1.0 - by_chance < 1e-12, np.nan, 1.0 - by_chance)
    return np.asarray((observed - by_chance) / room, np.float64)


def _pair_features(
    first: NDArray[np.intp], second: NDArray[np.intp], answers: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """1, agreement and each annotator's answer one-hot, over the pictures of both; and which those are."""
    both = np.asarray((first >= 0) & (second >= 0))
    a, b = first[both], second[both]
    columns = [
        np.ones((len(a), 1)),
        (a == b)[:, None],
        a[:, None] == np.arange(answers),
        b[:, None] == np.arange(answers),
    ]
    return np.hstack(columns).astype(np.float64), both


def _cohen(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    pictures, agreeing = sums[:, 0], sums[:, 1]
    first, second = np.split(sums[:, 2:], 2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: no picture of both was drawn
        return beyond_chance(agreeing / pictures, (first * second).sum(axis=1) / pictures**2)
