"""A model's answers to pictures: ranked labels, their probabilities, the true label's.

A classifier gives a row of scores per picture; an answerer (a vision-language model) knows the question behind each
variant and gives predictions itself. An answer that ended in an error is no answer: a rerun asks it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.labels import LabelSpace
from counterfoil.types import Answerer, Classifier, Exhibit, Prediction, Skipped, Variant

RANKS = 5


class Collection(Protocol):
    """Finished pictures, shown to models as they are: a workspace, a frozen benchmark, a published archive."""

    @property
    def name(self) -> str:
        """How reports call it, such as "imagenet-e"."""

    @property
    def digest(self) -> str:
        """Hash over everything that may change an answer; a run is not resumed where it differs."""

    @property
    def space(self) -> LabelSpace | None:
        """The classes that labels are of, with the ids that count as each; None for the first model's own."""

    @property
    def scoring(self) -> Literal["all", "subset"]:
        """Whether columns of no class compete, where the user does not say."""

    @property
    def surrogates(self) -> Mapping[str, str]:
        """The models that chose the pictures, with the digests of their weights: they are judged by their own pick."""

    @property
    def notes(self) -> Sequence[str]:
        """What every report on it must say, such as that the pictures are training pictures."""

    @property
    def exhibits(self) -> Sequence[Exhibit]:
        """Every picture in a fixed order; originals first within a sample where there are any."""

    @property
    def skipped(self) -> Sequence[Skipped]:
        """What had to be left out, and why."""

    def read(self, exhibit: Exhibit) -> NDArray[np.uint8]:
        """The pixels, (height, width, 3), RGB; threads and forked processes may read at once.

        Raises `Unusable` where that fails, or where the exhibit names a hash of its pixels and these have another.
        """


def check_coverage(classifier: Classifier, labels: Sequence[str]) -> None:
    """A model that has no column for a label cannot be scored on it."""
    missing = sorted(set(labels) - set(classifier.labels))
    if missing:
        raise UserError(
            f"expected {classifier.name} to know every label of the photos, but it has no column for"
            f" {len(missing)} of them, such as '{missing[0]}'; its labels look like '{classifier.labels[0]}'"
        )


def made_for(classifier: Classifier, labels: Sequence[str]) -> Classifier:
    """The model, checked to know the photos' labels; an answerer takes its wrong choices from them."""
    check_coverage(classifier, labels)
    return classifier.among(labels) if isinstance(classifier, Answerer) else classifier


def answers(
    model: Classifier | Answerer, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]], batch_size: int
) -> list[Prediction]:
    """What the model says to each image, in order."""
    if isinstance(model, Answerer):
        return _in_order(model, variants, images)
    found: list[Prediction] = []
    for start in range(0, len(images), batch_size):
        scores = model(images[start : start + batch_size])
        batch = variants[start : start + batch_size]
        found += [_prediction(model, variant, row) for variant, row in zip(batch, scores, strict=True)]
    return found


def asks_again(model: Classifier | Answerer, earlier: Sequence[Prediction]) -> bool:
    """Whether a rerun could do better: an answerer's errors come from the network, a classifier's would come again."""
    may_recover = isinstance(model, Answerer) and getattr(model, "may_recover", True)
    return may_recover and any(prediction.outcome == "error" for prediction in earlier)


def answers_again(
    model: Answerer,
    variants: Sequence[Variant],
    earlier: Sequence[Prediction],
    image_of: Callable[[Variant], NDArray[np.uint8]],
) -> list[Prediction]:
    """The earlier answers, those that ended in an error asked once more; only their pictures are made again."""
    failed = [variant for variant, told in zip(variants, earlier, strict=True) if told.outcome == "error"]
    fresh = _in_order(model, failed, [image_of(variant) for variant in failed])
    told_now = {prediction.variant_id: prediction for prediction in fresh}
    return [told_now.get(prediction.variant_id, prediction) for prediction in earlier]


def _in_order(model: Answerer, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
    found = model.answers(variants, images)
    if [prediction.variant_id for prediction in found] != [variant.id for variant in variants]:
        raise ValueError(f"expected one answer per variant, in order, from {type(model).__name__}, got {len(found)}")
    return found


def _prediction(classifier: Classifier, variant: Variant, scores: NDArray[np.float32]) -> Prediction:
    if not np.isfinite(scores).all():
        return Prediction(variant.id, (), (), float("nan"), "error")
    best = np.argsort(-scores, kind="stable")[:RANKS]
    ranked = tuple(classifier.labels[column] for column in best)
    true_score = float(scores[classifier.labels.index(variant.label)])
    return Prediction(variant.id, ranked, tuple(float(scores[i]) for i in best), true_score)
