"""The losses of a row counted from a control in place of the original: what is left without the traces of editing.

A drop against the original holds the attribute and the traces of the edit. How much of a control's cost is in it is not
known, so the interval of a drop holds for both ends: all of it, and nothing (drops.py). A photo without the control
has the mean cost of the photos that were answered like it before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.registry import shows_fill, shows_tool
from counterfoil.statistics.answers import FILL_CONTROL, Answers
from counterfoil.statistics.intervals import exact_mean
from counterfoil.statistics.photo_tests import AnswerCount
from counterfoil.statistics.references import ORIGINAL, ReferenceRates, pool_pictures

CONTROL = "control"
FEWEST_CONTROLS = 10  # photos with a control; from fewer nothing is concluded
_UNSEEN = 2  # photos that a control loses, and as many that it gains, added to those seen
_ROUNDED = 1e-10  # below it a sum of squares is float error


class CountedLosses(NamedTuple):
    """One model's losses under a row, counted from one control, photo by photo."""

    control: str
    losses: NDArray[np.float64]  # (photos,), NaN where unanswered; without the control, what is expected there
    original: NDArray[np.float64]  # (photos,): rate before
    cost: NDArray[np.float64]  # (photos,): of the control, NaN where a photo has none
    answers: AnswerCount


class ControlLosses(NamedTuple):
    """The losses of one model's row, counted from one control."""

    control: str
    values: NDArray[np.float64]  # (photos,): their mean is the drop beyond the control, their spread that of the mean
    answers: AnswerCount


def losses_from_controls(
    answers: Answers, places: Sequence[int], references: Sequence[ReferenceRates], model: int
) -> list[ControlLosses]:
    """The losses under the conditions of a row from each control that applies to it."""
    return [
        ControlLosses(own.control, *_spread_of_mean(own.losses, [(1, own)], own.answers))
        for own in count_from_controls(answers, places, references, model)
    ]


def count_from_controls(
    answers: Answers, places: Sequence[int], references: Sequence[ReferenceRates], model: int
) -> list[CountedLosses]:
    """The losses of every photo under the conditions of a row, counted from each control that applies to it.

    `control` applies to edits that show the mask's edge or a fill, `fill-control` to those that show a fill. A
    condition whose reference is another edit has the same traces on both sides: it keeps its reference.
    """
    counted = []
    for name, (rates, applies) in _controls(answers, places, references).items():
        cost = answers.original_rates[model] - rates[model]
        if any(applies) and np.isfinite(cost).sum() >= FEWEST_CONTROLS:
            original = answers.original_rates[model]
            expected = _fit_costs(original, cost).expect(original)  # of photos without the control
            before = original - np.where(np.isfinite(cost), cost, expected)
            sides = [before if own else given.rates[model] for own, given in zip(applies, references, strict=True)]
            scored = answers.tally.scored[model, list(places)]
            losses = pool_pictures(np.stack(sides) - answers.rates[model, list(places)], scored)
            count: AnswerCount = 4 if any(own.answers == 4 for own in references) else 2
            counted.append(CountedLosses(name, losses, original, cost, count))
    return counted


def subtract_losses(
    first: CountedLosses, second: CountedLosses | NDArray[np.float64]
) -> tuple[NDArray[np.float64], AnswerCount]:
    """Values with the mean of the first losses minus the second, photo by photo, and with the spread of that mean.

    The second are losses against their reference, (photos,), or counted from a control too: those of another model,
    or of another edit.
    """
    if isinstance(second, CountedLosses):
        return _spread_of_mean(first.losses - second.losses, [(1, first), (-1, second)], 4)
    return _spread_of_mean(first.losses - second, [(1, first)], 4)


def one_sided_confidence(confidence: float) -> float:
    """The confidence of a two-sided interval each of whose bounds alone has this one.

    Between nothing and all of a control's cost the true drop lies on one side of the drop counted from the control,
    so it can be missed on that side only, and the other side has nothing to spend (Imbens and Manski, 2004).
    """
    return 2.0 * confidence - 1.0


