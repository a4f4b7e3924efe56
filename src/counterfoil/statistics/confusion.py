"""Where failures concentrate: confused classes, worst classes and photos, positions, errors that two models share."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import NO_ATTRIBUTE, Answers, Condition, Details
from counterfoil.statistics.intervals import (
    RATE,
    Estimate,
    RateBounds,
    estimate,
    percentile_interval,
    resample_counts,
    score_interval,
)
from counterfoil.statistics.significance import SIGNIFICANCE, benjamini_hochberg
from counterfoil.statistics.tail_probabilities import hypergeometric_tail, poisson_binomial_tail
from counterfoil.types import Attribute

_LOSS = RateBounds(-1.0, 1.0)  # given, since a class may have too few photos to show the possible range


class ClassDrop(NamedTuple):
    """The drop of a model on the photos of one class, mean over conditions, in points."""

    label: str
    drop: Estimate


class PhotoErrorRate(NamedTuple):
    """A photo that models get right, and the share of its edits that they get wrong, in percent."""

    sample_id: str
    wrong: float
    answers: int


class PositionMap(NamedTuple):
    """Accuracy by the position of the object's centre; rows from the top, columns from the left."""

    accuracy: NDArray[np.float64]  # (rows, columns), percent, NaN where there was no object
    n: NDArray[np.int64]  # (rows, columns), pictures


def worst_classes(details: Details, model: str) -> list[ClassDrop]:
    """Return the classes by their drop, the largest first; control and diagnostics are left out."""
    answers, label = details.answers, details.photo_labels
    losses = answers.mean_losses(~answers.conditions_of(NO_ATTRIBUTE))[answers.model_index(model)]
    known = np.unique(label[label >= 0])  # imported answers may not say the photos' classes
    rows = [ClassDrop(details.labels[c], estimate(losses[label == c], _LOSS).scaled(100)) for c in known]
    return sorted((row for row in rows if row.drop.n), key=lambda row: -row.drop.value)


def worst_photos(answers: Answers, *, limit: int = 20) -> list[PhotoErrorRate]:
    """Return the photos that fail most often under an edit, over the models that have the original right."""
    rates = answers.rates[:, ~answers.conditions_of(NO_ATTRIBUTE)]
    was_right = (answers.original_rates == 1.0)[:, None, :]
    known = was_right & np.isfinite(rates)
    wrong = np.where(known, 1.0 - rates, 0.0).sum(axis=(0, 1))
    times = known.sum(axis=(0, 1))
    rows = (
        PhotoErrorRate(answers.samples[p], 100 * float(wrong[p] / times[p]), int(times[p]))
        for p in np.flatnonzero(times).tolist()
    )
    return heapq.nsmallest(limit, rows, key=lambda row: (-row.wrong, -row.answers, row.sample_id))


def position_map(details: Details, model: str, *, cells: int = 5) -> PositionMap:
    """Return the accuracy over a grid of cells x cells; pictures with an unknown object centre are left out.

    Where several edits or sizes are pooled, each picture counts by how much better it was answered than its own
    condition's mean: small objects reach the corners more often, and a corner must not look bad for their size.
    """
    answers = details.answers
    rows = answers.scored & (answers.model == answers.model_index(model)) & np.isfinite(details.centre).all(axis=1)
    places = np.clip((details.centre[rows] * cells).astype(np.intp), 0, cells - 1)
    cell = places[:, 1] * cells + places[:, 0]
    n = np.bincount(cell, minlength=cells**2)
    correct = answers.correct[rows].astype(np.float64)
    _, group, sizes = np.unique(answers.condition[rows], return_inverse=True, return_counts=True)
    if len(sizes) > 1:
        correct += correct.mean() - (np.bincount(group, correct) / sizes)[group]
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: an empty cell
        accuracy = np.clip(100 * np.bincount(cell, correct, minlength=cells**2) / n, 0.0, 100.0)
    return PositionMap(accuracy.reshape(cells, cells), n.reshape(cells, cells).astype(np.int64))


class Confusion(NamedTuple):
    """Photos of one class that the model takes for another after an edit, compared with chance."""

    label: str
    answer: str
    photos: int
    expected: float  # photos, if the wrong answer were independent of the class
    p_value: float  # Fisher's exact test, one-sided
    p_bh: float


