"""How hard the kept pictures are for unseen models, against the number of surrogates that chose them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.mine.rules import Rule, Said, kept_by
from counterfoil.mine.shares import Photos

_BLOCK = 64  # groups of surrogates looked at together


class CurveRow(NamedTuple):
    """One model's answers to what groups of one size chose; a group that a surrogate is in is not asked about it."""

    size: int  # surrogates in a group
    groups: int  # that kept a picture which the model answered
    empty: int  # that kept none
    accuracy: NDArray[np.float64]  # (rows of weights,): mean over the groups
    lowest: float  # accuracy over the groups
    highest: float
    transfer: NDArray[np.float64]  # (rows of weights,): failures where the model has the original right


class _Sums(NamedTuple):
    """Per group, (rows of weights, groups): how many kept pictures, and of which kind."""

    answered: NDArray[np.float64]
    right: NDArray[np.float64]
    sound: NDArray[np.float64]  # right on the original
    lost: NDArray[np.float64]  # of those, wrong now


def curve(said: Said, rule: Rule, groups: NDArray[np.bool_], photos: Photos) -> list[list[CurveRow]]:
    """For every model a row per size of group; the first models are the surrogates, each seen where it had no say.

    `groups` is (groups, surrogates), `said` all models' answers, the surrogates' first.
    """
    sizes = groups.sum(axis=1)
    found: list[list[CurveRow]] = [[] for _ in said.right]
    for size in np.unique(sizes):  # one size at a time: the sums over all groups would fill the memory
        own = groups[sizes == size]
        for place, sums in enumerate(_sums(said, rule, own, photos)):
            outside = ~own[:, place] if place < own.shape[1] else np.ones(len(own), bool)
            found[place] += [_row(sums, size, outside)] if outside.any() else []
    return found


def _sums(said: Said, rule: Rule, groups: NDArray[np.bool_], photos: Photos) -> list[_Sums]:
    """Of every model, what every group kept."""
    surrogates = said.of(slice(0, groups.shape[1]))
    kinds = [kind for place in range(len(said.right)) for kind in _kinds(said.of([place]))]
    blocks = []
    for start in range(0, len(groups), _BLOCK):
        kept = kept_by(surrogates, rule, groups[start : start + _BLOCK])
        blocks.append(photos.weighed_kinds(kept, kinds))
    whole = [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]
    width = len(_Sums._fields)
    return [_Sums(*whole[start : start + width]) for start in range(0, len(whole), width)]


def _kinds(model: Said) -> tuple[NDArray[np.bool_], ...]:
    """Which pictures are answered, right, right on the original, and of those wrong now; (pictures,) each."""
    right, sound = model.right[0], model.original[0] == 1
    answered = np.isfinite(right)
    return answered, right == 1, sound & answered, sound & (right == 0)


def _row(sums: _Sums, size: int, chosen: NDArray[np.bool_]) -> CurveRow:
    answered, right, sound, lost = (part[:, chosen] for part in sums)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "nothing kept"
        accuracy, transfer = right / answered, lost / sound
    filled = np.isfinite(accuracy[0])
    ends = (float(accuracy[0, filled].min()), float(accuracy[0, filled].max())) if filled.any() else (np.nan, np.nan)
    return CurveRow(int(size), int(filled.sum()), int((~filled).sum()), _mean(accuracy), *ends, _mean(transfer))


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the groups that have a value, (rows,); NaN where none has."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):  # 0 / 0: no group has one
        return np.asarray(np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1), np.float64)
