"""Which photos an attribute used, against counts by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.photo_use import measure_use

ORIGINAL = Condition("original", "original", "none")
SIZE = Condition("size", "size", "0.05")
SWAP = Condition("background", "background-swap", "other")
Row = tuple[Condition, int, bool]


def answers_of(rows: Sequence[Row]) -> Answers:
    conditions = tuple(dict.fromkeys(row[0] for row in rows))
    photos = sorted({row[1] for row in rows})
    zeros = np.zeros(len(rows), np.intp)
    return Answers(
        models=("m",), conditions=conditions, samples=tuple(map(str, photos)), model=zeros,
        condition=np.array([conditions.index(row[0]) for row in rows], np.intp),
        sample=np.array([photos.index(row[1]) for row in rows], np.intp), replicate=zeros,
        correct=np.array([row[2] for row in rows]), scored=np.ones(len(rows), bool),
        object_share=np.full(len(rows), np.nan),
    )  # fmt: skip


def test_the_unused_photos_of_an_attribute_are_counted_with_their_accuracy() -> None:
    originals = [(ORIGINAL, photo, photo != 3) for photo in range(4)]
    (use,) = measure_use(answers_of([*originals, (SIZE, 0, False), (SIZE, 1, True)]))
    assert (use.attribute, use.used, use.photos) == ("size", 2, 4)
    assert use.accuracy_used.value == 100
    assert use.accuracy_unused.value == 50


def test_an_attribute_that_used_every_photo_leaves_none() -> None:
    rows = [(condition, photo, True) for condition in (ORIGINAL, SWAP) for photo in range(3)]
    (use,) = measure_use(answers_of(rows))
    assert use.used == use.photos == 3
    assert math.isnan(use.accuracy_unused.value)


def test_doubles_of_the_tool_are_no_attribute() -> None:
    rows = [(ORIGINAL, 0, True), (SIZE, 0, True), (Condition("second-fill", "size", "0.05"), 0, True)]
    assert [use.attribute for use in measure_use(answers_of(rows))] == ["size"]
