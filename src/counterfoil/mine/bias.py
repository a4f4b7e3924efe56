"""The selection bias: how much lower a surrogate's accuracy is because it helped to choose.

A picture that is kept because a surrogate fails on it cannot be right for that surrogate. Left out of the choosing, the
surrogate meets the pictures as an unseen model does: its accuracy on what the others chose, minus its accuracy on what
all chose, is the cross-fitted bias. The others are one fewer, so their choice is another set than the whole choice, and
milder where all have to fail. How much that alone does is measured on targets, which chose nothing: what they lose from
the one set to the other is taken off in the adjusted bias (a difference of differences).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.mine.rules import Rule, Said, kept_by
from counterfoil.mine.shares import Photos, share


class Bias(NamedTuple):
    """One surrogate's accuracies, one per row of weights; shares, not percent."""

    chosen_by_all: NDArray[np.float64]
    chosen_by_others: NDArray[np.float64]
    bias: NDArray[np.float64]  # others minus all
    adjusted: NDArray[np.float64]  # less what targets lose from the others' choice to the whole; NaN without targets
    pictures_of_others: int


def leave_one_out(said: Said, rule: Rule) -> NDArray[np.bool_]:
    """What is kept by all and, row by row after that, by all but one, (1 + surrogates, pictures)."""
    groups = np.vstack([np.ones((1, len(said.right)), bool), ~np.eye(len(said.right), dtype=bool)])
    return kept_by(said, rule, groups)


def bias_of(said: Said, surrogates: int, rule: Rule, photos: Photos) -> list[Bias]:
    """The bias of every surrogate, whose answers stand first; there must be two at least, since the others choose."""
    chosen, targets = said.of(slice(0, surrogates)), said.of(slice(surrogates, None))
    kept = leave_one_out(chosen, rule)
    by_targets = [_accuracies(targets, row, photos) for row in kept]
    found = []
    for place in range(surrogates):
        own = chosen.of([place])
        of_all, of_others = (_accuracies(own, row, photos)[:, 0] for row in kept[[0, place + 1]])
        bias = of_others - of_all
        milder = _mean(by_targets[place + 1] - by_targets[0])
        found.append(Bias(of_all, of_others, bias, bias - milder, int(kept[place + 1].sum())))
    return found


def _accuracies(models: Said, kept: NDArray[np.bool_], photos: Photos) -> NDArray[np.float64]:
    """Of every model on the kept pictures, (rows, models)."""
    return share(models.right == 1, np.isfinite(models.right) & kept, photos)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the targets, (rows,); NaN where there is none."""
    return values.mean(axis=1) if values.shape[1] else np.full(len(values), np.nan)