class DonorConfusion(NamedTuple):
    """How often a wrong answer is the class of the donor: the photo that the background or texture is from."""

    model: str
    attribute: Attribute
    share: Estimate  # percent of the wrong answers
    chance: float  # percent, if the donors were shuffled among the same wrong answers
    before: float  # percent of the same photos whose original was already answered with that class
    p_value: float  # one-sided


def find_confusions(details: Details, model: str, attribute: Attribute) -> list[Confusion]:
    """Return the confusions that an attribute's edits cause, the least likely by chance first.

    An edit causes a confusion where the edited photo is answered with a wrong class and its original was not. A photo
    counts once per wrong class. By chance, wrong answers are independent of the true class.
    """
    photo, answer = _new_wrong_answers(details, model, attribute)
    label = details.photo_labels[photo]
    pairs, photos = np.unique(np.stack([label, answer]), axis=1, return_counts=True)
    of_class, so_answered = (np.bincount(column, minlength=len(details.labels)).tolist() for column in (label, answer))
    rows = [
        # Photos of the answered class cannot have this wrong answer and are left out.
        _confusion(details, (a, b), times, (len(label) - of_class[b], so_answered[b], of_class[a]))
        for (a, b), times in zip(pairs.T.tolist(), photos.tolist(), strict=True)
    ]
    adjusted = benjamini_hochberg([row.p_value for row in rows])
    return sorted(
        (row._replace(p_bh=p) for row, p in zip(rows, adjusted, strict=True)),
        key=lambda row: (row.p_value, -row.photos, row.label, row.answer),
    )


def list_clear_confusions(
    details: Details, model: str, attributes: Collection[Attribute]
) -> list[tuple[Attribute, Confusion]]:
    """Return the confusions of a model beyond chance, by attribute; one photo alone is none.

    `p_bh` is over the pairs of all these attributes: corrected attribute by attribute, three models with eleven of them
    had some confusion in 4 of 20 tables without any.
    """
    rows = [(attribute, row) for attribute in attributes for row in find_confusions(details, model, attribute)]
    adjusted = benjamini_hochberg([row.p_value for _, row in rows])
    return [
        (attribute, row._replace(p_bh=p))
        for (attribute, row), p in zip(rows, adjusted, strict=True)
        if row.photos > 1 and p < SIGNIFICANCE
    ]


def donor_confusion(details: Details, model: str, attribute: Attribute) -> DonorConfusion:
    """Return wrong answers that name the donor's class, compared with donors shuffled among the other classes."""
    answers = details.answers
    rows = answers.scored_rows(model, {attribute}) & ~answers.correct & (details.donor >= 0)
    rows &= details.donor != details.label
    label, answer, donor = details.label[rows], details.answer[rows], details.donor[rows]
    hits = (answer == donor).astype(np.float64)
    chances = _donor_chances(label, answer, donor)
    value = float(hits.mean()) if len(hits) else math.nan
    by_photo = _photo_means(answers.sample[rows], hits)
    share = Estimate(value, *score_interval(by_photo, bounds=RATE), len(hits)).scaled(100)
    before = _original_answers(details, model)[answers.sample[rows]] == donor
    return DonorConfusion(
        model,
        attribute,
        share,
        100 * _mean(chances),
        100 * _mean(before),
        poisson_binomial_tail(chances, int(hits.sum())),
    )


def _new_wrong_answers(details: Details, model: str, attribute: Attribute) -> NDArray[np.intp]:
    """Photos and the wrong classes that are new after the edit, (2, pairs); each pair once."""
    answers = details.answers
    rows = answers.scored_rows(model, {attribute}) & ~answers.correct & (details.answer >= 0)
    photo, answer = answers.sample[rows], details.answer[rows]
    new = _original_answers(details, model)[photo] != answer
    return np.unique(np.stack([photo[new], answer[new]]), axis=1)


def _confusion(details: Details, pair: tuple[int, int], photos: int, margins: tuple[int, int, int]) -> Confusion:
    """Fisher's exact test of one cell; the margins are the total, those with the answer, and those of the class."""
    total, marked, drawn = margins
    p_value = hypergeometric_tail(photos, total, marked, drawn)
    return Confusion(
        details.labels[pair[0]], details.labels[pair[1]], photos, drawn * marked / total, p_value, math.nan
    )


