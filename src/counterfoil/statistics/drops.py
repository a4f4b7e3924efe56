"""Accuracy drop of each edit; photos that flipped, flip rates; mean of the drops, control left out."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition, Photos, Tally, count, original_rates, photo_rates
from counterfoil.statistics.intervals import (
    Estimate,
    benjamini_hochberg,
    holm,
    percentile_interval,
    resample_counts,
    score_interval,
)
from counterfoil.statistics.paired import mcnemar
from counterfoil.types import Attribute, Drop

FEWEST_PHOTOS = 10  # below this, a row is shown but nothing is said about it

_SIGNIFICANCE = 0.05


class _Comparison(NamedTuple):
    original: Photos
    control: Photos
    edited: Photos


def measure_drops(answers: Answers) -> list[Drop]:
    """One row per model and condition other than the original; only photos scored on both sides count.

    Every photo counts once, whatever its number of replicates. Both adjustments are over the whole table: every
    model and every condition, the control and the diagnostics included, since the report speaks about them too.
    """
    tally = count(answers)
    rows = [
        _row(answers, tally, (model, condition))
        for model in range(len(answers.models))
        for condition in range(len(answers.conditions))
        if answers.conditions[condition].attribute != "original"
    ]
    p_values = [row.p_value for row in rows]
    adjusted = zip(rows, holm(p_values), benjamini_hochberg(p_values), strict=True)
    return [replace(row, p_holm=p_holm, p_bh=p_bh) for row, p_holm, p_bh in adjusted]


def is_significant(drop: Drop) -> bool:
    """Whether the interval leaves out zero and the adjusted p is below 0.05."""
    return (drop.ci_low > 0 or drop.ci_high < 0) and drop.p_holm < _SIGNIFICANCE


def _row(answers: Answers, tally: Tally, place: tuple[int, int]) -> Drop:
    model, condition = place
    comparison = _Comparison(
        original=_photos_of(answers.conditions, tally, model, "original"),
        control=_photos_of(answers.conditions, tally, model, "control"),
        edited=Photos(tally.right[model, condition], tally.scored[model, condition]),
    )
    paired = (comparison.original.scored > 0) & (comparison.edited.scored > 0)
    row = _compare(answers.models[model], answers.conditions[condition], comparison)
    return replace(row, object_share=_mean(tally.object_share[model, condition][paired]))


def _compare(model: str, condition: Condition, comparison: _Comparison) -> Drop:
    original, control, edited = comparison
    paired = (original.scored > 0) & (edited.scored > 0)
    controlled = paired & (control.scored > 0)
    differences = original.rates(paired) - edited.rates(paired)
    interval = score_interval(differences)
    return Drop(
        model,
        *condition,
        n=int(paired.sum()),
        accuracy_original=100 * _mean(original.rates(paired)),
        accuracy_control=100 * _mean(control.rates(controlled)),
        accuracy=100 * _mean(edited.rates(paired)),
        drop=100 * _mean(differences),
        ci_low=100 * interval.low,
        ci_high=100 * interval.high,
        drop_vs_control=100 * _mean(control.rates(controlled) - edited.rates(controlled)),
        p_value=mcnemar(differences),
        p_holm=math.nan,
    )


def _photos_of(conditions: tuple[Condition, ...], tally: Tally, model: int, attribute: Attribute) -> Photos:
    chosen = [position for position, condition in enumerate(conditions) if condition.attribute == attribute]
    return Photos(tally.right[model, chosen].sum(axis=0), tally.scored[model, chosen].sum(axis=0))


def _mean(values: NDArray[np.float64]) -> float:
    """The mean over the numbers among the values, the same to the bit in any order; NaN where there is none."""
    numbers = values[np.isfinite(values)].tolist()
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


_NOT_TELLING = {"original", "presence"}  # being wrong where the object is gone is no failure


class Flipped(NamedTuple):
    """A variant that one model got wrong although it was right on the original."""

    model: str
    sample_id: str
    condition: Condition
    replicate: int


def flipped(answers: Answers, *, limit: int = 6) -> list[Flipped]:
    """At most `limit` flips per model and attribute, in the order of the table.

    Which ones is drawn by a hash of photo and edit, not by how striking they are; the model is not part of it, so
    that different models tend to show the same pictures.
    """
    groups: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(_flips(answers)):
        attribute = answers.conditions[answers.condition[row]].attribute
        groups[int(answers.model[row]), attribute].append(int(row))
    chosen = [row for rows in groups.values() for row in sorted(rows, key=lambda row: _lot(answers, row))[:limit]]
    chosen.sort(key=lambda row: (answers.model[row], answers.condition[row], _lot(answers, row)))
    return [_named(answers, row) for row in chosen]


def _flips(answers: Answers) -> NDArray[np.bool_]:
    tally = count(answers)
    originals = [condition.attribute == "original" for condition in answers.conditions]
    telling = [condition.attribute not in _NOT_TELLING for condition in answers.conditions]
    right, scored = tally.right[:, originals].sum(axis=1), tally.scored[:, originals].sum(axis=1)
    was_right: NDArray[np.bool_] = (scored > 0) & (right == scored)  # (models, samples)
    is_telling = np.array(telling, dtype=bool)[answers.condition]
    flips: NDArray[np.bool_] = was_right[answers.model, answers.sample] & is_telling & answers.scored & ~answers.correct
    return flips


def _named(answers: Answers, row: int) -> Flipped:
    return Flipped(
        answers.models[answers.model[row]],
        answers.samples[answers.sample[row]],
        answers.conditions[answers.condition[row]],
        int(answers.replicate[row]),
    )


def _lot(answers: Answers, row: int) -> bytes:
    flip = _named(answers, row)
    return hashlib.sha256("\0".join((flip.sample_id, *flip.condition, str(flip.replicate))).encode()).digest()


NO_ATTRIBUTE: frozenset[Attribute] = frozenset({"original", "control", "presence", "combination"})


class MeanDrop(NamedTuple):
    """The mean of a model's drops in points, over so many conditions."""

    model: str
    conditions: int
    drop: Estimate


def mean_drops(
    answers: Answers, rng: np.random.Generator, *, leave_out: Collection[str] = NO_ATTRIBUTE
) -> list[MeanDrop]:
    """The mean of each model's drops, every condition counting once; interval by photos resampled."""
    chosen = [c for c, condition in enumerate(answers.conditions) if condition.attribute not in leave_out]
    losses = original_rates(answers)[:, None, :] - photo_rates(answers)[:, chosen]
    counts = resample_counts(len(answers.samples), rng)
    return [MeanDrop(model, len(chosen), _mean_of_model(losses[m], counts)) for m, model in enumerate(answers.models)]


def _mean_of_model(losses: NDArray[np.float64], counts: NDArray[np.float64]) -> Estimate:
    known = np.isfinite(losses)
    if not known.any(axis=1).all() or not len(losses):
        return Estimate(math.nan, math.nan, math.nan, int(known.any(axis=0).sum()))
    value = float(np.mean(np.nanmean(losses, axis=1)))
    with np.errstate(invalid="ignore"):  # a resample without any answer to a condition has no mean
        means = (counts @ np.where(known, losses, 0.0).T) / (counts @ known.T.astype(np.float64))
    return Estimate(value, *percentile_interval(means.mean(axis=1)), int(known.any(axis=0).sum())).scaled(100)
