"""All models' answers in columns, with the rates of right answers by model, condition and photo."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.types import Attribute, EditLevel

Key = TypeVar("Key")
Codes: TypeAlias = "NDArray[np.signedinteger[Any]]"  # positions in a tuple of names
Scores: TypeAlias = "NDArray[np.floating[Any]]"  # probabilities; sums of them are taken in double precision

ALL = "all"  # in place of an attribute, edit or level: all together
NO_LABEL = -1
FILL_CONTROL = "fill-control"  # an edit of the attribute control: what a visible fill costs, not the tool at rest
REFERENCES: frozenset[Attribute] = frozenset({"original", "control", "presence"})  # not part of an overall accuracy
NO_ATTRIBUTE: frozenset[Attribute] = REFERENCES | {"combination"}  # not ranked among the attributes
NO_FAILURE: frozenset[Attribute] = frozenset({"original", "presence"})  # without the object, an error is no failure
_SHARE_UNITS = 1_000_000  # shares are summed as integer millionths of a percent: row order cannot change the sum


class Condition(NamedTuple):
    """The condition of a photo: one row of the table of drops."""

    attribute: Attribute
    edit: str
    level: str


class Tally(NamedTuple):
    """Answers counted by model, condition and photo."""

    right: NDArray[np.int32]  # (models, conditions, samples)
    scored: NDArray[np.int32]  # (models, conditions, samples)
    object_share: NDArray[np.float64]  # (models, conditions, samples), mean over replicates, NaN where unknown


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers in columns of equal length; the first three columns are positions in the tuples of names.

    Positions may be of any integer type; tables of millions of rows use the shortest.
    """

    models: tuple[str, ...]  # in the order of the table
    conditions: tuple[Condition, ...]  # in the order of the table
    samples: Sequence[str]
    model: Codes
    condition: Codes
    sample: Codes
    replicate: Codes
    correct: NDArray[np.bool_]
    scored: NDArray[np.bool_]
    object_share: NDArray[np.float64]  # percent, NaN where unknown
    references: Mapping[EditLevel, EditLevel] = field(default_factory=dict)  # that a collection declares for its own

    def model_index(self, model: str) -> int:
        """Return the position of a model; raises `UserError` where the name is unknown."""
        if model not in self.models:
            raise UserError(f"expected one of the models {', '.join(self.models)}, got {model}")
        return self.models.index(model)

    def conditions_of(self, attributes: Collection[str]) -> NDArray[np.bool_]:
        """Mask of the conditions that belong to these attributes, (conditions,)."""
        return np.array([condition.attribute in attributes for condition in self.conditions], bool)

    def edits_named(self, edit: str) -> NDArray[np.bool_]:
        """Mask of the conditions of an edit, (conditions,)."""
        return np.array([condition.edit == edit for condition in self.conditions], bool)

    def scored_rows(self, model: str, attributes: Collection[str]) -> NDArray[np.bool_]:
        """Mask of the rows that are scored answers of a model under these attributes, (rows,)."""
        rows: NDArray[np.bool_] = self.scored & (self.model == self.model_index(model))
        rows &= self.conditions_of(attributes)[self.condition]
        return rows

    @cached_property
    def picture(self) -> Codes:
        """A number for the picture of each row, the same for every model, (rows,)."""
        shape = (len(self.conditions), len(self.samples), int(self.replicate.max(initial=0)) + 1)
        return shorten_codes(np.ravel_multi_index((self.condition, self.sample, self.replicate), shape))

    @cached_property
    def cell(self) -> Codes:
        """The position of each row in a flattened array (models, conditions, samples), (rows,)."""
        return shorten_codes(np.ravel_multi_index((self.model, self.condition, self.sample), self.shape))

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of models, conditions and samples."""
        return len(self.models), len(self.conditions), len(self.samples)

    @cached_property
    def tally(self) -> Tally:
        """Counts of right and scored answers; raises where an answer occurs twice."""
        _refuse_doubles(self)
        cell, scored = self.cell, self.scored
        known = scored & np.isfinite(self.object_share)
        units = np.rint(self.object_share[known] * _SHARE_UNITS)
        with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unknown
            share = self._sum(cell[known], units) / _SHARE_UNITS / self._sum(cell[known])
        return Tally(
            right=self._sum(cell[scored & self.correct]).astype(np.int32),
            scored=self._sum(cell[scored]).astype(np.int32),
            object_share=share,
        )

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """The share of right answers over the replicates, (models, conditions, samples); NaN where none was scored."""
        with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
            return self.tally.right / self.tally.scored

    @cached_property
    def original_rates(self) -> NDArray[np.float64]:
        """The share of right answers to the original, (models, samples); NaN where there is none."""
        return self._attribute_rates("original")

    @cached_property
    def control_rates(self) -> NDArray[np.float64]:
        """The share of right answers to the control, (models, samples); NaN where there is none."""
        return self._rates_of(self.conditions_of({"control"}) & ~self.edits_named(FILL_CONTROL))

    @cached_property
    def fill_control_rates(self) -> NDArray[np.float64]:
        """The share of right answers to the filled hole beside the object, (models, samples); NaN without one."""
        return self._rates_of(self.conditions_of({"control"}) & self.edits_named(FILL_CONTROL))

    @property
    def losses(self) -> NDArray[np.float64]:
        """The loss of each photo under each condition, (models, conditions, samples); NaN where one is unanswered."""
        return self.original_rates[:, None, :] - self.rates  # not kept: as large as all other tables of rates

    def mean_losses(self, conditions: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The loss of each photo, mean over those of the conditions that were answered, (models, samples)."""
        rates = self.rates[:, conditions]
        with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
            return np.asarray(self.original_rates - np.nansum(rates, axis=1) / np.isfinite(rates).sum(axis=1))

    @property
    def unscored(self) -> dict[str, int]:
        """The number of answers of each model that could not be scored and are excluded."""
        counts = np.bincount(self.model[~self.scored], minlength=len(self.models))
        return {model: int(n) for model, n in zip(self.models, counts, strict=True)}

    def _attribute_rates(self, attribute: Attribute) -> NDArray[np.float64]:
        return self._rates_of(self.conditions_of({attribute}))

    def _rates_of(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        right, scored = (counts[:, chosen].sum(axis=1) for counts in self.tally[:2])
        with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
            return np.asarray(right / scored, np.float64)

    def _sum(self, cell: Codes, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        sums = np.bincount(cell, weights, minlength=int(np.prod(self.shape)))
        return sums.reshape(self.shape).astype(np.float64, copy=False)


@dataclass(frozen=True, kw_only=True)
class Details:
    """Columns as long as the answers; labels are positions in `labels`, -1 where there is none.

    Positions may be of any integer type, and scores of the precision in which the tables have them.
    """

    answers: Answers
    labels: tuple[str, ...]
    label: Codes  # the true class
    answer: Codes  # the class ranked first
    true_score: Scores  # probability of the true class
    top_score: Scores  # probability of the answer
    other_score: Scores  # highest probability of a class that is not the true one
    donor: Codes  # the class of the photo or texture that the background or texture is from
    centre: NDArray[np.float64]  # (rows, 2), object's centre as x and y shares of the picture, NaN where unknown

    @property
    def photo_labels(self) -> NDArray[np.intp]:
        """The true class of each photo, (samples,)."""
        labels = np.full(len(self.answers.samples), NO_LABEL, np.intp)
        labels[self.answers.sample] = self.label
        return labels


def encode_labels(values: Iterable[Key], known: Sequence[Key] = ()) -> tuple[tuple[Key, ...], NDArray[np.intp]]:
    """Return the distinct values, known ones first, and the position of each value among them."""
    kept = list(values)
    codes = {value: position for position, value in enumerate(dict.fromkeys((*known, *kept)))}
    return tuple(codes), np.fromiter(map(codes.__getitem__, kept), np.intp, len(kept))


def shorten_codes(codes: Codes) -> Codes:
    """Return codes of 0 or more in as few bytes as the largest allows: a table may have millions of rows."""
    most = int(codes.max(initial=0))
    kind = next(kind for kind in (np.int8, np.int16, np.int32, np.int64) if most <= np.iinfo(kind).max)
    return codes.astype(kind, copy=False)


def pool_by_attribute(answers: Answers) -> Answers:
    """Return the answers with all edits and levels of an attribute as replicates of one condition.

    `fill-control` stays a condition of its own: its filled hole is no replicate of the control.
    """
    return _pool(
        answers,
        [Condition(row.attribute, FILL_CONTROL if row.edit == FILL_CONTROL else ALL, "") for row in answers.conditions],
    )


def pool_conditions(answers: Answers) -> Answers:
    """Return the answers with all pictures as replicates of one condition: those of a report's overall accuracy."""
    counted = ~answers.conditions_of(REFERENCES)
    pooled = _pool(answers, [Condition("original", ALL, "")] * len(answers.conditions))
    return replace(pooled, scored=answers.scored & (counted[answers.condition] if counted.any() else True))


def _pool(answers: Answers, pooled: Sequence[Condition]) -> Answers:
    conditions, position = encode_labels(pooled)
    replicates = int(answers.replicate.max(initial=0)) + 1
    return replace(
        answers,
        conditions=conditions,
        condition=position[answers.condition],
        replicate=answers.condition.astype(np.intp) * replicates + answers.replicate,
    )


def _refuse_doubles(answers: Answers) -> None:
    replicates = int(answers.replicate.max(initial=0)) + 1
    variant = answers.cell.astype(np.int64) * replicates + answers.replicate
    times = np.bincount(variant)
    if times.max(initial=0) > 1:
        row = int(np.argmax(times[variant]))
        condition = answers.conditions[answers.condition[row]]
        raise ValueError(
            f"expected one answer per variant, got {times.max()} of {answers.models[answers.model[row]]} to "
            f"{answers.samples[answers.sample[row]]}, {condition.edit} {condition.level}"
        )
