"""Answers with several conditions as one: their pictures count as repetitions on the photo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from counterfoil.analyse import Answers, Condition
from counterfoil.analyse.accuracies import APART

ALL = "all"  # instead of an edit: all of an attribute together


def by_attribute(answers: Answers) -> Answers:
    """The same answers with all edits and levels of an attribute as replicates of one condition."""
    return _merged_conditions(answers, [Condition(row.attribute, ALL, "") for row in answers.conditions])


def together(answers: Answers) -> Answers:
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
