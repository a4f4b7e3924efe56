"""Models or attributes compared on the same photos: contrasts of two, and ranks of many with letters for ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import ALL, Answers, Condition
from counterfoil.statistics.families import Correction, correct_tests
from counterfoil.statistics.intervals import exact_mean
from counterfoil.statistics.photo_tests import AnswerCount, estimate_mean, mean_interval, p_of_mean
from counterfoil.statistics.references import attribute_losses, list_conditions, reference_losses
from counterfoil.statistics.significance import SIGNIFICANCE, holm
from counterfoil.types import TOOL_CHECKS, Attribute


class Contrast(NamedTuple):
    """The difference of two models under one condition, over the photos that both answered; in points."""

    first: str
    second: str
    condition: Condition
    n: int
    value_first: float  # drop in points, or accuracy in percent
    value_second: float
    difference: float  # value_first - value_second
    ci_low: float  # 95 %, of this difference alone
    ci_high: float
    p_value: float
    p_adjusted: float = math.nan  # corrected within the family of the two models, see families.py
    adjusted_low: float = math.nan  # the interval at the corrected level: it agrees with `p_adjusted`
    adjusted_high: float = math.nan


class Rank(NamedTuple):
    """One model or attribute with its mean drop in points; those that share a letter do not differ significantly."""

    name: str
    n: int
    drop: float
    letters: str


Pair: TypeAlias = tuple[str, str]
Measure: TypeAlias = Callable[[Answers], Mapping[Condition, NDArray[np.float64]]]


def compare_drops(answers: Answers, first: str, second: str) -> list[Contrast]:
    """Return the drop of the first minus the drop of the second, by condition: positive where the second loses less.

    A drop is against the edit's reference. The correction is within the two models: further models change nothing.
    """
    return contrast_drops(answers, [(first, second)])


def contrast_drops(answers: Answers, pairs: Sequence[Pair]) -> list[Contrast]:
    """Compare the drops of every pair under every condition; pair by pair, conditions in the order of the table."""
    return _contrasts(answers, pairs, _condition_losses, 4)


def contrast_attribute_drops(answers: Answers, pairs: Sequence[Pair]) -> list[Contrast]:
    """Compare the drops of every pair by attribute, all pictures of its edits and levels together."""
    return _contrasts(answers, pairs, _attribute_losses, 4)


def compare_accuracies(answers: Answers, first: str, second: str) -> list[Contrast]:
    """Return the accuracy of the first minus that of the second, by condition, the original included."""
    return contrast_accuracies(answers, [(first, second)])


def contrast_accuracies(answers: Answers, pairs: Sequence[Pair]) -> list[Contrast]:
    """Compare the accuracies of every pair under every condition, the original included."""
    return _contrasts(answers, pairs, _condition_rates, 2)


def keep_common_pictures(answers: Answers, models: Sequence[str]) -> Answers:
    """Return the answers of these models to the pictures that all of them answered.

    A model that gives no answer to hard pictures would otherwise be compared over easier ones.
    """
    places = [answers.model_index(model) for model in models]
    inside = answers.scored & np.isin(answers.model, places)
    times = np.bincount(answers.picture[inside], minlength=int(answers.picture.max(initial=0)) + 1)
    return replace(answers, scored=inside & (times[answers.picture] == len(set(places))))


def _condition_losses(answers: Answers) -> dict[Condition, NDArray[np.float64]]:
    return {answers.conditions[place]: reference_losses(answers, place) for place in list_conditions(answers)}


def _attribute_losses(answers: Answers) -> dict[Condition, NDArray[np.float64]]:
    return {Condition(attribute, ALL, ""): losses for attribute, losses in attribute_losses(answers).items()}


def _condition_rates(answers: Answers) -> dict[Condition, NDArray[np.float64]]:
    shown = np.flatnonzero(~answers.conditions_of(TOOL_CHECKS)).tolist()
    return {answers.conditions[place]: answers.rates[:, place] for place in shown}


def rank_models(answers: Answers, attribute: Attribute) -> list[Rank]:
    """Rank the models by their drop under an attribute against its references, smallest first."""
    return rank_rows(answers.models, attribute_losses(answers, attribute)[attribute], 4)


def rank_rows(names: Sequence[str], losses: NDArray[np.float64], count: AnswerCount = 2) -> list[Rank]:
    """Rank rows of losses (names, photos; NaN where unanswered) and letter them.

    Every pair is compared on the photos that both have (photo_tests.py); Holm's adjustment is over all pairs.
    Rows without any answer are left out.
    """
    answered = {name: row[np.isfinite(row)] for name, row in zip(names, losses, strict=True)}
    means = {name: 100 * float(row.mean()) for name, row in answered.items() if len(row)}
    order = sorted(means, key=means.__getitem__)
    ranked = losses[[list(names).index(name) for name in order]]
    letters = compact_letters(len(order), _differing_pairs(ranked, count))
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


def _contrasts(answers: Answers, pairs: Sequence[Pair], measure: Measure, count: AnswerCount) -> list[Contrast]:
    """The contrasts of what is measured (models, photos) by condition, corrected within each pair."""
    rows, gaps = [], []
    everywhere = measure(answers) if pairs else {}
    answered = np.zeros((len(answers.models), int(answers.picture.max(initial=0)) + 1), bool)
    answered[answers.model[answers.scored], answers.picture[answers.scored]] = True
    for pair in pairs:
        places = [answers.model_index(model) for model in pair]
        same = (answered[places[0]] == answered[places[1]]).all()
        values = everywhere if same else measure(keep_common_pictures(answers, pair))
        for condition, own in values.items():
            first, second = own[places]
            both = np.isfinite(first) & np.isfinite(second)
            gaps.append(first[both] - second[both])
            difference = estimate_mean(gaps[-1], count).scaled(100)
            row = Contrast(
                first=pair[0],
                second=pair[1],
                condition=condition,
                n=difference.n,
                value_first=100 * exact_mean(first[both]),
                value_second=100 * exact_mean(second[both]),
                difference=difference.value,
                ci_low=difference.ci_low,
                ci_high=difference.ci_high,
                p_value=p_of_mean(gaps[-1], count),
            )
            rows.append(row)
    corrections = correct_tests([((row.first, row.second), row.condition.attribute, row.p_value) for row in rows])
    return [_adjust(row, gap, own, count) for row, gap, own in zip(rows, gaps, corrections, strict=True)]


def _adjust(row: Contrast, gaps: NDArray[np.float64], correction: Correction, count: AnswerCount) -> Contrast:
    if math.isnan(correction.confidence):
        return row
    low, high = mean_interval(gaps, count, confidence=correction.confidence)
    return row._replace(p_adjusted=correction.p_adjusted, adjusted_low=100 * low, adjusted_high=100 * high)


def _without_pair(group: frozenset[int], first: int, second: int) -> list[frozenset[int]]:
    return [group - {second}, group - {first}] if {first, second} <= group else [group]


def _letter(place: int) -> str:
    return ascii_lowercase[place] if place < len(ascii_lowercase) else f"({place + 1})"


def _differing_pairs(losses: NDArray[np.float64], count: AnswerCount) -> set[tuple[int, int]]:
    pairs = list(itertools.combinations(range(len(losses)), 2))
    gaps = [losses[first] - losses[second] for first, second in pairs]
    p_values = holm([p_of_mean(gap[np.isfinite(gap)], count) for gap in gaps])
    return {pair for pair, p in zip(pairs, p_values, strict=True) if p < SIGNIFICANCE}
