"""A model's answers to pictures: ranked labels, their probabilities, the true label's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.types import Classifier, Prediction, Variant

RANKS = 5


def check_coverage(classifier: Classifier, labels: Sequence[str]) -> None:
    """A model that has no column for a label cannot be scored on it."""
    missing = sorted(set(labels) - set(classifier.labels))
    if missing:
        raise UserError(
            f"expected {classifier.name} to know every label of the photos, but it has no column for"
            f" {len(missing)} of them, such as '{missing[0]}'; its labels look like '{classifier.labels[0]}'"
        )


def answers(
    classifier: Classifier, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]], batch_size: int
) -> list[Prediction]:
    """What the classifier says to each image, in order."""
    found: list[Prediction] = []
    for start in range(0, len(images), batch_size):
        scores = classifier(images[start : start + batch_size])
        batch = variants[start : start + batch_size]
        found += [_prediction(classifier, variant, row) for variant, row in zip(batch, scores, strict=True)]
    return found


def _prediction(classifier: Classifier, variant: Variant, scores: NDArray[np.float32]) -> Prediction:
    if not np.isfinite(scores).all():
        return Prediction(variant.id, (), (), float("nan"), "error")
    best = np.argsort(-scores, kind="stable")[:RANKS]
    ranked = tuple(classifier.labels[column] for column in best)
    true_score = float(scores[classifier.labels.index(variant.label)])
    return Prediction(variant.id, ranked, tuple(float(scores[i]) for i in best), true_score)
