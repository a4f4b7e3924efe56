"""How hard the kept pictures are for unseen models, against the number of surrogates that chose them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.mine.rules import Rule, Said, kept_by
from counterfoil.mine.shares import Photos, Shares, shares
from counterfoil.types import PhotoShare

_BLOCK = 64  # groups of surrogates looked at together


class CurveRow(NamedTuple):
    """One model's answers to what groups of one size chose; a group that a surrogate is in is not asked about it."""

    size: int  # surrogates in a group
    groups: int  # that kept a picture which the model answered
    empty: int  # that kept none
    accuracy: PhotoShare  # mean over the groups
    lowest: float  # accuracy over the groups
    highest: float
    transfer: PhotoShare  # failures where the model has the original right


def curve(said: Said, rule: Rule, groups: NDArray[np.bool_], photos: Photos) -> list[list[CurveRow]]:
    """For every model a row per size of group; the first models are the surrogates, each seen where it had no say.

    `groups` is (groups, surrogates), `said` all models' answers, the surrogates' first.
    """
    sizes = groups.sum(axis=1)
    found: list[list[CurveRow]] = [[] for _ in said.right]
    for size in np.unique(sizes):
        for rows, told in zip(found, _of_size(said, rule, groups[sizes == size], photos), strict=True):
            rows += [] if told is None else [_row(int(size), *told)]
    return found


def _of_size(said: Said, rule: Rule, groups: NDArray[np.bool_], photos: Photos) -> list[tuple[Shares, Shares] | None]:
    """Accuracy and transfer of every model, added up block by block; None of a surrogate that is in every group."""
    surrogates = said.of(slice(0, groups.shape[1]))
    found: list[tuple[Shares, Shares] | None] = [None] * len(said.right)
    for start in range(0, len(groups), _BLOCK):  # the counts of all groups at once would fill the memory
        own = groups[start : start + _BLOCK]
        kept = kept_by(surrogates, rule, own)
        for place, before in enumerate(found):
            outside = ~own[:, place] if place < own.shape[1] else np.ones(len(own), bool)
            if outside.any():
                told = _shares(said.of([place]), kept[outside], photos)
                found[place] = told if before is None else (before[0].joined(told[0]), before[1].joined(told[1]))
    return found


def _shares(model: Said, kept: NDArray[np.bool_], photos: Photos) -> tuple[Shares, Shares]:
    """How often the model is right on what groups kept, and wrong where it has the original right."""
    right, sound = model.right[0], model.original[0] == 1
    answered = np.isfinite(right)
    kinds = (right == 1, answered, sound & (right == 0), sound & answered)
    hits, asked, lost, known = photos.counts(kept, kinds)
    return shares(hits, asked), shares(lost, known)


def _row(size: int, accuracy: Shares, transfer: Shares) -> CurveRow:
    ends = accuracy.lowest, accuracy.highest
    return CurveRow(size, accuracy.sets, accuracy.empty, accuracy.mean, *ends, transfer.mean)