def _donor_chances(label: NDArray[np.intp], answer: NDArray[np.intp], donor: NDArray[np.intp]) -> NDArray[np.float64]:
    """For each wrong answer, the chance that a donor of another class than the photo's has the answered class."""
    size = int(max(label.max(initial=0), answer.max(initial=0), donor.max(initial=0))) + 1
    donors = np.bincount(donor, minlength=size)
    others = len(donor) - donors[label]
    return np.where(answer >= 0, donors[answer], 0) / np.maximum(others, 1)


def _original_answers(details: Details, model: str) -> NDArray[np.intp]:
    """The class answered for each photo's original; -1 where it was not answered."""
    rows = details.answers.scored_rows(model, {"original"})
    taken_for = np.full(len(details.answers.samples), -1, np.intp)
    taken_for[details.answers.sample[rows]] = details.answer[rows]
    return taken_for


def _photo_means(photo: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the values of each photo that has any."""
    sums, times = np.bincount(photo, values), np.bincount(photo)
    return sums[times > 0] / times[times > 0]


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan


class ErrorConsistency(NamedTuple):
    """Cohen's kappa of two models' right and wrong answers, by condition and then averaged (Geirhos et al. 2020).

    1: the same failures under every condition; 0: as many shared failures as those of two independent models that are
    right as often under each condition; below 0: fewer. Pooled over conditions, two models that both find one edit hard
    and another easy would agree by that alone.
    """

    first: str
    second: str
    pictures: int
    observed: float  # share of pictures on which both are right or both wrong, mean over conditions
    expected: float  # the same, if the failures were independent
    kappa: Estimate  # n counts photos; NaN where both are always right or always wrong under every condition


def error_consistency(
    answers: Answers, rng: np.random.Generator, *, conditions: Collection[Condition] | None = None
) -> list[ErrorConsistency]:
    """Return kappa for every pair of models over the pictures that both answered; interval by photos resampled.

    Conditions without the object are left out unless they are named: an answer there is no failure.
    """
    if conditions is None:
        conditions = [condition for condition in answers.conditions if condition.attribute != "presence"]
    tables = [_picture_table(answers, condition) for condition in answers.conditions if condition in conditions]
    counts = resample_counts(len(answers.samples), rng)
    pairs = itertools.combinations(range(len(answers.models)), 2)
    return [
        _consistency((answers.models[a], answers.models[b]), [(table[a], table[b]) for table in tables], counts)
        for a, b in pairs
    ]


def _picture_table(answers: Answers, condition: Condition) -> NDArray[np.float64]:
    """1 right, 0 wrong, NaN unanswered, (models, replicates, photos)."""
    _ = answers.tally  # raises where an answer occurs twice
    rows = answers.scored & (answers.condition == answers.conditions.index(condition))
    replicates = int(answers.replicate[rows].max(initial=0)) + 1
    table = np.full((len(answers.models), replicates, len(answers.samples)), np.nan)
    table[answers.model[rows], answers.replicate[rows], answers.sample[rows]] = answers.correct[rows]
    return table


def _consistency(
    names: tuple[str, str],
    tables: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    counts: NDArray[np.float64],
) -> ErrorConsistency:
    """The mean over conditions of the kappa of two tables (replicates, photos)."""
    parts, resampled, answered = [], [], np.zeros(tables[0][0].shape[1] if tables else 0, bool)
    for first, second in tables:
        both = np.isfinite(first) & np.isfinite(second)
        sums = np.stack([np.where(both, value, 0.0).sum(axis=0) for value in (both, first == second, first, second)])
        parts.append([sums[0].sum(), *_kappa(*sums.sum(axis=1))])
        resampled.append(_kappa(*(counts @ row for row in sums))[0])
        answered |= both.any(axis=0)
    totals, kappas, observed, expected = np.array(parts).reshape(len(parts), 4).T
    draws = _known_mean(np.array(resampled).reshape(len(parts), len(counts)))
    value = float(_known_mean(kappas[:, None])[0])
    return ErrorConsistency(
        *names, int(totals.sum()), float(_known_mean(observed[:, None])[0]), float(_known_mean(expected[:, None])[0]),
        Estimate(value, *percentile_interval(draws), int(answered.sum())),
    )  # fmt: skip


def _known_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each column (rows, columns) over the values that are numbers; NaN where none is."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):  # 0 / 0: no value
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))


def _kappa(
    total: NDArray[np.float64], same: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Kappa, the observed and the expected agreement."""
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: no picture, or disagreement is not possible
        observed = same / total
        expected = (first * second + (total - first) * (total - second)) / total**2
        return (observed - expected) / (1.0 - expected), observed, expected
