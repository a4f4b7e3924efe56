"""Models or attributes compared on the same photos: contrasts of two, and ranks of many with letters for ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from string import ascii_letters
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import ALL, Answers, Condition
from counterfoil.statistics.families import correct_tests
from counterfoil.statistics.intervals import Interval, exact_mean
from counterfoil.statistics.photo_tests import AnswerCount, estimate_mean, mean_interval, p_of_mean
from counterfoil.statistics.references import attribute_losses, list_conditions, pool_attributes, reference_losses
from counterfoil.statistics.significance import SIGNIFICANCE, holm_factors
from counterfoil.statistics.tool_bounds import ToolBounds
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
PairLosses: TypeAlias = Callable[[int, int], NDArray[np.float64]]  # of two rows, (2, photos)
Measure: TypeAlias = Callable[[Answers], Mapping[Condition, NDArray[np.float64]]]
Places: TypeAlias = Callable[[Answers], Mapping[Condition, Sequence[int]]]
Bounds: TypeAlias = Callable[[int, int, NDArray[np.float64], float], Interval]  # of two rows, their gaps, confidence


def compare_drops(answers: Answers, first: str, second: str) -> list[Contrast]:
    """Return the drop of the first minus the drop of the second, by condition: positive where the second loses less.

    A drop is against the edit's reference. The correction is within the two models: further models change nothing. The
    corrected interval holds the difference counted from a control too, and the tool's spread (tool_bounds.py).
    """
    return contrast_drops(answers, [(first, second)])


def contrast_drops(answers: Answers, pairs: Sequence[Pair]) -> list[Contrast]:
    """Compare the drops of every pair under every condition; pair by pair, conditions in the order of the table."""
    return _contrasts(answers, pairs, _condition_losses, 4, _condition_places)


def contrast_attribute_drops(answers: Answers, pairs: Sequence[Pair]) -> list[Contrast]:
    """Compare the drops of every pair by attribute, all pictures of its edits and levels together."""
    return _contrasts(answers, pairs, _attribute_losses, 4, _attribute_places)


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


def select_models(answers: Answers, places: Sequence[int]) -> Answers:
    """Return the rows of these models alone, in this order."""
    rows = np.concatenate([np.flatnonzero(answers.model == place) for place in places])
    counts = [int((answers.model == place).sum()) for place in places]
    return replace(
        answers,
        models=tuple(answers.models[place] for place in places),
        model=np.repeat(np.arange(len(places)), counts),
        condition=answers.condition[rows],
        sample=answers.sample[rows],
        replicate=answers.replicate[rows],
        correct=answers.correct[rows],
        scored=answers.scored[rows],
        object_share=answers.object_share[rows],
    )


def _condition_losses(answers: Answers) -> dict[Condition, NDArray[np.float64]]:
    return {answers.conditions[place]: reference_losses(answers, place) for place in list_conditions(answers)}


def _attribute_losses(answers: Answers, only: str | None = None) -> dict[Condition, NDArray[np.float64]]:
    return {Condition(attribute, ALL, ""): losses for attribute, losses in attribute_losses(answers, only).items()}


def _condition_places(answers: Answers) -> dict[Condition, list[int]]:
    return {answers.conditions[place]: [place] for place in list_conditions(answers)}


def _attribute_places(answers: Answers) -> dict[Condition, list[int]]:
    return {Condition(attribute, ALL, ""): places for attribute, places in pool_attributes(answers).items()}


def _condition_rates(answers: Answers) -> dict[Condition, NDArray[np.float64]]:
    shown = np.flatnonzero(~answers.conditions_of(TOOL_CHECKS)).tolist()
    return {answers.conditions[place]: answers.rates[:, place] for place in shown}


def rank_models(answers: Answers, attribute: Attribute) -> list[Rank]:
    """Rank the models by their drop under an attribute against its references, smallest first.

    Two models are compared over the pictures that both answered: a model that leaves hard pictures of a photo
    unanswered does not look better for it.
    """
    return rank_by_attribute(answers, attribute)[attribute]


def rank_by_attribute(answers: Answers, only: Attribute | None = None) -> dict[Attribute, list[Rank]]:
    """Rank the models under every attribute, or under one; see `rank_models`."""
    both = _CommonPictures(answers, lambda own: _attribute_losses(own, only), _attribute_places)

    def measure(condition: Condition, first: int, second: int) -> NDArray[np.float64]:
        return both.measure_pair(first, second)[condition]

    return {
        condition.attribute: _rank(
            answers.models, losses, partial(measure, condition), 4, partial(both.bound_difference, condition)
        )
        for condition, losses in both.everywhere.items()
    }


def rank_rows(names: Sequence[str], losses: NDArray[np.float64], count: AnswerCount = 2) -> list[Rank]:
    """Rank rows of losses (names, photos; NaN where unanswered) and letter them.

    Every pair is compared on the photos that both have (photo_tests.py); Holm's adjustment is over all pairs.
    Rows without any answer are left out.
    """
    return _rank(names, losses, lambda *pair: losses[list(pair)], count)


def _rank(
    names: Sequence[str],
    losses: NDArray[np.float64],
    pair: PairLosses,
    count: AnswerCount,
    bounds: Bounds | None = None,
) -> list[Rank]:
    """Rank rows of losses; `pair` gives the losses (2, photos) that two of them are compared by.

    Two that differ must do so by `bounds` as well, where it is given.
    """
    photos = np.isfinite(losses).sum(axis=1)
    means = [
        100 * float(row[np.isfinite(row)].mean()) if n else math.nan for row, n in zip(losses, photos, strict=True)
    ]
    order = sorted(np.flatnonzero(photos).tolist(), key=means.__getitem__)
    pairs = list(itertools.combinations(range(len(order)), 2))
    gaps = [np.subtract(*pair(order[first], order[second])) for first, second in pairs]
    gaps = [gap[np.isfinite(gap)] for gap in gaps]
    p_values = [p_of_mean(gap, count) for gap in gaps]
    different = {
        places
        for places, p, factor, gap in zip(pairs, p_values, holm_factors(p_values), gaps, strict=True)
        if p * factor < SIGNIFICANCE
        and (
            bounds is None
            or _excludes_zero(bounds(order[places[0]], order[places[1]], gap, 1.0 - SIGNIFICANCE / factor))
        )
    }
    letters = compact_letters(len(order), different)
    return [
        Rank(names[place], int(photos[place]), means[place], marks) for place, marks in zip(order, letters, strict=True)
    ]


def compact_letters(count: int, different: set[tuple[int, int]]) -> list[str]:
    """The letters of `count` ranked items, given the pairs (lower, higher) that differ; a shared letter is a tie.

    Insert and absorb: start with one group of all; split it at every pair that differs; drop groups inside others.
    """
    groups: list[frozenset[int]] = [frozenset(range(count))]
    for first, second in sorted(different):
        if not any({first, second} <= group for group in groups):
            continue
        split = [part for group in groups for part in _without_pair(group, first, second)]
        groups = [group for group in dict.fromkeys(split) if not any(group < other for other in split)]
    groups.sort(key=lambda group: sorted(group))
    return ["".join(_letter(place) for place, group in enumerate(groups) if thing in group) for thing in range(count)]


def _excludes_zero(interval: Interval) -> bool:
    return interval.low > 0 or interval.high < 0


@dataclass(frozen=True)
class _CommonPictures:
    """What is measured of two models over the pictures that both answered."""

    answers: Answers
    measure: Measure
    places: Places | None = None  # the conditions that a row is about, where the tool has to do with what is measured
    _pairs: dict[tuple[int, int], _PairTable] = field(default_factory=dict)

    @cached_property
    def everywhere(self) -> Mapping[Condition, NDArray[np.float64]]:
        """The measure over all pictures, (models, photos) by condition."""
        return self.measure(self.answers)

    @cached_property
    def _tool(self) -> ToolBounds:
        assert self.places is not None
        return ToolBounds(self.answers, self.places(self.answers))

    @cached_property
    def _answered(self) -> NDArray[np.bool_]:
        """Whether a model answered a picture, (models, pictures)."""
        answers = self.answers
        answered = np.zeros((len(answers.models), int(answers.picture.max(initial=0)) + 1), bool)
        answered[answers.model[answers.scored], answers.picture[answers.scored]] = True
        return answered

    def measure_pair(self, first: int, second: int) -> Mapping[Condition, NDArray[np.float64]]:
        """By condition, what is measured of two models, (2, photos)."""
        if self._same_pictures(first, second):
            return _PairRows(self.everywhere, (first, second))
        return self._pair(first, second).values

    def bound_difference(
        self, condition: Condition, first: int, second: int, gaps: NDArray[np.float64], confidence: float
    ) -> Interval:
        """The interval of the first minus the second, with the controls and the tool's spread in it."""
        if self._same_pictures(first, second):
            return self._tool.bound_difference(condition, (first, second), gaps, confidence)
        return self._pair(first, second).tool.bound_difference(condition, (0, 1), gaps, confidence)

    def _pair(self, first: int, second: int) -> _PairTable:
        if (first, second) not in self._pairs:
            pair = select_models(self.answers, [first, second])
            common = keep_common_pictures(pair, pair.models)
            places = {} if self.places is None else self.places(common)
            self._pairs[first, second] = _PairTable(dict(self.measure(common)), ToolBounds(common, places))
        return self._pairs[first, second]

    def _same_pictures(self, first: int, second: int) -> bool:
        """Whether two models answered the same pictures."""
        return bool((self._answered[first] == self._answered[second]).all())


