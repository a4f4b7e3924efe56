"""Answers in columns, tally by condition and photo; labels and confidences in columns; answers pooled by attribute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.types import Attribute

Key = TypeVar("Key")

_SHARE_UNITS = 1_000_000  # shares are added as whole millionths of a percent: the order of rows cannot move the sum


class Condition(NamedTuple):
    """What was done to a photo: one row of the table of drops."""

    attribute: Attribute
    edit: str
    level: str


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers in columns of equal length; the first three columns are positions in the tuples of names."""

    models: tuple[str, ...]  # in the order of the table
    conditions: tuple[Condition, ...]  # in the order of the table
    samples: tuple[str, ...]
    model: NDArray[np.intp]
    condition: NDArray[np.intp]
    sample: NDArray[np.intp]
    replicate: NDArray[np.intp]
    correct: NDArray[np.bool_]
    scored: NDArray[np.bool_]
    object_share: NDArray[np.float64]  # percent, NaN where unknown


class Photos(NamedTuple):
    """Right and scored answers of one model under one condition, photo by photo."""

    right: NDArray[np.int64]  # (samples,)
    scored: NDArray[np.int64]  # (samples,)

    def rates(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The share of right answers on each chosen photo, over its replicates."""
        return self.right[chosen] / self.scored[chosen]


class Tally(NamedTuple):
    """Answers counted by model, condition and photo."""

    right: NDArray[np.int64]  # (models, conditions, samples)
    scored: NDArray[np.int64]  # (models, conditions, samples)
    object_share: NDArray[np.float64]  # (models, conditions, samples), mean over replicates, NaN where unknown


def encode_labels(values: Iterable[Key], known: Sequence[Key] = ()) -> tuple[tuple[Key, ...], NDArray[np.intp]]:
    """The distinct values, known ones first, and the position of each value among them."""
    kept = list(values)
    codes = {value: position for position, value in enumerate(dict.fromkeys((*known, *kept)))}
    return tuple(codes), np.fromiter(map(codes.__getitem__, kept), np.intp, len(kept))


def count(answers: Answers) -> Tally:
    """Count right and scored answers; raise where one answer is there twice."""
    shape = (len(answers.models), len(answers.conditions), len(answers.samples))
    cell = np.ravel_multi_index((answers.model, answers.condition, answers.sample), shape)
    _refuse_doubles(answers, cell)
    scored = answers.scored
    known = scored & np.isfinite(answers.object_share)
    units = np.rint(answers.object_share[known] * _SHARE_UNITS)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "unknown"
        share = _sum(cell[known], shape, units) / _SHARE_UNITS / _sum(cell[known], shape)
    return Tally(
        right=_sum(cell[scored & answers.correct], shape).astype(np.int64),
        scored=_sum(cell[scored], shape).astype(np.int64),
        object_share=share,
    )


def place_of(answers: Answers, model: str) -> int:
    """The position of a model; a name that is not there is the caller's error."""
    if model not in answers.models:
        raise UserError(f"expected one of the models {', '.join(answers.models)}, got {model}")
    return answers.models.index(model)


def photo_rates(answers: Answers) -> NDArray[np.float64]:
    """The share of right answers over the replicates, (models, conditions, photos); NaN where none was scored."""
    tally = count(answers)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "unanswered"
        return tally.right / tally.scored


def original_rates(answers: Answers) -> NDArray[np.float64]:
    """The share of right answers to the original, (models, photos); NaN where there is none."""
    tally = count(answers)
    originals = [condition.attribute == "original" for condition in answers.conditions]
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "unanswered"
        rates: NDArray[np.float64] = tally.right[:, originals].sum(axis=1) / tally.scored[:, originals].sum(axis=1)
    return rates


def unscored(answers: Answers) -> dict[str, int]:
    """How many answers of each model could not be scored, and so count nowhere."""
    counts = np.bincount(answers.model[~answers.scored], minlength=len(answers.models))
    return {model: int(n) for model, n in zip(answers.models, counts, strict=True)}


def _sum(
    cell: NDArray[np.intp], shape: tuple[int, int, int], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    return np.bincount(cell, weights, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _refuse_doubles(answers: Answers, cell: NDArray[np.intp]) -> None:
    replicates = int(answers.replicate.max(initial=0)) + 1
    times = np.bincount(cell * replicates + answers.replicate)
    if times.max(initial=0) > 1:
        row = int(np.argmax(times[cell * replicates + answers.replicate]))
        condition = answers.conditions[answers.condition[row]]
        raise ValueError(
            f"expected one answer per variant, got {times.max()} of {answers.models[answers.model[row]]} to "
            f"{answers.samples[answers.sample[row]]}, {condition.edit} {condition.level}"
        )


APART = {"original", "control", "presence"}  # references, and pictures whose object is gone: no part of the overall


NO_LABEL = -1


@dataclass(frozen=True, kw_only=True)
class Details:
    """Columns of the length of the answers; labels are positions in `labels`, -1 where there is none."""

    answers: Answers
    labels: tuple[str, ...]
    label: NDArray[np.intp]  # the true class
    answer: NDArray[np.intp]  # the class ranked first
    true_score: NDArray[np.float64]  # probability of the true class
    top_score: NDArray[np.float64]  # probability of the answer
    other_score: NDArray[np.float64]  # highest probability of a class that is not the true one
    lender: NDArray[np.intp]  # the class of the photo or texture that lent background or texture
    centre: NDArray[np.float64]  # (rows, 2), object's centre as x and y shares of the picture, NaN where unknown


def photo_labels(details: Details) -> NDArray[np.intp]:
    """The true class of each photo, (photos,)."""
    labels = np.full(len(details.answers.samples), NO_LABEL, np.intp)
    labels[details.answers.sample] = details.label
    return labels


ALL = "all"  # instead of an edit: all of an attribute together


def pool_by_attribute(answers: Answers) -> Answers:
    """The same answers with all edits and levels of an attribute as replicates of one condition."""
    return _merged_conditions(answers, [Condition(row.attribute, ALL, "") for row in answers.conditions])


def pool_conditions(answers: Answers) -> Answers:
    """The same answers with all pictures as replicates of one condition; a report's overall is of the same ones."""
    telling = np.array([condition.attribute not in APART for condition in answers.conditions], bool)
    counted = telling[answers.condition] if telling.any() else True
    merged = _merged_conditions(answers, [Condition("original", ALL, "")] * len(answers.conditions))
    return replace(merged, scored=answers.scored & counted)


def _merged_conditions(answers: Answers, whole: Sequence[Condition]) -> Answers:
    distinct = list(dict.fromkeys(whole))
    place = [distinct.index(condition) for condition in whole]
    replicates = int(answers.replicate.max(initial=0)) + 1
    return replace(
        answers,
        conditions=tuple(distinct),
        condition=np.array(place, np.intp)[answers.condition],
        replicate=answers.condition * replicates + answers.replicate,
    )
