"""Models or attributes compared on the same photos: contrasts of two, and ranks of many with letters for ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import NO_ATTRIBUTE, Answers, Condition
from counterfoil.statistics.intervals import estimate, exact_mean, score_test
from counterfoil.statistics.significance import SIGNIFICANCE, holm
from counterfoil.types import Attribute


class Contrast(NamedTuple):
    """The difference of two models under one condition, over the photos that both answered; in points."""

    first: str
    second: str
    condition: Condition
    n: int
    value_first: float  # drop in points, or accuracy in percent
    value_second: float
    difference: float  # value_first - value_second
    ci_low: float
    ci_high: float
    p_value: float
    p_holm: float = math.nan


class Rank(NamedTuple):
    """One model or attribute with its mean drop in points; those that share a letter do not differ significantly."""

    name: str
    n: int
    drop: float
    letters: str


def compare_drops(answers: Answers, first: str, second: str) -> list[Contrast]:
    """Return the drop of the first minus the drop of the second, by condition: positive where the second loses less."""
    rows = _contrasts(answers, answers.losses, (first, second))
    return adjust_contrasts([row for row in rows if row.condition.attribute != "original"])


def compare_accuracies(answers: Answers, first: str, second: str) -> list[Contrast]:
    """Return the accuracy of the first minus that of the second, by condition, the original included."""
    return adjust_contrasts(_contrasts(answers, answers.rates, (first, second)))


def adjust_contrasts(rows: Sequence[Contrast]) -> list[Contrast]:
    """Return the contrasts with p adjusted by Holm over all of them."""
    adjusted = holm([row.p_value for row in rows])
    return [row._replace(p_holm=p) for row, p in zip(rows, adjusted, strict=True)]


def rank_models(answers: Answers, attribute: Attribute) -> list[Rank]:
    """Rank the models by their drop under an attribute, smallest first."""
    return rank_rows(answers.models, answers.mean_losses(answers.conditions_of({attribute})))


def rank_attributes(answers: Answers, model: str) -> list[Rank]:
    """Rank the attributes by one model's drop, smallest first."""
    place = answers.model_index(model)
    names = list(dict.fromkeys(c.attribute for c in answers.conditions if c.attribute not in NO_ATTRIBUTE))
    losses = [answers.mean_losses(answers.conditions_of({name}))[place] for name in names]
    return rank_rows(names, np.array(losses).reshape(len(names), len(answers.samples)))


def rank_rows(names: Sequence[str], losses: NDArray[np.float64]) -> list[Rank]:
    """Rank rows of losses (names, photos; NaN where unanswered) and letter them.

    Every pair is compared on the photos that both have, by the score test; Holm's adjustment is over all pairs.
    Rows without any answer are left out.
    """
    answered = {name: row[np.isfinite(row)] for name, row in zip(names, losses, strict=True)}
    means = {name: 100 * float(row.mean()) for name, row in answered.items() if len(row)}
    order = sorted(means, key=means.__getitem__)
    ranked = losses[[list(names).index(name) for name in order]]
    letters = compact_letters(len(order), _differing_pairs(ranked))
    return [Rank(name, len(answered[name]), means[name], marks) for name, marks in zip(order, letters, strict=True)]


def compact_letters(count: int, different: set[tuple[int, int]]) -> list[str]:
    """The letters of `count` ranked items, given the pairs (lower, higher) that differ; a shared letter is a tie.

    Insert and absorb: start with one group of all; split it at every pair that differs; drop groups inside others.
    """
    groups: list[frozenset[int]] = [frozenset(range(count))]
    for first, second in sorted(different):
        split = [part for group in groups for part in _without_pair(group, first, second)]
        groups = [group for group in dict.fromkeys(split) if not any(group < other for other in split)]
    groups.sort(key=lambda group: sorted(group))
    return ["".join(_letter(place) for place, group in enumerate(groups) if thing in group) for thing in range(count)]


def _contrasts(answers: Answers, values: NDArray[np.float64], models: tuple[str, str]) -> list[Contrast]:
    """The contrasts of values (models, conditions, photos) under every condition."""
    first, second = (values[answers.model_index(model)] for model in models)
    return [_contrast(models, *row) for row in zip(answers.conditions, first, second, strict=True)]


def _contrast(
    models: tuple[str, str], condition: Condition, first: NDArray[np.float64], second: NDArray[np.float64]
) -> Contrast:
    both = np.isfinite(first) & np.isfinite(second)
    gaps = first[both] - second[both]
    difference = estimate(gaps).scaled(100)
    return Contrast(
        *models,
        condition,
        difference.n,
        value_first=100 * exact_mean(first[both]),
        value_second=100 * exact_mean(second[both]),
        difference=difference.value,
        ci_low=difference.ci_low,
        ci_high=difference.ci_high,
        p_value=score_test(gaps),
    )


def _without_pair(group: frozenset[int], first: int, second: int) -> list[frozenset[int]]:
    return [group - {second}, group - {first}] if {first, second} <= group else [group]


def _letter(place: int) -> str:
    return ascii_lowercase[place] if place < len(ascii_lowercase) else f"({place + 1})"


def _differing_pairs(losses: NDArray[np.float64]) -> set[tuple[int, int]]:
    pairs = list(itertools.combinations(range(len(losses)), 2))
    gaps = [losses[first] - losses[second] for first, second in pairs]
    p_values = holm([score_test(gap[np.isfinite(gap)]) for gap in gaps])
    return {pair for pair, p in zip(pairs, p_values, strict=True) if p < SIGNIFICANCE}
