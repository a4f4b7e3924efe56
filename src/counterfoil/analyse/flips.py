"""The photos that flipped, how many of them there are, and a fair choice of them to show."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, Condition, count, original_rates, photo_rates
from counterfoil.analyse.details import Details

_NOT_TELLING = {"original", "presence"}  # being wrong where the object is gone is no failure


class Flipped(NamedTuple):
    """A variant that one model got wrong although it was right on the original."""

    model: str
    sample_id: str
    condition: Condition
    replicate: int


class FlipRate(NamedTuple):
    """How many answers an edit changes, in percent of the photos answered on both sides."""

    model: str
    condition: Condition
    n: int
    lost: float  # right before, wrong after
    gained: float  # wrong before, right after
    changed: float  # another class ranked first, right or wrong; NaN where only right and wrong are known


def flip_rates(answers: Answers | Details) -> list[FlipRate]:
    """What every edit flips, every photo counting once; with `Details`, changes among wrong answers too."""
    if isinstance(answers, Details):
        changed = _changed(answers)
        answers = answers.answers
    else:
        changed = np.full((len(answers.models), len(answers.conditions), len(answers.samples)), np.nan)
    before, after = original_rates(answers), photo_rates(answers)
    return [
        FlipRate(model, condition, *_shares(before[m], after[m, c], changed[m, c]))
        for m, model in enumerate(answers.models)
        for c, condition in enumerate(answers.conditions)
        if condition.attribute != "original"
    ]


def flipped(answers: Answers, *, limit: int = 6) -> list[Flipped]:
    """At most `limit` flips per model and attribute, in the order of the table.

    Which ones is drawn by a hash of photo and edit, not by how striking they are; the model is not part of it, so
    that different models tend to show the same pictures.
    """
    groups: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(_flips(answers)):
        attribute = answers.conditions[answers.condition[row]].attribute
        groups[int(answers.model[row]), attribute].append(int(row))
    chosen = [row for rows in groups.values() for row in sorted(rows, key=lambda row: _lot(answers, row))[:limit]]
    chosen.sort(key=lambda row: (answers.model[row], answers.condition[row], _lot(answers, row)))
    return [_named(answers, row) for row in chosen]


def _shares(
    before: NDArray[np.float64], after: NDArray[np.float64], changed: NDArray[np.float64]
) -> tuple[int, float, float, float]:
    both = np.isfinite(before) & np.isfinite(after)
    if not both.any():
        return 0, math.nan, math.nan, math.nan
    sides = (before * (1 - after), (1 - before) * after, changed)
    lost, gained, other = (100 * float(side[both].mean()) for side in sides)
    return int(both.sum()), lost, gained, other


def _changed(details: Details) -> NDArray[np.float64]:
    """Share of the replicates whose answer is not the original's, (models, conditions, photos)."""
    answers = details.answers
    original = np.full((len(answers.models), len(answers.samples)), -2, np.intp)  # no answer has this place
    is_original = np.array([c.attribute == "original" for c in answers.conditions], dtype=bool)[answers.condition]
    known = answers.scored & is_original
    original[answers.model[known], answers.sample[known]] = details.answer[known]
    before = original[answers.model, answers.sample]
    return photo_rates(replace(answers, correct=before != details.answer, scored=answers.scored & (before != -2)))


def _flips(answers: Answers) -> NDArray[np.bool_]:
    tally = count(answers)
    originals = [condition.attribute == "original" for condition in answers.conditions]
    telling = [condition.attribute not in _NOT_TELLING for condition in answers.conditions]
    right, scored = tally.right[:, originals].sum(axis=1), tally.scored[:, originals].sum(axis=1)
    was_right: NDArray[np.bool_] = (scored > 0) & (right == scored)  # (models, samples)
    is_telling = np.array(telling, dtype=bool)[answers.condition]
    flips: NDArray[np.bool_] = was_right[answers.model, answers.sample] & is_telling & answers.scored & ~answers.correct
    return flips


def _named(answers: Answers, row: int) -> Flipped:
    return Flipped(
        answers.models[answers.model[row]],
        answers.samples[answers.sample[row]],
        answers.conditions[answers.condition[row]],
        int(answers.replicate[row]),
    )


def _lot(answers: Answers, row: int) -> bytes:
    flip = _named(answers, row)
    return hashlib.sha256("\0".join((flip.sample_id, *flip.condition, str(flip.replicate))).encode()).digest()
