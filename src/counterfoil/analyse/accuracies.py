"""Accuracies of pictures that have no original beside them: overall, by attribute, by edit, by level."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, Condition
from counterfoil.analyse.interval import Estimate
from counterfoil.analyse.photo_shares import wilson
from counterfoil.analyse.ties import tied
from counterfoil.types import PhotoShare

Group: TypeAlias = tuple[str, str, str]  # attribute, edit and level, or "all" of them

ALL = "all"  # instead of an attribute, edit or level: all of them together

APART = {"original", "control", "presence"}  # references, and pictures whose object is gone: no part of the overall


class GroupAccuracy(NamedTuple):
    """How often one model is right on a group of pictures, in percent with 95 % intervals."""

    model: str
    attribute: str  # or "all"
    edit: str
    level: str
    photos: int  # behind the pictures that were scored
    top1: Estimate  # its n counts pictures
    top5: Estimate
    letters: str  # of the tied group; models that share one cannot be told apart

    @property
    def overall(self) -> bool:
        """Whether the group is of all pictures."""
        return self.attribute == ALL


def group_accuracies(answers: Answers, top5: NDArray[np.bool_]) -> list[GroupAccuracy]:
    """One row per group and model, the overall first; `top5` says of every row whether the five best hold its label."""
    return [row for group, chosen in _groups(answers) for row in _of_group(answers, top5, group, chosen)]


def clustered_wilson(right: NDArray[np.bool_], photo: NDArray[np.intp]) -> Estimate:
    """The share of right pictures with Wilson's interval, widened where several pictures are of one photo.

    The interval is that of as many independent pictures as carry the same variance (Kish's design effect, between
    photos); a picture that is there twice tells nothing new. Where all are right or all wrong, photos count. A variance
    that few photos show is itself uncertain, and widens the interval by Student's quantile (Korn and Graubard).
    """
    n = len(right)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    share = int(right.sum()) / n
    _, place, sizes = np.unique(photo, return_inverse=True, return_counts=True)
    pulls = np.bincount(place, right - share) / n
    return Estimate(share, *wilson(PhotoShare(share, pulls, sizes / n, n)), n)


def _of_group(
    answers: Answers, top5: NDArray[np.bool_], group: Group, chosen: NDArray[np.bool_]
) -> Iterator[GroupAccuracy]:
    inside = answers.scored & chosen[answers.condition]
    letters = _letters(answers, inside)
    for place, model in enumerate(answers.models):
        rows = inside & (answers.model == place)
        photo = answers.sample[rows]
        first, five = (clustered_wilson(right[rows], photo).scaled(100) for right in (answers.correct, top5))
        yield GroupAccuracy(model, *group, len(np.unique(photo)), first, five, letters.get(model, ""))


def _groups(answers: Answers) -> Iterator[tuple[Group, NDArray[np.bool_]]]:
    """The groups from coarse to fine, each with the conditions in it; none says the same as another of its kind."""
    conditions = answers.conditions
    telling = [condition.attribute not in APART for condition in conditions]
    yield (ALL, ALL, ALL), np.array(telling if any(telling) else [True] * len(conditions), bool)
    for attribute in dict.fromkeys(condition.attribute for condition in conditions):
        members = [condition for condition in conditions if condition.attribute == attribute]
        edits = dict.fromkeys(condition.edit for condition in members)
        if len(edits) > 1:
            yield (attribute, ALL, ALL), _where(conditions, members)
        for edit in edits:
            levels = [condition for condition in members if condition.edit == edit]
            if len(levels) > 1:
                yield (attribute, edit, ALL), _where(conditions, levels)
            for condition in levels:
                yield condition, _where(conditions, [condition])


def _where(conditions: tuple[Condition, ...], members: list[Condition]) -> NDArray[np.bool_]:
    return np.array([condition in members for condition in conditions], bool)


def _letters(answers: Answers, inside: NDArray[np.bool_]) -> dict[str, str]:
    """Models that the pictures cannot tell apart share a letter; compared on the photos that both answered."""
    shape = (len(answers.models), len(answers.samples))
    if shape[0] < 2:
        return {}
    cell = np.ravel_multi_index((answers.model[inside], answers.sample[inside]), shape)
    asked, wrong = (
        np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape)
        for weights in (None, ~answers.correct[inside])
    )
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that says "unanswered"
        return {ranked.name: ranked.letters for ranked in tied(answers.models, wrong / asked)}
