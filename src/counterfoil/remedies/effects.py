"""What a remedy changed: accuracies before and after and the drops, photo by photo, with intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.registry import reference_of
from counterfoil.remedies.picture_answers import PhotoAnswers
from counterfoil.statistics.answers import NO_ATTRIBUTE, Condition
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.growth import Growth, compare_losses
from counterfoil.statistics.intervals import Estimate, exact_mean
from counterfoil.statistics.photo_tests import estimate_mean, p_of_mean
from counterfoil.statistics.significance import SIGNIFICANCE, holm
from counterfoil.types import EditLevel

ORIGINAL = "original"
Rates = NDArray[np.float64]  # (photos, conditions): share of right answers, NaN without one


class RightRates(NamedTuple):
    """The shares of right answers of one model to the pictures of every photo."""

    every: Rates  # all classes competing
    among: Rates  # only the photos' classes competing


@dataclass(frozen=True, kw_only=True)
class RateTable:
    """The shares of right answers before and after, over the same photos and pictures."""

    photos: tuple[str, ...]
    conditions: tuple[Condition, ...]
    before: RightRates
    after: RightRates

    @property
    def attributes(self) -> list[str]:
        """The attributes that are judged."""
        named = dict.fromkeys(condition.attribute for condition in self.conditions)
        return [name for name in named if name not in NO_ATTRIBUTE]

    def columns(self, attribute: str) -> list[int]:
        """The places of an attribute's conditions."""
        return [place for place, row in enumerate(self.conditions) if row.attribute == attribute]

    @property
    def original(self) -> int:
        """The place of the unedited photos among the conditions."""
        return next(place for place, row in enumerate(self.conditions) if row.attribute == ORIGINAL)

    def reference(self, column: int) -> int:
        """The place of what a condition is compared with: what its edit declares, where it was judged too."""
        own = self.conditions[column]
        declared = reference_of(own.edit, own.level)
        places = {EditLevel(row.edit, row.level): place for place, row in enumerate(self.conditions)}
        return self.original if declared is None else places.get(declared, self.original)

    def losses(self, rates: Rates, columns: Sequence[int]) -> NDArray[np.float64]:
        """Each photo's mean loss against the references of these conditions, those without both left out."""
        return _mean_of(rates[:, [self.reference(column) for column in columns]] - rates[:, list(columns)])


