"""Tied groups, compact letters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, original_rates, photo_rates, place_of
from counterfoil.statistics.intervals import holm, score_test
from counterfoil.types import Attribute

_SIGNIFICANCE = 0.05
_NOT_COMPARED = {"original", "control", "presence", "combination"}  # no single attribute of the object


class Rank(NamedTuple):
    """One model or attribute with its mean drop in points; those that share a letter cannot be told apart."""

    name: str
    n: int
    drop: float
    letters: str


def rank_models(answers: Answers, attribute: Attribute) -> list[Rank]:
    """The models by their drop under an attribute, smallest first."""
    return rank_rows(answers.models, _losses(answers, [attribute])[0])


def rank_attributes(answers: Answers, model: str) -> list[Rank]:
    """The attributes by what they cost one model, smallest first."""
    place = place_of(answers, model)
    names = list(dict.fromkeys(c.attribute for c in answers.conditions if c.attribute not in _NOT_COMPARED))
    return rank_rows(names, _losses(answers, names)[:, place])


def rank_rows(names: Sequence[str], losses: NDArray[np.float64]) -> list[Rank]:
    """Rank rows of losses (names, photos; NaN where unanswered) and letter them.

    Every pair is compared on the photos that both have, by the score test; Holm's adjustment is over all pairs.
    Rows without any answer are left out.
    """
    answered = {name: row[np.isfinite(row)] for name, row in zip(names, losses, strict=True)}
    means = {name: 100 * float(row.mean()) for name, row in answered.items() if len(row)}
    order = sorted(means, key=means.__getitem__)
    ranked = losses[[list(names).index(name) for name in order]]
    letters = compact_letters(len(order), _told_apart(ranked))
    return [Rank(name, len(answered[name]), means[name], marks) for name, marks in zip(order, letters, strict=True)]


def compact_letters(count: int, different: set[tuple[int, int]]) -> list[str]:
    """The letters of `count` ranked things, given the pairs (lower, higher) that differ; shared letter means tied.

    Insert and absorb: start with one group of all; split it at every pair that differs; drop groups inside others.
    """
    groups: list[frozenset[int]] = [frozenset(range(count))]
    for first, second in sorted(different):
        split = [part for group in groups for part in _without_pair(group, first, second)]
        groups = [group for group in dict.fromkeys(split) if not any(group < other for other in split)]
    groups.sort(key=lambda group: sorted(group))
    return ["".join(_letter(place) for place, group in enumerate(groups) if thing in group) for thing in range(count)]


def _without_pair(group: frozenset[int], first: int, second: int) -> list[frozenset[int]]:
    return [group - {second}, group - {first}] if {first, second} <= group else [group]


def _letter(place: int) -> str:
    return ascii_lowercase[place] if place < len(ascii_lowercase) else f"({place + 1})"


def _told_apart(losses: NDArray[np.float64]) -> set[tuple[int, int]]:
    pairs = list(itertools.combinations(range(len(losses)), 2))
    gaps = [losses[first] - losses[second] for first, second in pairs]
    p_values = holm([score_test(gap[np.isfinite(gap)]) for gap in gaps])
    return {pair for pair, p in zip(pairs, p_values, strict=True) if p < _SIGNIFICANCE}


def _losses(answers: Answers, attributes: Sequence[str]) -> NDArray[np.float64]:
    """What each photo loses under each attribute, mean over its conditions answered; (attributes, models, photos)."""
    before, after = original_rates(answers), photo_rates(answers)
    losses = np.empty((len(attributes), *before.shape))
    for place, attribute in enumerate(attributes):
        rates = after[:, [condition.attribute == attribute for condition in answers.conditions]]
        with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "unanswered"
            losses[place] = before - np.nansum(rates, axis=1) / np.isfinite(rates).sum(axis=1)
    return losses