class _PairTable(NamedTuple):
    """Two models over the pictures that both answered."""

    values: Mapping[Condition, NDArray[np.float64]]  # (2, photos) by condition
    tool: ToolBounds


@dataclass(frozen=True)
class _PairRows(Mapping[Condition, NDArray[np.float64]]):
    """Two rows of what is measured of all models, by condition; copied when they are asked for."""

    everywhere: Mapping[Condition, NDArray[np.float64]]
    models: tuple[int, int]

    def __getitem__(self, condition: Condition) -> NDArray[np.float64]:
        return self.everywhere[condition][list(self.models)]

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.everywhere)

    def __len__(self) -> int:
        return len(self.everywhere)


def _contrasts(
    answers: Answers, pairs: Sequence[Pair], measure: Measure, count: AnswerCount, places: Places | None = None
) -> list[Contrast]:
    """The contrasts of what is measured (models, photos) by condition, corrected within each pair."""
    rows, gaps = [], []
    common = _CommonPictures(answers, measure, places)
    for pair in pairs:
        values = common.measure_pair(*map(answers.model_index, pair))
        for condition, (first, second) in values.items():
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
    adjusted = []
    for row, gap, own in zip(rows, gaps, corrections, strict=True):
        if not math.isnan(own.confidence):
            interval = mean_interval(gap, count, confidence=own.confidence)
            if places is not None:
                models = answers.model_index(row.first), answers.model_index(row.second)
                interval = common.bound_difference(row.condition, *models, gap, own.confidence)
            low, high = interval.scaled(100)
            row = row._replace(p_adjusted=own.p_adjusted, adjusted_low=low, adjusted_high=high)
        adjusted.append(row)
    return adjusted


def _without_pair(group: frozenset[int], first: int, second: int) -> list[frozenset[int]]:
    return [group - {second}, group - {first}] if {first, second} <= group else [group]


def _letter(place: int) -> str:
    """One character for each group, so that a text of letters is a set of groups: a to z, A to Z, then accented."""
    return ascii_letters[place] if place < len(ascii_letters) else chr(0x100 + place - len(ascii_letters))