class Change(NamedTuple):
    """Accuracies in percent before and after, and the change in points with its 95 % interval."""

    before: float
    after: float
    change: Estimate


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a remedy did to one attribute, or to one edit at one level of it."""

    attribute: str
    edit: str  # "" for all edits of the attribute together
    level: str
    every: Change  # accuracy, all classes competing
    among: Change  # accuracy, only the photos' classes competing
    drop: Change  # reference minus edited, only the photos' classes competing: positive changes are a repair
    reference: str = ORIGINAL  # of the edits, as each declares it
    p_adjusted: float = math.nan  # of the drop's change, corrected over the attributes

    @property
    def is_significant(self) -> bool:
        """Whether the drop changed."""
        return self.drop.change.n >= FEWEST_PHOTOS and self.p_adjusted < SIGNIFICANCE


def tabulate(photos: Sequence[PhotoAnswers], before: str, after: Mapping[str, str]) -> RateTable:
    """The table of rates; `after` names the model that judged each photo."""
    conditions = tuple(dict.fromkeys(row for photo in photos for row in photo.conditions))
    place_of = {row: place for place, row in enumerate(conditions)}

    def rates(photo: PhotoAnswers, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        right: list[list[float]] = [[] for _ in conditions]
        for row, answer in zip(photo.conditions, answers.tolist(), strict=True):
            right[place_of[row]].append(float(answer == photo.label))
        return np.array([exact_mean(np.array(values)) if values else math.nan for values in right])

    def table(names: Mapping[str, str]) -> RightRates:
        every = [rates(photo, photo.answers[names[photo.sample]]) for photo in photos]
        among = [rates(photo, photo.among[names[photo.sample]]) for photo in photos]
        return RightRates(np.array(every), np.array(among))

    same = {photo.sample: before for photo in photos}
    return RateTable(
        photos=tuple(photo.sample for photo in photos), conditions=conditions, before=table(same), after=table(after)
    )


def measure_effects(table: RateTable) -> list[Effect]:
    """One row per attribute, its p values corrected by Holm over the attributes, then one per edit and level."""
    rows = [_measure(table, table.columns(name), Condition(name, "", "")) for name in table.attributes]
    adjusted = holm([p for _, p in rows])
    whole = [replace(effect, p_adjusted=p) for (effect, _), p in zip(rows, adjusted, strict=True)]
    counted = [place for place, row in enumerate(table.conditions) if row.attribute != ORIGINAL]
    return [*whole, *(_measure(table, [place], table.conditions[place])[0] for place in counted)]


def _measure(table: RateTable, columns: Sequence[int], name: Condition) -> tuple[Effect, float]:
    edited = [_mean_of(rates[:, list(columns)]) for rates in (*table.before, *table.after)]
    every_before, among_before, every_after, among_after = edited
    drops = [table.losses(rates.among, columns) for rates in (table.before, table.after)]
    effect = Effect(
        attribute=name.attribute, edit=name.edit, level=name.level, reference=_name_references(table, columns),
        every=compare_rates(every_before, every_after), among=compare_rates(among_before, among_after),
        drop=compare_rates(*drops, shrinks=True),
    )  # fmt: skip
    gaps = drops[0] - drops[1]
    return effect, p_of_mean(gaps[np.isfinite(gaps)], 4)


def _name_references(table: RateTable, columns: Sequence[int]) -> str:
    rows = dict.fromkeys(table.conditions[table.reference(column)] for column in columns)
    names = [ORIGINAL if row.attribute == ORIGINAL else f"{row.edit} {row.level}".strip() for row in rows]
    return ", ".join(names)


def _mean_of(part: Rates) -> NDArray[np.float64]:
    """Each photo's mean over conditions, those without a picture left out."""
    known = np.isfinite(part)
    total = np.where(known, part, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), math.nan)


def measure_left_drop(table: RateTable, attribute: str) -> Estimate:
    """The drop of an attribute that is left after a remedy, in points, only the photos' classes competing."""
    return estimate_mean(table.losses(table.after.among, table.columns(attribute))).scaled(100)


def compare_rates(before: NDArray[np.float64], after: NDArray[np.float64], *, shrinks: bool = False) -> Change:
    """The change over the photos that have both; of a drop (four answers a photo), how much it shrinks."""
    both = np.isfinite(before) & np.isfinite(after)
    gaps = before - after if shrinks else after - before
    estimate = estimate_mean(gaps[both], 4 if shrinks else 2).scaled(100)
    return Change(100 * exact_mean(before[both]), 100 * exact_mean(after[both]), estimate)


def edited_change(table: RateTable, *, among: bool) -> Change:
    """The accuracy on all edited pictures together, every attribute with the same weight."""

    def mean(rates: RightRates) -> NDArray[np.float64]:
        part = rates.among if among else rates.every
        return _mean_of(np.stack([_mean_of(part[:, table.columns(name)]) for name in table.attributes], axis=1))

    return compare_rates(mean(table.before), mean(table.after))


def unedited_change(table: RateTable, *, among: bool) -> Change:
    """The accuracy on the unedited photos."""
    place = table.original
    before, after = (rates.among if among else rates.every for rates in (table.before, table.after))
    return compare_rates(before[:, place], after[:, place])


def unedited_loss(table: RateTable) -> Growth:
    """By how much the errors on unedited photos grew, only the photos' classes competing, as the gate judges it."""
    place = table.original
    return measure_loss(table.before.among[:, place], table.after.among[:, place])


def measure_loss(before: NDArray[np.float64], after: NDArray[np.float64]) -> Growth:
    """By how much the errors grew, from the shares of right answers of every photo."""
    return compare_losses("accuracy", 1.0 - before, 1.0 - after, 2)
