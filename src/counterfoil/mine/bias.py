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
from counterfoil.mine.shares import Photos, share, shares
from counterfoil.types import PhotoShare


class Bias(NamedTuple):
    """Accuracies on what all and on what the others chose, of a surrogate and of the targets on average."""

    of_all: PhotoShare
    of_others: PhotoShare
    targets_of_all: PhotoShare  # over the targets that answered both choices; NaN where there is none
    targets_of_others: PhotoShare
    pictures_of_others: int

    @property
    def bias(self) -> float:
        """Others minus all."""
        return self.of_others.value - self.of_all.value

    @property
    def adjusted(self) -> float:
        """The bias less what targets lose from the others' choice to the whole; NaN without targets."""
        return self.bias - (self.targets_of_others.value - self.targets_of_all.value)


def leave_one_out(said: Said, rule: Rule) -> NDArray[np.bool_]:
    """What is kept by all and, row by row after that, by all but one, (1 + surrogates, pictures)."""
    groups = np.vstack([np.ones((1, len(said.right)), bool), ~np.eye(len(said.right), dtype=bool)])
    return kept_by(said, rule, groups)


def bias_of(said: Said, surrogates: int, rule: Rule, photos: Photos) -> list[Bias]:
    """The bias of every surrogate, whose answers stand first; there must be two at least, since the others choose."""
    chosen, targets = said.of(slice(0, surrogates)), said.of(slice(surrogates, None))
    whole, *without = leave_one_out(chosen, rule)
    return [
        Bias(
            _accuracy(right, whole, photos),
            _accuracy(right, others, photos),
            *_by_targets(targets, whole, others, photos),
            int(others.sum()),
        )
        for right, others in zip(chosen.right, without, strict=True)
    ]


def _accuracy(right: NDArray[np.float64], kept: NDArray[np.bool_], photos: Photos) -> PhotoShare:
    return share(right == 1, np.isfinite(right) & kept, photos)


def _by_targets(
    targets: Said, whole: NDArray[np.bool_], others: NDArray[np.bool_], photos: Photos
) -> tuple[PhotoShare, PhotoShare]:
    """The targets' mean accuracies on both choices; the same targets on both sides, or they could not be compared."""
    answered = np.isfinite(targets.right)
    both = (answered & whole).any(axis=1) & (answered & others).any(axis=1)
    right, among = targets.right[both] == 1, answered[both]
    of_all, of_others = (
        shares(*(next(photos.counts(rows & kept)) for rows in (right, among))).mean for kept in (whole, others)
    )
    return of_all, of_others
