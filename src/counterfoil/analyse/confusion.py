"""Failure modes: which classes an edit turns into which, and whether the answer is what was put into the picture."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import place_of
from counterfoil.analyse.details import Details, photo_labels
from counterfoil.analyse.interval import RATE, Estimate, score_interval
from counterfoil.analyse.multiplicity import benjamini_hochberg
from counterfoil.types import Attribute


class Confusion(NamedTuple):
    """Photos of one class that an edit made the model take for another, against chance."""

    label: str
    answer: str
    photos: int
    expected: float  # photos, were the wrong answer independent of the class
    p_value: float  # Fisher's exact test, one-sided
    p_bh: float


class LenderConfusion(NamedTuple):
    """How often a wrong answer is the class that lent the background or the texture."""

    model: str
    attribute: Attribute
    share: Estimate  # percent of the wrong answers
    chance: float  # percent, were the lenders dealt anew among the same wrong answers
    before: float  # percent of the same photos whose original was already taken for that class
    p_value: float  # one-sided


def confusions(details: Details, model: str, attribute: Attribute) -> list[Confusion]:
    """The confusions that an attribute's edits create, the least likely by chance first.

    A confusion is created where the edited photo is taken for a wrong class that its original was not taken for. A
    photo counts once per wrong class. Chance deals the wrong answers over the classes as they are dealt overall.
    """
    photo, answer = _created(details, model, attribute)
    label = photo_labels(details)[photo]
    pairs, photos = np.unique(np.stack([label, answer]), axis=1, return_counts=True)
    of_class, so_answered = (np.bincount(column, minlength=len(details.labels)).tolist() for column in (label, answer))
    rows = [
        # Photos of the answered class cannot be wrong that way and are left out.
        _confusion(details, (a, b), times, (len(label) - of_class[b], so_answered[b], of_class[a]))
        for (a, b), times in zip(pairs.T.tolist(), photos.tolist(), strict=True)
    ]
    adjusted = benjamini_hochberg([row.p_value for row in rows])
    return sorted(
        (row._replace(p_bh=p) for row, p in zip(rows, adjusted, strict=True)),
        key=lambda row: (row.p_value, -row.photos, row.label, row.answer),
    )


def lender_confusion(details: Details, model: str, attribute: Attribute) -> LenderConfusion:
    """Wrong answers that name the lender's class, against lenders dealt at random among the other classes."""
    rows = _answered(details, model, attribute) & ~details.answers.correct & (details.lender >= 0)
    rows &= details.lender != details.label
    label, answer, lender = details.label[rows], details.answer[rows], details.lender[rows]
    hits = (answer == lender).astype(np.float64)
    chances = _lender_chances(label, answer, lender)
    value = float(hits.mean()) if len(hits) else math.nan
    share = Estimate(value, *score_interval(_by_photo(details, rows, hits), bounds=RATE), len(hits)).scaled(100)
    before = _original_answers(details, model)[details.answers.sample[rows]] == lender
    return LenderConfusion(
        model, attribute, share, 100 * _mean(chances), 100 * _mean(before), _tail(chances, int(hits.sum()))
    )


def _created(details: Details, model: str, attribute: Attribute) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Photos and the wrong classes they are newly taken for, each pair once."""
    rows = _answered(details, model, attribute) & ~details.answers.correct & (details.answer >= 0)
    photo, answer = details.answers.sample[rows], details.answer[rows]
    new = _original_answers(details, model)[photo] != answer
    photo, answer = np.unique(np.stack([photo[new], answer[new]]), axis=1)
    return photo, answer


def _confusion(details: Details, pair: tuple[int, int], photos: int, margins: tuple[int, int, int]) -> Confusion:
    """Fisher's exact test of one cell; the margins are how many in all, how many so answered, how many of the class."""
    total, marked, drawn = margins
    p_value = _hypergeometric_tail(photos, total, marked, drawn)
    return Confusion(
        details.labels[pair[0]], details.labels[pair[1]], photos, drawn * marked / total, p_value, math.nan
    )


def _hypergeometric_tail(least: int, total: int, marked: int, drawn: int) -> float:
    """P(at least `least` marked among `drawn` of `total` without replacement)."""
    hits = range(least, min(marked, drawn) + 1)
    ways = sum(math.comb(marked, k) * math.comb(total - marked, drawn - k) for k in hits if drawn - k <= total - marked)
    return ways / math.comb(total, drawn)  # whole numbers of any size, so exact


def _lender_chances(label: NDArray[np.intp], answer: NDArray[np.intp], lender: NDArray[np.intp]) -> NDArray[np.float64]:
    """For each wrong answer, the chance that a lender of another class than the photo's has the answered class."""
    size = int(max(label.max(initial=0), answer.max(initial=0), lender.max(initial=0))) + 1
    lent = np.bincount(lender, minlength=size)
    others = len(lender) - lent[label]
    return np.where(answer >= 0, lent[answer], 0) / np.maximum(others, 1)


def _tail(chances: NDArray[np.float64], hits: int) -> float:
    """P(at least so many hits) of independent trials with these chances; NaN where there is no trial."""
    if len(chances) == 0:
        return math.nan
    distribution = np.array([1.0])
    for chance in chances:
        distribution = np.convolve(distribution, [1.0 - chance, chance])
    return float(min(1.0, distribution[hits:].sum()))


def _answered(details: Details, model: str, attribute: str) -> NDArray[np.bool_]:
    answers = details.answers
    wanted = np.array([condition.attribute == attribute for condition in answers.conditions], dtype=bool)
    rows: NDArray[np.bool_] = answers.scored & (answers.model == place_of(answers, model)) & wanted[answers.condition]
    return rows


def _original_answers(details: Details, model: str) -> NDArray[np.intp]:
    """The class each photo's original was taken for; -1 where it was not answered."""
    rows = _answered(details, model, "original")
    taken_for = np.full(len(details.answers.samples), -1, np.intp)
    taken_for[details.answers.sample[rows]] = details.answer[rows]
    return taken_for


def _by_photo(details: Details, rows: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the values of each photo, for the photos that have any."""
    photo = details.answers.sample[rows]
    sums, times = np.bincount(photo, values), np.bincount(photo)
    return sums[times > 0] / times[times > 0]


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan
