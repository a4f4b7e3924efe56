"""Whether a model is right from the background alone: its answers without the object, against guessing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from counterfoil.statistics.answers import Condition, Details
from counterfoil.statistics.chance import guess_rate
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.intervals import RATE, Estimate, estimate


class BackgroundAnswer(NamedTuple):
    """The accuracy of one model on pictures without the object, in percent, and that of guessing."""

    model: str
    condition: Condition
    accuracy: Estimate  # 95 % interval over photos
    chance: float  # one of the competing classes; more where always giving the same answer would be right more often

    @property
    def above_chance(self) -> bool:
        """Whether the model is right from the background alone: its interval lies above guessing."""
        return self.accuracy.n >= FEWEST_PHOTOS and self.accuracy.ci_low > self.chance


def measure_background_answers(details: Details, classes: Mapping[str, int]) -> list[BackgroundAnswer]:
    """Return one row per model and condition without the object.

    Args:
        details: The answers with their labels.
        classes: The number of competing classes by model; those that occur where a model is not named.
    """
    answers = details.answers
    rows = []
    for model, name in enumerate(answers.models):
        competing = classes.get(name) or len(details.labels)
        for place in np.flatnonzero(answers.conditions_of({"presence"})):
            own = answers.scored & (answers.model == model) & (answers.condition == place)
            chance = guess_rate(details.label[own], details.answer[own], competing)
            accuracy = estimate(answers.rates[model, place], RATE).scaled(100)
            rows.append(BackgroundAnswer(name, answers.conditions[place], accuracy, 100 * chance))
    return rows
