"""From verdicts to decisions: annotators rated by controls and excluded by a rule; majority, unanimity, Dawid-Skene."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.agreement import Ratings, collect_ratings, latest_verdicts
from counterfoil.types import Decision, Verdict


class AnnotatorQuality(NamedTuple):
    """One annotator's results on the controls; shares are NaN where there are none."""

    annotator: str
    answers: int  # to questions about the work itself
    controls: int  # pictures known to be good or bad
    controls_right: int
    repeats: int  # questions about a picture shown again
    repeats_same: int
    median_seconds: float

    @property
    def control_accuracy(self) -> float:
        """The share of controls judged correctly."""
        return self.controls_right / self.controls if self.controls else math.nan

    @property
    def repeat_consistency(self) -> float:
        """The share of repeated questions answered as before."""
        return self.repeats_same / self.repeats if self.repeats else math.nan


@dataclass(frozen=True)
class ExclusionRule:
    """The rule by which annotators are excluded; a bound of None is not applied."""

    control_accuracy: float | None = None  # least share of controls judged correctly
    repeat_consistency: float | None = None  # least share of repeats answered as before
    seconds: float | None = None  # least median time per answer
    fewest: int = 3  # controls, repeats or answers below which an annotator is not judged

    def __post_init__(self) -> None:
        for name in ("control_accuracy", "repeat_consistency"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise UserError(f"expected {name.replace('_', ' ')} between 0 and 1, got {share}")


def rate_annotators(verdicts: Iterable[Verdict], keep_if: Mapping[str, str]) -> list[AnnotatorQuality]:
    """Rate every annotator, by name; `keep_if` holds the answer to each question that keeps a picture."""
    by_name: dict[str, list[Verdict]] = {}
    for verdict in latest_verdicts(verdicts):
        by_name.setdefault(verdict.annotator, []).append(verdict)
    return [_quality(name, by_name[name], keep_if) for name in sorted(by_name)]


def exclude_annotators(qualities: Sequence[AnnotatorQuality], rule: ExclusionRule) -> dict[str, str]:
    """Return the excluded annotators, with the reasons."""
    reasons = {quality.annotator: _reason(quality, rule) for quality in qualities}
    return {name: reason for name, reason in reasons.items() if reason}


def _quality(name: str, verdicts: Sequence[Verdict], keep_if: Mapping[str, str]) -> AnnotatorQuality:
    work = [verdict for verdict in verdicts if not verdict.control]
    judged = _judge_controls(verdicts, keep_if)
    first = {(verdict.variant_id, verdict.question): verdict.answer for verdict in work}
    again = [verdict for verdict in verdicts if verdict.control == "repeat"]
    pairs = [
        (first[key], verdict.answer) for verdict in again if (key := (verdict.variant_id, verdict.question)) in first
    ]
    return AnnotatorQuality(
        annotator=name,
        answers=len(work),
        controls=len(judged),
        controls_right=sum(judged),
        repeats=len(pairs),
        repeats_same=sum(a == b for a, b in pairs),
        median_seconds=statistics.median(verdict.seconds for verdict in verdicts),
    )


def _judge_controls(verdicts: Sequence[Verdict], keep_if: Mapping[str, str]) -> list[bool]:
    """For each control whether it was judged correctly: a good one kept by every answer, a bad one not by all."""
    keeps: dict[tuple[str, str], bool] = {}
    for verdict in verdicts:
        if verdict.control in ("good", "bad") and verdict.question in keep_if:
            key = (verdict.variant_id, verdict.control)
            keeps[key] = keeps.get(key, True) and verdict.answer == keep_if[verdict.question]
    return [kept == (control == "good") for (_, control), kept in keeps.items()]


def _reason(quality: AnnotatorQuality, rule: ExclusionRule) -> str:
    if _below(quality.control_accuracy, rule.control_accuracy, quality.controls, rule):
        return f"{quality.controls_right} of {quality.controls} control pictures judged right"
    if _below(quality.repeat_consistency, rule.repeat_consistency, quality.repeats, rule):
        return f"{quality.repeats_same} of {quality.repeats} repeated questions answered as before"
    if _below(quality.median_seconds, rule.seconds, quality.answers, rule):
        return f"median of {quality.median_seconds:g} seconds per answer"
    return ""


def _below(value: float, least: float | None, behind: int, rule: ExclusionRule) -> bool:
    return least is not None and behind >= rule.fewest and value < least


_SMALLEST = 1e-10  # lower bound of a probability, so that its logarithm exists
_MOST_ROUNDS = 1_000
_MOST_RENAMED = 6  # number of answers up to which all orders are tried
_TOLERANCE = 1e-9  # on the gain in log-likelihood per picture


class _Given(NamedTuple):
    """The given answers, sorted by picture, and the number of pictures, annotators and answers."""

    picture: NDArray[np.intp]
    annotator: NDArray[np.intp]
    answer: NDArray[np.intp]
    shape: tuple[int, int, int]  # pictures, annotators, answers


def dawid_skene(ratings: Ratings) -> NDArray[np.float64]:
    """The probability of each answer to be the true one, (pictures, answers).

    Starts from the shares of votes, then weights each annotator by the errors that the others' answers show.
    """
    picture, annotator = np.nonzero(ratings.codes >= 0)
    shape = (*ratings.codes.shape, len(ratings.answers))
    given = _Given(picture, annotator, ratings.codes[picture, annotator], shape)
    beliefs = _shares(ratings.counts)
    before = -np.inf
    for _ in range(_MOST_ROUNDS):
        errors, frequencies = _maximise(given, beliefs)
        beliefs, likelihood = _expect(given, errors, frequencies)
        if likelihood - before < _TOLERANCE:
            break
        before = likelihood
    return _match_names(given, beliefs)


def _match_names(given: _Given, beliefs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Relabel the beliefs so that most of the given answers agree with them.

    The likelihood is the same under any relabelling: with many careless annotators EM may converge to the opposite of
    the true answers.
    """
    answers = given.shape[2]
    agreeing = [np.bincount(given.answer, beliefs[given.picture, true], answers) for true in range(answers)]
    orders = itertools.permutations(range(answers)) if answers <= _MOST_RENAMED else [tuple(range(answers))]
    best = max(orders, key=lambda order: sum(agreeing[true][answer] for answer, true in enumerate(order)))
    return np.ascontiguousarray(beliefs[:, best])


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(counts / np.maximum(counts.sum(axis=-1, keepdims=True), _SMALLEST), np.float64)


def _maximise(given: _Given, beliefs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The errors and frequencies of highest likelihood, given the beliefs."""
    _, annotators, answers = given.shape
    cell = given.annotator * answers + given.answer
    sums = [np.bincount(cell, beliefs[given.picture, true], annotators * answers) for true in range(answers)]
    joint = np.stack(sums).reshape(answers, annotators, answers)
    return _shares(joint.transpose(1, 0, 2)), beliefs.mean(axis=0)


def _expect(
    given: _Given, errors: NDArray[np.float64], frequencies: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """The beliefs given errors and frequencies, and the log-likelihood per picture."""
    pictures, _, answers = given.shape
    logs = np.log(np.maximum(errors, _SMALLEST))[given.annotator, :, given.answer]  # (given answers, true answers)
    summed = np.stack([np.bincount(given.picture, logs[:, true], pictures) for true in range(answers)], axis=1)
    scores = summed + np.log(np.maximum(frequencies, _SMALLEST))
    highest = scores.max(axis=1, keepdims=True)
    likelihoods = np.exp(scores - highest)
    total = likelihoods.sum(axis=1, keepdims=True)
    return likelihoods / total, float((np.log(total) + highest).mean())


RuleName: TypeAlias = Literal["majority", "unanimity", "dawid-skene"]

UNDECIDED = "undecided"
RULES: tuple[RuleName, ...] = get_args(RuleName)


@dataclass(frozen=True)
class DecisionRule:
    """How answers become a decision; a picture that the rule cannot decide is undecided and not kept."""

    name: RuleName = "majority"
    fewest: int = 1  # answers to a question below which it is undecided
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
        words = {
            "majority": "the answer of more than half of the annotators",
            "unanimity": "the answer that all annotators gave",
            "dawid-skene": f"the answer to which Dawid and Skene's model gives a probability above {self.certainty:g}",
        }[self.name]
        return f"{words}, from {self.fewest} answer{'s' if self.fewest > 1 else ''} on"


def decide_pictures(
    verdicts: Iterable[Verdict], keep_if: Mapping[str, str], rule: DecisionRule
) -> tuple[Decision, ...]:
    """Return one decision per picture with answers: kept where every question is decided as `keep_if` says.

    Hidden controls are not counted.
    A question without an answer in `keep_if` is decided too, but keeps or drops no picture.
    """
    work = [verdict for verdict in latest_verdicts(verdicts) if not verdict.control]
    pictures = tuple(dict.fromkeys(verdict.variant_id for verdict in work))
    questions = dict.fromkeys((*keep_if, *(verdict.question for verdict in work)))
    tables = {question: collect_ratings(work, question) for question in questions}
    decided = {question: _decide_question(table, rule) for question, table in tables.items()}
    given = {question: _count_answers(table) for question, table in tables.items()}
    return tuple(_decision(picture, keep_if, decided, given) for picture in pictures)


def _decision(
    picture: str,
    keep_if: Mapping[str, str],
    decided: Mapping[str, Mapping[str, str]],
    given: Mapping[str, Mapping[str, dict[str, int]]],
) -> Decision:
    own = {question: answers.get(picture, UNDECIDED) for question, answers in decided.items()}
    counts = {question: answers.get(picture, {}) for question, answers in given.items()}
    return Decision(picture, all(own[question] == wanted for question, wanted in keep_if.items()), counts, own)


def _count_answers(table: Ratings) -> dict[str, dict[str, int]]:
    """How often each answer was given to each picture."""
    return {
        picture: {answer: int(times) for answer, times in zip(table.answers, row, strict=True) if times}
        for picture, row in zip(table.pictures, table.counts, strict=True)
    }


def _decide_question(table: Ratings, rule: DecisionRule) -> dict[str, str]:
    """The rule's answer to one question for each picture."""
    if not table.pictures:
        return {}
    counts = table.counts
    given = counts.sum(axis=1)
    support, least = _support(table, counts / given[:, None], rule)
    best = support.argmax(axis=1)
    clear = (support.max(axis=1) > least) & (given >= rule.fewest)
    return {
        picture: table.answers[place] if is_clear else UNDECIDED
        for picture, place, is_clear in zip(table.pictures, best, clear, strict=True)
    }


def _support(table: Ratings, shares: NDArray[np.float64], rule: DecisionRule) -> tuple[NDArray[np.float64], float]:
    """The support of each answer, (pictures, answers), and the value that the best must exceed."""
    if rule.name == "dawid-skene":
        return dawid_skene(table), rule.certainty
    return shares, 0.5 if rule.name == "majority" else 1 - 1e-9
