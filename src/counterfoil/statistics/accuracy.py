"""Accuracy by attribute, edit and level; accuracy over stratified folds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.answers import ALL, FILL_CONTROL, REFERENCES, Answers
from counterfoil.statistics.contrasts import keep_common_pictures, rank_rows
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.photo_shares import PhotoShare, wilson_interval

Group: TypeAlias = tuple[str, str, str]  # attribute, edit and level, or "all" of them


class GroupAccuracy(NamedTuple):
    """Accuracy of one model on a group of pictures, in percent with 95 % intervals."""

    model: str
    attribute: str  # or "all"
    edit: str
    level: str
    photos: int  # of the pictures that were scored
    top1: Estimate  # its n counts pictures
    top5: Estimate
    letters: str  # models that share a letter do not differ significantly

    @property
    def overall(self) -> bool:
        """Whether the group is of all pictures."""
        return self.attribute == ALL


def group_accuracies(answers: Answers, top5: NDArray[np.bool_]) -> list[GroupAccuracy]:
    """Return one row per group and model, overall first; `top5` says per row whether the five best hold its label."""
    return [row for group, conditions in _groups(answers) for row in _measure_group(answers, top5, group, conditions)]


def edited_accuracies(answers: Answers, top5: NDArray[np.bool_]) -> list[GroupAccuracy]:
    """Return each model's accuracy on all edited pictures together: the first group of `group_accuracies`."""
    group, conditions = next(_groups(answers))
    return list(_measure_group(answers, top5, group, conditions))


def clustered_wilson(right: NDArray[np.bool_], photo: NDArray[np.intp]) -> Estimate:
    """The share of right pictures with Wilson's interval, widened where several pictures are of one photo.

    The interval is that of as many independent pictures as have the same variance (Kish's design effect, between
    photos). Where all are right or all wrong, photos count. A variance estimated from few photos is itself uncertain
    and widens the interval by Student's quantile (Korn and Graubard).
    """
    n = len(right)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    share = int(right.sum()) / n
    _, place, sizes = np.unique(photo, return_inverse=True, return_counts=True)
    influences = np.bincount(place, right - share) / n
    return Estimate(share, *wilson_interval(PhotoShare(share, influences, sizes / n, n)), n)


def _measure_group(
    answers: Answers, top5: NDArray[np.bool_], group: Group, conditions: NDArray[np.bool_]
) -> Iterator[GroupAccuracy]:
    inside = answers.scored & conditions[answers.condition]
    letters = _letters(answers, inside)
    for place, model in enumerate(answers.models):
        rows = inside & (answers.model == place)
        photo = answers.sample[rows]
        first, five = (clustered_wilson(right[rows], photo).scaled(100) for right in (answers.correct, top5))
        yield GroupAccuracy(model, *group, len(np.unique(photo)), first, five, letters.get(model, ""))


def _groups(answers: Answers) -> Iterator[tuple[Group, NDArray[np.bool_]]]:
    """Yield the groups from coarse to fine with their conditions; a group of one condition appears once.

    `fill-control` has rows of its own only: a filled hole beside the object is no replicate of the control.
    """
    conditions = answers.conditions
    edited = ~answers.conditions_of(REFERENCES)
    yield (ALL, ALL, ALL), edited if edited.any() else np.ones(len(conditions), bool)
    for attribute in dict.fromkeys(condition.attribute for condition in conditions):
        inside = answers.conditions_of({attribute})
        edits = dict.fromkeys(condition.edit for condition in conditions if condition.attribute == attribute)
        if len(edits.keys() - {FILL_CONTROL}) > 1:
            yield (attribute, ALL, ALL), inside & ~answers.edits_named(FILL_CONTROL)
        for edit in edits:
            levels = inside & answers.edits_named(edit)
            if levels.sum() > 1:
                yield (attribute, edit, ALL), levels
            for place in np.flatnonzero(levels):
                yield conditions[place], np.arange(len(conditions)) == place


def _letters(answers: Answers, inside: NDArray[np.bool_]) -> dict[str, str]:
    """Letters shared by models that do not differ significantly, over the pictures that all of them answered.

    A model without any answer is left out. Without a common picture nothing tells the models apart.
    """
    shape = (len(answers.models), len(answers.samples))
    if shape[0] < 2:
        return {}
    compared = [answers.models[place] for place in np.unique(answers.model[inside])]
    inside = keep_common_pictures(replace(answers, scored=inside), compared).scored
    if not inside.any():
        return dict.fromkeys(compared, "a")
    cell = np.ravel_multi_index((answers.model[inside], answers.sample[inside]), shape)
    asked, wrong = (
        np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape)
        for weights in (None, ~answers.correct[inside])
    )
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unanswered
        return {rank.name: rank.letters for rank in rank_rows(answers.models, wrong / asked)}


class FoldAccuracy(NamedTuple):
    """Accuracy on each fold, in percent; the standard deviation is the sample's, with folds - 1."""

    mean: float
    deviation: float


def stratified_folds(label: NDArray[np.intp], folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The fold of each photo: folds differ by at most one photo in each class, and by at most one overall."""
    if not 2 <= folds <= len(label):
        raise UserError(f"expected 2 to {len(label)} folds for {len(label)} photos, got {folds}")
    shuffled = rng.permutation(len(label))
    dealt = shuffled[np.argsort(label[shuffled], kind="stable")]  # class by class, in random order within
    fold = np.empty(len(label), np.intp)
    fold[dealt] = np.arange(len(label)) % folds
    return fold


def fold_accuracy(correct: NDArray[np.bool_], fold: NDArray[np.intp]) -> FoldAccuracy:
    """The accuracy on every held-out fold; `correct` holds the answers of the model that did not see the fold."""
    accuracies = [100 * float(correct[fold == part].mean()) for part in np.unique(fold)]
    return FoldAccuracy(float(np.mean(accuracies)), float(np.std(accuracies, ddof=1)))
