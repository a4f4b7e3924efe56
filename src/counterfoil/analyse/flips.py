"""The photos that flipped, and a fair choice of them to show."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers, Condition, count

_NOT_TELLING = {"original", "presence"}  # being wrong where the object is gone is no failure


class Flipped(NamedTuple):
    """A variant that one model got wrong although it was right on the original."""

    model: str
    sample_id: str
    condition: Condition
    replicate: int


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