def _controls(
    answers: Answers, places: Sequence[int], references: Sequence[ReferenceRates]
) -> Mapping[str, tuple[NDArray[np.float64], list[bool]]]:
    """By control its rates, (models, samples), and which conditions it applies to."""
    edits = [answers.conditions[place] for place in places]
    pasted = [own.attribute != CONTROL and shows_tool(own.edit) for own in edits]
    filled = [own.attribute != CONTROL and shows_fill(own.edit, own.level) for own in edits]
    against_original = [own.name == ORIGINAL for own in references]
    return {
        name: (rates, [one and other for one, other in zip(applies, against_original, strict=True)])
        for name, rates, applies in (
            (CONTROL, answers.control_rates, pasted),
            (FILL_CONTROL, answers.fill_control_rates, filled),
        )
    }


class _CostLine(NamedTuple):
    """What a control costs by how a photo was answered before: least squares over the photos that have the control.

    With one answer a photo these are two means: of the photos that were right, and of those that were wrong, which
    have nothing to lose.
    """

    photos: int
    original: float  # mean rate before
    cost: float  # mean cost
    slope: float
    squares: float  # of the rates before about their mean

    def expect(self, original: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cost by the rate before."""
        return np.asarray(self.cost + self.slope * (original - self.original))

    def weigh(self, original: NDArray[np.float64], at: float) -> NDArray[np.float64]:
        """How much the cost of each photo counts in the cost that is expected at a rate before."""
        lever = (at - self.original) * (original - self.original) / self.squares if self.squares > 0 else 0.0
        return np.asarray(1.0 / self.photos + lever)


def _fit_costs(original: NDArray[np.float64], cost: NDArray[np.float64]) -> _CostLine:
    known = np.isfinite(cost)
    before, mean = exact_mean(original[known]), exact_mean(cost[known])
    apart = original[known] - before
    squares = math.fsum((apart**2).tolist())
    slope = math.fsum((apart * (cost[known] - mean)).tolist()) / squares if squares > _ROUNDED else 0.0
    return _CostLine(int(known.sum()), before, mean, slope, squares if squares > _ROUNDED else 0.0)


def _spread_of_mean(
    losses: NDArray[np.float64], sides: Sequence[tuple[int, CountedLosses]], count: AnswerCount
) -> tuple[NDArray[np.float64], AnswerCount]:
    """Values whose mean is that of the losses and whose standard error is that of the mean.

    Where every photo has the control these are the losses. Elsewhere each photo with a control stands for others too,
    through the cost that is expected of them, and what it adds to the spread is added to its value. Values of
    four photos that were not seen, two that the control loses and two that it gains, keep few photos that agree from
    passing for certainty: of ten photos none may be lost where a control costs 20 points. `sides` are what the losses
    are made of, each with its sign.
    """
    used = np.isfinite(losses)
    mean = exact_mean(losses)
    influence, involved = np.where(used, losses - mean, 0.0) / max(used.sum(), 1), used.copy()
    unseen: list[float] = []
    for sign, own in sides:
        known = np.isfinite(own.cost)
        without = used & ~known
        if not without.any():
            continue
        line = _fit_costs(own.original, own.cost)
        beyond = np.where(known, own.cost - line.expect(own.original), 0.0)
        weights = line.weigh(own.original, exact_mean(own.original[without]))
        share = float(without.sum() / used.sum())
        influence -= sign * share * np.where(known, beyond * weights, 0.0)
        involved |= known
        unseen += _UNSEEN * [share / (line.photos + 2 * _UNSEEN), -share / (line.photos + 2 * _UNSEEN)]
    if not unseen:
        return losses[used], count
    pulls = np.append(influence[involved], unseen)
    return mean + len(pulls) * pulls, 4
