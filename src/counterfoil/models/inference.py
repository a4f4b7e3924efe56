"""Predictions of a model in batches, and its columns regrouped as a benchmark's classes.

*all*: every column of the model competes, so an answer outside the benchmark's classes is wrong. *subset*: only the
columns of the benchmark's classes compete. The two give different accuracies, so the choice is part of the name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace
from counterfoil.models.model_protocol import ModelWrapper, identity_hash
from counterfoil.types import Model, Prediction, Variant


def check_coverage(model: Model, labels: Sequence[str]) -> None:
    """Raises `UserError` where a model has no column for a label."""
    missing = sorted(set(labels) - set(model.labels))
    if missing:
        raise UserError(
            f"expected {model.name} to know every label of the photos, but it has no column for"
            f" {len(missing)} of them: {_list_labels(missing)}; its labels look like '{model.labels[0]}'"
        )


def _list_labels(labels: Sequence[str], most: int = 20) -> str:
    """Labels in one line; of very many the first."""
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(f"'{label}'" for label in labels[:most]) + more


def bind_labels(model: Model, labels: Sequence[str]) -> Model:
    """The model for photos of these labels; raises `UserError` where it lacks one."""
    check_coverage(model, labels)
    return model.among(labels)


def predict(
    model: Model, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]], batch_size: int
) -> list[Prediction]:
    """The model's prediction for each image, in order."""
    predictions: list[Prediction] = []
    for start in range(0, len(images), batch_size):
        stop = start + batch_size
        predictions += _predict_in_order(model, variants[start:stop], images[start:stop])
    return predictions


def _predict_in_order(
    model: Model, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]
) -> list[Prediction]:
    predictions = model.predict(variants, images)
    if [prediction.variant_id for prediction in predictions] != [variant.id for variant in variants]:
        count = len(predictions)
        raise ValueError(f"expected one answer per variant, in order, from {type(model).__name__}, got {count}")
    return predictions


def should_retry(model: Model, earlier: Sequence[Prediction]) -> bool:
    """Whether asking again may help: an endpoint's errors come from the network, a classifier's would recur."""
    return model.retryable and any(prediction.outcome == "error" for prediction in earlier)


def predict_again(
    model: Model,
    variants: Sequence[Variant],
    earlier: Sequence[Prediction],
    image_of: Callable[[Variant], NDArray[np.uint8]],
) -> list[Prediction]:
    """The earlier answers, with those that ended in an error asked again; only their pictures are rendered again."""
    failed = [variant for variant, described in zip(variants, earlier, strict=True) if described.outcome == "error"]
    fresh = _predict_in_order(model, failed, [image_of(variant) for variant in failed])
    fresh_by_id = {prediction.variant_id: prediction for prediction in fresh}
    return [fresh_by_id.get(prediction.variant_id, prediction) for prediction in earlier]


Scoring: TypeAlias = Literal["all", "subset"]


