"""From people's answers to decisions: majority, unanimity, Dawid and Skene's model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.dawid_skene import dawid_skene
from counterfoil.analyse.verdict_table import Ratings, latest, ratings_of
from counterfoil.errors import UserError
from counterfoil.types import Decision, Verdict

RuleName: TypeAlias = Literal["majority", "unanimity", "dawid-skene"]

UNDECIDED = "undecided"
RULES: tuple[RuleName, ...] = get_args(RuleName)


@dataclass(frozen=True)
class DecisionRule:
    """How answers become a decision; what it cannot tell stays undecided, and an undecided picture is not kept."""

    name: RuleName = "majority"
    fewest: int = 1  # answers to a question below which it stays undecided
    certainty: float = 0.5  # dawid-skene: the belief that the best answer has to exceed

    def __post_init__(self) -> None:
        if self.name not in RULES:
            raise UserError(f"expected one of the rules {', '.join(RULES)}, got '{self.name}'")
        if self.fewest < 1:
            raise UserError(f"expected at least 1 answer per question, got {self.fewest}")
        if not 0.5 <= self.certainty < 1:
            raise UserError(f"expected a certainty from 0.5 to below 1, got {self.certainty}")

    @property
    def words(self) -> str:
        """The rule as it is recorded."""
        told = {
            "majority": "the answer of more than half of the annotators",
            "unanimity": "the answer that all annotators gave",
            "dawid-skene": f"the answer that Dawid and Skene's model believes by more than {self.certainty:g}",
        }[self.name]
        return f"{told}, from {self.fewest} answer{'s' if self.fewest > 1 else ''} on"


def decisions(verdicts: Iterable[Verdict], keep_if: Mapping[str, str], rule: DecisionRule) -> tuple[Decision, ...]:
    """One decision per picture that anyone answered: kept where every question is decided as `keep_if` says.

    Hidden controls count nowhere.
    A question without an answer in `keep_if` is decided too, and keeps or drops nothing.
    """
    work = [verdict for verdict in latest(verdicts) if not verdict.control]
    pictures = tuple(dict.fromkeys(verdict.variant_id for verdict in work))
    questions = dict.fromkeys((*keep_if, *(verdict.question for verdict in work)))
    tables = {question: ratings_of(work, question) for question in questions}
    decided = {question: _decided(table, rule) for question, table in tables.items()}
    given = {question: _given(table) for question, table in tables.items()}
    return tuple(_decision(picture, keep_if, decided, given) for picture in pictures)


def _decision(
    picture: str,
    keep_if: Mapping[str, str],
    decided: Mapping[str, Mapping[str, str]],
    given: Mapping[str, Mapping[str, dict[str, int]]],
) -> Decision:
    told = {question: answers.get(picture, UNDECIDED) for question, answers in decided.items()}
    counts = {question: answers.get(picture, {}) for question, answers in given.items()}
    return Decision(picture, all(told[question] == wanted for question, wanted in keep_if.items()), counts, told)


def _given(table: Ratings) -> dict[str, dict[str, int]]:
    """How often each answer was given to each picture."""
    return {
        picture: {answer: int(times) for answer, times in zip(table.answers, row, strict=True) if times}
        for picture, row in zip(table.pictures, table.counts, strict=True)
    }


def _decided(table: Ratings, rule: DecisionRule) -> dict[str, str]:
    """The answer to one question that the rule gives each picture."""
    if not table.pictures:
        return {}
    counts = table.counts
    given = counts.sum(axis=1)
    support, least = _support(table, counts / given[:, None], rule)
    best = support.argmax(axis=1)
    clear = (support.max(axis=1) > least) & (given >= rule.fewest)
    return {
        picture: table.answers[place] if told else UNDECIDED
        for picture, place, told in zip(table.pictures, best, clear, strict=True)
    }


def _support(table: Ratings, shares: NDArray[np.float64], rule: DecisionRule) -> tuple[NDArray[np.float64], float]:
    """How much speaks for each answer, (pictures, answers), and what the best has to exceed."""
    if rule.name == "dawid-skene":
        return dawid_skene(table), rule.certainty
    return shares, 0.5 if rule.name == "majority" else 1 - 1e-9
