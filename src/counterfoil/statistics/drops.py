"""The table of drops: the drop of each model under each edit, paired by photo; and the mean of a model's drops.

A verdict is about `drop_vs_reference`: against what the edit declares as its reference, by the score test over photos,
corrected within its family (families.py). The interval that is printed with it has the same level, the spread between
the tools is part of it, and it holds whether the drop is counted from the reference or from a control that applies to
the edit (control_losses.py): a loss that a control explains is not clear.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import ALL, FILL_CONTROL, NO_ATTRIBUTE, Answers, Condition
from counterfoil.statistics.control_losses import ControlLosses, losses_from_controls, one_sided_confidence
from counterfoil.statistics.families import Correction, correct_tests, family_of
from counterfoil.statistics.intervals import (
    Estimate,
    Interval,
    exact_mean,
    percentile_interval,
    resampled_means,
)
from counterfoil.statistics.photo_tests import AnswerCount, estimate_mean, mean_interval, p_of_mean
from counterfoil.statistics.references import (
    ORIGINAL,
    OWN_REFERENCES,
    ReferenceRates,
    find_reference,
    list_conditions,
    pool_attributes,
    pool_pictures,
    tool_uncertainty,
)
from counterfoil.statistics.significance import SIGNIFICANCE
from counterfoil.types import TOOL_CHECKS, Drop

FEWEST_PHOTOS = 10  # a row with fewer is shown without a conclusion
_MODELS_RESAMPLED = 16  # together


class MeanDrop(NamedTuple):
    """The mean of a model's drops in points, and the number of conditions."""

    model: str
    conditions: int
    drop: Estimate


def measure_drops(answers: Answers) -> list[Drop]:
    """Return one row per model and condition other than the original; only photos scored on both sides count.

    Every photo counts once, whatever its number of replicates. Doubled pictures, which measure the tool, are no rows:
    they widen the interval of the row that they double.
    """
    return _measure([_Row(answers, answers.conditions[place], (place,)) for place in list_conditions(answers)], answers)


def measure_attribute_drops(answers: Answers) -> list[Drop]:
    """Return one row per model and attribute, all pictures of its edits and levels together, as replicates.

    The row of the control is without `fill-control`, which has its row in `measure_drops`.
    """
    groups = pool_attributes(answers)
    rows = [_Row(answers, Condition(name, ALL, ""), tuple(places)) for name, places in groups.items()]
    return _measure(rows, answers)


def count_from_references(answers: Answers, drops: Sequence[Drop]) -> list[Drop]:
    """Return the rows with the drop against the edit's reference in place of that against the original.

    `n`, `drop`, `ci_low` and `ci_high` are changed; the interval is 95 % for the row alone.
    """
    return [row if row.reference == ORIGINAL else _count_from_reference(answers, row) for row in drops]


def _count_from_reference(answers: Answers, row: Drop) -> Drop:
    place = answers.conditions.index(Condition(row.attribute, row.edit, row.level))
    model, reference = answers.model_index(row.model), find_reference(answers, place)
    own = estimate_mean(reference.rates[model] - answers.rates[model, place], reference.answers).scaled(100)
    return replace(row, n=own.n, drop=own.value, ci_low=own.ci_low, ci_high=own.ci_high)


def is_significant(drop: Drop) -> bool:
    """Whether the interval of the drop against its reference excludes zero, with enough photos that have both.

    The adjusted p is then below 0.05.
    """
    if drop.n_reference < FEWEST_PHOTOS:
        return False
    return (drop.reference_low > 0 or drop.reference_high < 0) and drop.p_adjusted < SIGNIFICANCE


def mean_drops(
    answers: Answers, rng: np.random.Generator, *, leave_out: Collection[str] = NO_ATTRIBUTE
) -> list[MeanDrop]:
    """Return the mean of each model's drops, every condition counting once; interval by photos resampled."""
    losses = answers.losses[:, ~answers.conditions_of({*leave_out, *TOOL_CHECKS})]
    rows: list[MeanDrop] = []
    for start in range(0, len(losses), _MODELS_RESAMPLED):  # all in the same resamples
        few = losses[start : start + _MODELS_RESAMPLED]
        drawn = resampled_means([*few], copy.deepcopy(rng)) if few.size else [*few]
        rows += [
            MeanDrop(model, len(own), _mean_drop(own, means))
            for model, own, means in zip(answers.models[start:], few, drawn, strict=False)
        ]
    return rows


@dataclass(frozen=True)
class _Row:
    """The conditions that one row of the table is about: one, or all of an attribute."""

    answers: Answers
    condition: Condition
    places: tuple[int, ...]

    @property
    def references(self) -> list[ReferenceRates]:
        return [find_reference(self.answers, place) for place in self.places]


@dataclass(frozen=True)
class _Pairs:
    """One model's rates of right answers by photo, (samples,), under the conditions of one row."""

    original: NDArray[np.float64]
    control: NDArray[np.float64]
    edited: NDArray[np.float64]
    losses: NDArray[np.float64]  # against the reference
    answers: AnswerCount  # in a loss
    from_controls: Sequence[ControlLosses]  # the losses counted from each control that applies