@dataclass(frozen=True)
class ScoredClassifier(ModelWrapper):
    """A classifier whose columns are the classes of a benchmark.

    For a class with several ids, the best id takes the class's name, as in an arg-max over single ids; the other
    ids keep columns of their own, named after it, so that the row still sums to 1.
    """

    model: Model
    groups: tuple[tuple[str, tuple[int, ...]], ...]  # class, and the columns that count as it
    others: tuple[int, ...]  # columns of no class, where they compete
    described: str

    @property
    def name(self) -> str:
        """The address, with the scoring where columns were left out."""
        return f"{self.model.name} ({self.described})" if self.described.startswith("subset") else self.model.name

    @property
    def scoring(self) -> str:
        """How the columns compete, in words."""
        return self.described

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes, the further ids of each, then the columns of no class."""
        named = [
            label if place == 0 else f"{label} (id {place + 1})"
            for label, columns in self.groups
            for place in range(len(columns))
        ]
        return (*named, *(self.model.labels[column] for column in self.others))

    @property
    def identity(self) -> str:
        """Hash of the model's own parts and of which columns compete as what."""
        return identity_hash(self, [self.groups, self.others, self.model.labels, *self.model.details])

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        return np.array([*(column for _, columns in self.groups for column in columns), *self.others], np.intp)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""
        return self._group(self.model(images))

    def regroup(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores of the classes, (n, labels), from the columns of the `base`."""
        return self._group(self.model.regroup(scores))

    def _group(self, columns: NDArray[np.float32]) -> NDArray[np.float32]:
        scores = columns[:, self._columns]
        start = 0
        for _, ids in self.groups:
            part = scores[:, start : start + len(ids)]
            part[:] = -np.sort(-part, axis=1)
            start += len(ids)
        with np.errstate(invalid="ignore"):  # no probability on any class: NaN, counted as an error
            return np.asarray(scores / scores.sum(axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class PooledClassifier(ModelWrapper):
    """A classifier whose columns are the classes of a benchmark, each the mean over the columns of its ids.

    A class of many ids has no advantage over one of few (Geirhos et al.).
    """

    model: Model
    groups: tuple[tuple[str, tuple[int, ...]], ...]  # class, and the columns that count as it
    others: tuple[int, ...]  # columns of no class, where they compete
    described: str

    @property
    def name(self) -> str:
        """The address, with the scoring."""
        return f"{self.model.name} ({self.described})"

    @property
    def scoring(self) -> str:
        """How the columns compete, in words."""
        return self.described

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes, then the columns of no class."""
        return (*(label for label, _ in self.groups), *(self.model.labels[column] for column in self.others))

    @property
    def identity(self) -> str:
        """Hash of the model's own parts and of which columns are pooled."""
        return identity_hash(self, ["mean", self.groups, self.others, self.model.labels, *self.model.details])

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Scores that sum to 1, (len(images), len(labels))."""
        return self._pool(self.model(images))

    def regroup(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores of the classes, (n, labels), from the columns of the `base`."""
        return self._pool(self.model.regroup(scores))

    def _pool(self, columns: NDArray[np.float32]) -> NDArray[np.float32]:
        means = [columns[:, list(ids)].mean(axis=1, dtype=np.float64) for _, ids in self.groups]
        scores = np.column_stack([*means, columns[:, list(self.others)]])
        with np.errstate(invalid="ignore"):  # no probability on any class: NaN, counted as an error
            return np.asarray(scores / scores.sum(axis=1, keepdims=True), np.float32)


def regroup_columns(model: Model, space: LabelSpace, labels: Sequence[str], scoring: Scoring) -> Model:
    """The model over a benchmark's labels; a model without scores per column is unchanged."""
    if not model.gives_scores:
        return model
    column_of = {label: column for column, label in enumerate(model.labels)}
    wanted = list(dict.fromkeys(labels))
    groups = tuple((label, _columns(model, space, column_of, label)) for label in wanted)
    kind, how = (PooledClassifier, ", mean of columns") if space.pooling == "mean" else (ScoredClassifier, "")
    if scoring == "subset":
        return kind(model, groups, (), f"subset: {len(wanted)} classes{how}")
    used = {column for _, columns in groups for column in columns}
    others = tuple(column for column in range(len(model.labels)) if column not in used)
    _check_names(model, groups, others)
    return kind(model, groups, others, f"all {len(model.labels)} columns{how}")


def _columns(model: Model, space: LabelSpace, column_of: dict[str, int], label: str) -> tuple[int, ...]:
    """The columns that count as a class: those of its ids, else (zero-shot models) the one of its name."""
    ids = space.ids_of(label) or (label,)
    missing = [name for name in ids if name not in column_of]
    if not missing:
        return tuple(column_of[name] for name in ids)
    if label in column_of:
        return (column_of[label],)
    raise UserError(
        f"expected {model.name} to have a column for '{missing[0]}' of the class '{label}', it has none;"
        f" its labels look like '{model.labels[0]}'; say which of them count as '{label}' in a classes.json"
    )


def _check_names(model: Model, groups: Sequence[tuple[str, tuple[int, ...]]], others: Sequence[int]) -> None:
    """Refuse two columns of one name: their answers could not be distinguished."""
    clash = {label for label, _ in groups} & {model.labels[column] for column in others}
    if clash:
        raise UserError(
            f"expected the class '{min(clash)}' to accept the column of that name in {model.name},"
            f" but its ids leave it out"
        )
