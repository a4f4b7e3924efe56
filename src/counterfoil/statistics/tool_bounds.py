"""The interval of the difference between two models' losses, with the controls and the tool's spread in it.

A model that minds a filled hole more than another loses more to every edit that shows one, and that is no difference in
the attribute. So the difference is counted from the references and from each control that applies, photo by photo, and
its interval holds both; the spread is that of the difference between fills or masks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.control_losses import (
    CountedLosses,
    count_from_controls,
    one_sided_confidence,
    subtract_losses,
)
from counterfoil.statistics.drops import widen
from counterfoil.statistics.intervals import Interval, exact_mean
from counterfoil.statistics.photo_tests import mean_interval
from counterfoil.statistics.references import ReferenceRates, find_reference, tool_uncertainty


@dataclass(frozen=True)
class ToolBounds:
    """What the tool may have to do with the losses of the models of one table; computed on demand and kept."""

    answers: Answers
    places: Mapping[Condition, Sequence[int]]  # the conditions that each row is about
    _references: dict[Condition, list[ReferenceRates]] = field(default_factory=dict)
    _counted: dict[tuple[Condition, int], dict[str, CountedLosses]] = field(default_factory=dict)

    def bound_difference(
        self, condition: Condition, models: tuple[int, int], gaps: NDArray[np.float64], confidence: float
    ) -> Interval:
        """The interval of the first model's mean loss minus the second's.

        Args:
            condition: The row.
            models: Positions of the two models.
            gaps: The difference of each photo against the references, (photos,).
            confidence: Of the interval.

        Returns:
            The smallest interval that holds the difference whether it is counted from the references or from a control.
        """
        readings = [(gaps, confidence)]
        first, second = (self._count(condition, model) for model in models)
        for control in first.keys() & second.keys():
            values, _ = subtract_losses(first[control], second[control])
            readings.append((values, one_sided_confidence(confidence)))
        spread = self._spread(condition, models, len(gaps))
        bounds = [
            widen(exact_mean(values), mean_interval(values, 4, confidence=level), spread) for values, level in readings
        ]
        return Interval(min(own.low for own in bounds), max(own.high for own in bounds))

    def _reference(self, condition: Condition) -> list[ReferenceRates]:
        if condition not in self._references:
            self._references[condition] = [find_reference(self.answers, place) for place in self.places[condition]]
        return self._references[condition]

    def _count(self, condition: Condition, model: int) -> dict[str, CountedLosses]:
        if (condition, model) not in self._counted:
            counted = count_from_controls(self.answers, self.places[condition], self._reference(condition), model)
            self._counted[condition, model] = {own.control: own for own in counted}
        return self._counted[condition, model]

    def _spread(self, condition: Condition, models: tuple[int, int], photos: int) -> float:
        """By how much the difference changes with another fill or mask, as a share; NaN where that was not measured."""
        first, second = models
        shifts = [
            {check: (shift[first] - shift[second])[None] for check, shift in reference.shifts.items()}
            for reference in self._reference(condition)
        ]
        edits = [self.answers.conditions[place].edit for place in self.places[condition]]
        return tool_uncertainty(shifts, 0, edits, photos=photos)
