"""The defaults of every model (`ModelBase`), wrappers around one, and scores ranked into predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from counterfoil.store.prediction_tables import RANKS
from counterfoil.types import Model, Prediction, Preprocessing, Usage, Variant


class ModelBase:
    """Defaults of a `Model`; its author writes `name`, `labels`, `preprocessing`, `digest` and the scores.

    The defaults are cached properties, so that a subclass may also set them as attributes or have them as fields.
    """

    @cached_property
    def details(self) -> tuple[object, ...]:
        """Empty: only weights, preprocessing and labels matter."""
        return (None, None)

    @cached_property
    def identity(self: Model) -> str:
        """Hash of weights, preprocessing, labels and details."""
        return identity_hash(self, [None, None, self.labels, *self.details])

    @cached_property
    def device(self) -> str:
        """ "cpu"."""
        return "cpu"

    @cached_property
    def parameters(self) -> int | None:
        """None: not known."""
        return None

    @cached_property
    def prepared_by(self) -> str:
        """Empty: not known."""
        return ""

    @cached_property
    def scoring(self: Model) -> str:
        """All columns compete."""
        return f"all {len(self.labels)} columns"

    @cached_property
    def note(self) -> str:
        """Empty."""
        return ""

    @cached_property
    def usage(self) -> Usage | None:
        """None: there is no endpoint."""
        return None

    @cached_property
    def retryable(self) -> bool:
        """False: a network's errors would recur."""
        return False

    @cached_property
    def gives_scores(self) -> bool:
        """True: one probability per label."""
        return True

    @property
    def base(self: Model) -> Model:
        """Itself: its columns are the network's."""
        return self

    def regroup(self: Model, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same scores."""
        return scores

    def try_preprocessing(
        self: Model, images: Sequence[NDArray[np.uint8]], preprocessing: Preprocessing
    ) -> NDArray[np.float32] | None:
        """None: the model does its own preprocessing."""
        return None

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
    """A model around another, `model`, whose attributes it has unless a subclass overrides them."""

    model: Model

    name = property(attrgetter("model.name"))
    labels = property(attrgetter("model.labels"))
    preprocessing = property(attrgetter("model.preprocessing"))
    digest = property(attrgetter("model.digest"))
    details = property(attrgetter("model.details"))
    identity = property(attrgetter("model.identity"))
    device = property(attrgetter("model.device"))
    parameters = property(attrgetter("model.parameters"))
    prepared_by = property(attrgetter("model.prepared_by"))
    scoring = property(attrgetter("model.scoring"))
    note = property(attrgetter("model.note"))
    usage = property(attrgetter("model.usage"))
    retryable = property(attrgetter("model.retryable"))
    gives_scores = property(attrgetter("model.gives_scores"))
    base = property(attrgetter("model.base"))

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """The model's probabilities, (len(images), len(labels))."""
        return self.model(images)

    def regroup(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """As the model regroups them."""
        return self.model.regroup(scores)


def identity_hash(model: Model, details: list[object]) -> str:
    """Hash of all that a model's answers depend on: weights, preprocessing, labels, which columns compete, runtime."""
    about = (model.name, model.digest, repr(model.preprocessing), tuple(model.labels), repr(details))
    return hashlib.sha256(repr(about).encode()).hexdigest()


def _prediction(labels: Sequence[str], variant: Variant, scores: NDArray[np.float32]) -> Prediction:
    if not np.isfinite(scores).all():
        return Prediction(variant.id, (), (), float("nan"), "error")
    best = np.argsort(-scores, kind="stable")[:RANKS]
    ranked = tuple(labels[column] for column in best)
    true_score = float(scores[labels.index(variant.label)])
    return Prediction(variant.id, ranked, tuple(float(scores[i]) for i in best), true_score)
