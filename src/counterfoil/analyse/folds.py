"""Accuracy over k parts of the photos, each class spread evenly over the parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError


class FoldAccuracy(NamedTuple):
    """Accuracy on each part, in percent; the deviation is the sample's, with folds - 1."""

    mean: float
    deviation: float


def stratified_folds(label: NDArray[np.intp], folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The part of each photo: parts differ by at most one photo in each class, and by at most one over all."""
    if not 2 <= folds <= len(label):
        raise UserError(f"expected 2 to {len(label)} folds for {len(label)} photos, got {folds}")
    shuffled = rng.permutation(len(label))
    dealt = shuffled[np.argsort(label[shuffled], kind="stable")]  # class by class, in random order within
    fold = np.empty(len(label), np.intp)
    fold[dealt] = np.arange(len(label)) % folds
    return fold


def fold_accuracy(correct: NDArray[np.bool_], fold: NDArray[np.intp]) -> FoldAccuracy:
    """The accuracy on every held-out part; `correct` holds the answers of the model that did not see the part."""
    accuracies = [100 * float(correct[fold == part].mean()) for part in np.unique(fold)]
    return FoldAccuracy(float(np.mean(accuracies)), float(np.std(accuracies, ddof=1)))
