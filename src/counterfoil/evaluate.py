"""A model's answers to pictures: ranked labels, their probabilities, the true label's.

`ModelBase` makes predictions of a row of scores per picture; a vision-language model knows the question behind each
variant and gives predictions itself. An answer that ended in an error is no answer: a rerun asks it again where the
model is retryable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.labels import LabelSpace
from counterfoil.types import Exhibit, Model, Prediction, Preprocessing, Skipped, Usage, Variant

RANKS = 5


class Collection(Protocol):
    """Finished pictures, shown to models as they are: a workspace, a frozen benchmark, a published archive.

    `CollectionBase` has the defaults of its methods.
    """

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

    def adapt(self, model: Model) -> Model:
        """The model as it is to be asked about this collection; by default the model itself."""


class CollectionBase:
    """Defaults of a `Collection`."""

    def adapt(self, model: Model) -> Model:
        """The model as it is."""
        return model


class ModelBase:
    """Defaults of a `Model`; its author writes `name`, `labels`, `preprocessing`, `digest` and the scores.

    The defaults are cached properties, so that a subclass may also set them as attributes or have them as fields.
    """

    @cached_property
    def details(self) -> tuple[object, ...]:
        """Nothing besides weights, preprocessing and labels."""
        return (None, None)

    @cached_property
    def identity(self: Model) -> str:
        """Hash of weights, preprocessing, labels and details."""
        return identity_hash(self, [None, None, self.labels, *self.details])

    @cached_property
    def device(self) -> str:
        """The CPU."""
        return "cpu"

    @cached_property
    def parameters(self) -> int | None:
        """Not known."""
        return None

    @cached_property
    def prepared_by(self) -> str:
        """Not known."""
        return ""

    @cached_property
    def scoring(self: Model) -> str:
        """All columns compete."""
        return f"all {len(self.labels)} columns"

    @cached_property
    def note(self) -> str:
        """Nothing."""
        return ""

    @cached_property
    def usage(self) -> Usage | None:
        """There is no endpoint."""
        return None

    @cached_property
    def retryable(self) -> bool:
        """A network's errors would come again."""
        return False

    @cached_property
    def gives_scores(self) -> bool:
        """One probability per label."""
        return True

    def predict(self: Model, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """The best labels of each row of scores; a row that is not finite is an error."""
        scores = self(images)
        return [_prediction(self.labels, variant, row) for variant, row in zip(variants, scores, strict=True)]

    def among(self: Model, labels: Sequence[str]) -> Model:
        """The same model: its columns are fixed."""
        return self

    def offering(self: Model, distractors: Mapping[str, str]) -> Model:
        """The same model: it is not asked to choose."""
        return self


class ModelWrapper(ModelBase):
    """A model made of another, `model`, which answers whatever a subclass does not."""

    model: Model

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    @property
    def labels(self) -> Sequence[str]:
        """The model's."""
        return self.model.labels

    @property
    def preprocessing(self) -> Preprocessing | None:
        """The model's."""
        return self.model.preprocessing

    @property
    def digest(self) -> str:
        """The model's."""
        return self.model.digest

    @property
    def details(self) -> tuple[object, ...]:
        """The model's."""
        return self.model.details

    @property
    def identity(self) -> str:
        """The model's."""
        return self.model.identity

    @property
    def device(self) -> str:
        """The model's."""
        return self.model.device

    @property
    def parameters(self) -> int | None:
        """The model's."""
        return self.model.parameters

    @property
    def prepared_by(self) -> str:
        """The model's."""
        return self.model.prepared_by

    @property
    def scoring(self) -> str:
        """The model's."""
        return self.model.scoring

    @property
    def note(self) -> str:
        """The model's."""
        return self.model.note

    @property
    def usage(self) -> Usage | None:
        """The model's."""
        return self.model.usage

    @property
    def retryable(self) -> bool:
        """The model's."""
        return self.model.retryable

    @property
    def gives_scores(self) -> bool:
        """The model's."""
        return self.model.gives_scores

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """The model's probabilities, (len(images), len(labels))."""
        return self.model(images)


def identity_hash(model: Model, details: list[object]) -> str:
    """Hash of all that makes a model's answers: weights, preprocessing, labels, which columns compete, runtime."""
    about = (model.name, model.digest, repr(model.preprocessing), tuple(model.labels), repr(details))
    return hashlib.sha256(repr(about).encode()).hexdigest()


def check_coverage(model: Model, labels: Sequence[str]) -> None:
    """A model that has no column for a label cannot be scored on it."""
    missing = sorted(set(labels) - set(model.labels))
    if missing:
        raise UserError(
            f"expected {model.name} to know every label of the photos, but it has no column for"
            f" {len(missing)} of them, such as '{missing[0]}'; its labels look like '{model.labels[0]}'"
        )


def made_for(model: Model, labels: Sequence[str]) -> Model:
    """The model for photos of these labels, checked to know them all."""
    check_coverage(model, labels)
    return model.among(labels)


def answers(
    model: Model, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]], batch_size: int
) -> list[Prediction]:
    """What the model says to each image, in order."""
    predictions: list[Prediction] = []
    for start in range(0, len(images), batch_size):
        stop = start + batch_size
        predictions += _in_order(model, variants[start:stop], images[start:stop])
    return predictions


def asks_again(model: Model, earlier: Sequence[Prediction]) -> bool:
    """Whether a rerun could do better: an endpoint's errors come from the network, a classifier's would come again."""
    return model.retryable and any(prediction.outcome == "error" for prediction in earlier)


def answers_again(
    model: Model,
    variants: Sequence[Variant],
    earlier: Sequence[Prediction],
    image_of: Callable[[Variant], NDArray[np.uint8]],
) -> list[Prediction]:
    """The earlier answers, those that ended in an error asked once more; only their pictures are made again."""
    failed = [variant for variant, told in zip(variants, earlier, strict=True) if told.outcome == "error"]
    fresh = _in_order(model, failed, [image_of(variant) for variant in failed])
    told_now = {prediction.variant_id: prediction for prediction in fresh}
    return [told_now.get(prediction.variant_id, prediction) for prediction in earlier]


def _in_order(model: Model, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
    predictions = model.predict(variants, images)
    if [prediction.variant_id for prediction in predictions] != [variant.id for variant in variants]:
        count = len(predictions)
        raise ValueError(f"expected one answer per variant, in order, from {type(model).__name__}, got {count}")
    return predictions


def _prediction(labels: Sequence[str], variant: Variant, scores: NDArray[np.float32]) -> Prediction:
    if not np.isfinite(scores).all():
        return Prediction(variant.id, (), (), float("nan"), "error")
    best = np.argsort(-scores, kind="stable")[:RANKS]
    ranked = tuple(labels[column] for column in best)
    true_score = float(scores[labels.index(variant.label)])
    return Prediction(variant.id, ranked, tuple(float(scores[i]) for i in best), true_score)