def _measure(rows: Sequence[_Row], answers: Answers) -> list[Drop]:
    measured = []  # the drop of every model with the photos' losses, row by row
    for row in rows:
        references, edits = row.references, [answers.conditions[place].edit for place in row.places]
        for model in range(len(answers.models)):
            pairs = _pair(row, references, model)
            plain = _measure_drop(row, pairs, model)
            shifts = [own.shifts for own in references]
            uncertainty = tool_uncertainty(shifts, model, edits, photos=plain.n_reference)
            drop = replace(plain, reference=_name(references), tool_uncertainty=100 * uncertainty)
            measured.append((drop, pairs))
    by_model = sorted(measured, key=lambda entry: answers.models.index(entry[0].model))
    corrections = correct_tests([(drop.model, drop.attribute, drop.p_value) for drop, _ in by_model])
    return [_judge(drop, pairs, own) for (drop, pairs), own in zip(by_model, corrections, strict=True)]


def _name(references: Sequence[ReferenceRates]) -> str:
    names = {own.name for own in references}
    return names.pop() if len(names) == 1 else OWN_REFERENCES


def _pair(row: _Row, references: Sequence[ReferenceRates], model: int) -> _Pairs:
    answers, places = row.answers, list(row.places)
    right, scored = (counts[model, places] for counts in answers.tally[:2])  # (conditions, samples)
    losses = np.stack([own.rates[model] for own in references]) - answers.rates[model, places]
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
        edited = right.sum(axis=0) / scored.sum(axis=0)
    return _Pairs(
        original=answers.original_rates[model],
        control=answers.control_rates[model],
        edited=edited,
        losses=pool_pictures(losses, scored),
        answers=4 if any(own.answers == 4 for own in references) else 2,
        from_controls=losses_from_controls(answers, places, references, model),
    )


def _measure_drop(row: _Row, pairs: _Pairs, model: int) -> Drop:
    paired = np.isfinite(pairs.original) & np.isfinite(pairs.edited)
    controlled = paired & np.isfinite(pairs.control)
    differences = pairs.original[paired] - pairs.edited[paired]
    known = pairs.losses[np.isfinite(pairs.losses)]
    interval = mean_interval(differences)
    return Drop(
        row.answers.models[model],
        *row.condition,
        n=int(paired.sum()),
        accuracy_original=100 * exact_mean(pairs.original[paired]),
        accuracy_control=100 * exact_mean(pairs.control[controlled]),
        accuracy=100 * exact_mean(pairs.edited[paired]),
        drop=100 * exact_mean(differences),
        ci_low=100 * interval.low,
        ci_high=100 * interval.high,
        drop_vs_control=100 * exact_mean(pairs.control[controlled] - pairs.edited[controlled]),
        p_value=p_of_mean(known, pairs.answers),
        object_share=_mean_share(row, model, paired),
        n_reference=len(known),
        accuracy_reference=100 * exact_mean(pairs.losses + pairs.edited),
        drop_vs_reference=100 * exact_mean(known),
        family=family_of(row.condition.attribute),
        controls=" + ".join(own.control for own in pairs.from_controls),
        drop_vs_fill_control=_mean_of(pairs.from_controls, FILL_CONTROL),
    )


def _mean_of(counted: Sequence[ControlLosses], control: str) -> float:
    """The drop in points counted from a control; NaN where that control does not apply."""
    return next((100 * exact_mean(own.values) for own in counted if own.control == control), math.nan)


def _mean_share(row: _Row, model: int, paired: NDArray[np.bool_]) -> float:
    """The object's mean share of the picture; of several conditions, every picture counts once per photo."""
    places = list(row.places)
    tally = row.answers.tally
    return exact_mean(pool_pictures(tally.object_share[model, places], tally.scored[model, places])[paired])


def _judge(drop: Drop, pairs: _Pairs, correction: Correction) -> Drop:
    """The row with its corrected p and the interval of the same level."""
    if math.isnan(correction.confidence):
        return drop
    one_sided = one_sided_confidence(correction.confidence)
    sides = [(pairs.losses[np.isfinite(pairs.losses)], pairs.answers, correction.confidence)]
    sides += [(own.values, own.answers, one_sided) for own in pairs.from_controls]
    intervals = []
    for losses, count, confidence in sides:
        interval = mean_interval(losses, count, confidence=confidence).scaled(100)
        intervals.append(widen(100 * exact_mean(losses), interval, drop.tool_uncertainty))
    most = 100.0 * pairs.answers / 2  # no drop is larger, whatever the tool's spread adds
    return replace(
        drop,
        p_adjusted=correction.p_adjusted,
        reference_low=max(-most, min(own.low for own in intervals)),
        reference_high=min(most, max(own.high for own in intervals)),
    )


def widen(value: float, interval: Interval, uncertainty: float) -> Interval:
    """The interval with another uncertainty added to each side in quadrature; an unknown one adds nothing."""
    if not uncertainty > 0.0:
        return interval
    below, above = math.hypot(value - interval.low, uncertainty), math.hypot(interval.high - value, uncertainty)
    return Interval(value - below, value + above)


def _mean_drop(losses: NDArray[np.float64], drawn: NDArray[np.float64]) -> Estimate:
    """The mean over conditions of losses (conditions, photos), and its interval from their resampled means."""
    known = np.isfinite(losses)
    photos = int(known.any(axis=0).sum())
    if not known.any(axis=1).all() or not len(losses):
        return Estimate(math.nan, math.nan, math.nan, photos)
    value = float(np.mean(np.nanmean(losses, axis=1)))
    return Estimate(value, *percentile_interval(drawn.mean(axis=1)), photos).scaled(100)
