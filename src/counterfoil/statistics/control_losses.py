"""The losses of a row counted from a control in place of the original: what is left without the traces of editing.

A drop against the original holds the attribute and the traces of the edit. How much of a control's cost is in it is not
known, so the interval of a drop holds for both ends: all of it, and nothing (drops.py).
"""

from __future__ import annotations

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


class ControlLosses(NamedTuple):
    """The losses of one model's row, counted from one control."""

    control: str
    values: NDArray[np.float64]  # (photos,): their mean is the drop beyond the control, their spread that of the mean
    answers: AnswerCount


def losses_from_controls(
    answers: Answers, places: Sequence[int], references: Sequence[ReferenceRates], model: int
) -> list[ControlLosses]:
    """The losses under the conditions of a row from each control that applies to it.

    `control` applies to edits that show the mask's edge or a fill, `fill-control` to those that show a fill. A
    condition whose reference is another edit has the same traces on both sides: it keeps its reference.
    """
    counted = []
    for name, (rates, applies) in _controls(answers, places, references).items():
        cost = answers.original_rates[model] - rates[model]
        if any(applies) and np.isfinite(cost).sum() >= FEWEST_CONTROLS:
            before = _complete(answers.original_rates[model], cost)
            sides = [before if own else given.rates[model] for own, given in zip(applies, references, strict=True)]
            scored = answers.tally.scored[model, list(places)]
            losses = pool_pictures(np.stack(sides) - answers.rates[model, list(places)], scored)
            count: AnswerCount = 4 if any(own.answers == 4 for own in references) else 2
            counted.append(ControlLosses(name, *_spread_of_mean(losses, cost, count)))
    return counted


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


def _complete(original: NDArray[np.float64], cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rates under a control; a photo without one has the mean cost of the others."""
    known = np.isfinite(cost)
    return original - np.where(known, cost, exact_mean(cost[known]))


def _spread_of_mean(
    losses: NDArray[np.float64], cost: NDArray[np.float64], count: AnswerCount
) -> tuple[NDArray[np.float64], AnswerCount]:
    """Values whose mean is that of the losses and whose standard error is that of the mean.

    Where every photo has the control these are the losses. Elsewhere each photo with a control stands for others too,
    through the mean cost, and what it adds to the spread is added to its value.
    """
    used, known = np.isfinite(losses), np.isfinite(cost)
    if not (used & ~known).any():
        return losses[used], count
    mean, share = exact_mean(losses[used]), float((used & ~known).sum() / used.sum())
    influence = np.where(used, losses - mean, 0.0) / used.sum()
    influence -= share * np.where(known, cost - exact_mean(cost[known]), 0.0) / known.sum()
    either = used | known
    return mean + either.sum() * influence[either], 4
