"""The control of the fill: a hole of the object's shape beside the object."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.fill import find_hole
from counterfoil.edits.fill_control import SMALLEST, find_room
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.types import Picture
from edit_pictures import blob_on_grass

RNG = np.random.default_rng


def test_the_object_stays_and_a_hole_beside_it_changes() -> None:
    picture = blob_on_grass()
    made = edit_named("fill-control", {}).apply(Subject(picture), RNG(1), Supplied())
    changed = (made.image != picture.image).any(axis=2)
    assert not changed[find_hole(Subject(picture).cutout.alpha)].any()
    assert changed.mean() > SMALLEST / 2


def test_nothing_of_the_object_is_copied() -> None:
    rng = RNG(0)
    image = rng.integers(0, 60, (120, 160, 3), dtype=np.uint8)
    alpha = np.zeros((120, 160), np.uint8)
    alpha[40:80, 20:60] = 255
    image[alpha > 0] = (255, 0, 255)
    made = edit_named("fill-control", {}).apply(Subject(Picture(image, alpha)), RNG(1), Supplied())
    assert made.image[:, 80:, 0].max() < 100


def test_the_hole_is_the_largest_of_the_shape_that_fits() -> None:
    shape = np.zeros((100, 100), bool)
    shape[30:70, 5:45] = True
    assert find_room(shape, RNG(0)).sum() == 1600  # as large as itself, beside it
    shape[:, 5:60] = True
    assert SMALLEST * 10_000 <= find_room(shape, RNG(0)).sum() < 40 * 100


def test_the_hole_meets_nothing_that_stands_out_with_the_object() -> None:
    shape, beside = np.zeros((100, 100), bool), np.zeros((100, 100), bool)
    shape[40:60, 40:60] = True
    beside[:, 30:] = True
    for seed in range(4):
        hole = find_room(shape, RNG(seed), beside)
        assert hole.sum() == 400
        assert not hole[:, 30:].any()


def test_the_hole_is_cut_neither_where_the_photo_is_most_even_nor_where_it_is_least() -> None:
    shape = np.zeros((100, 400), bool)
    shape[20:80, 5:65] = True
    image = np.full((100, 400, 3), 120, np.uint8)
    image[:, 60:100] = np.where(np.arange(100) < 50, 30, 220)[:, None, None]  # few places are at a horizon
    image[:, 320:] = 120  # and some in what is of one colour
    ramp = np.linspace(60, 200, 100, dtype=np.uint8)[:, None, None]
    image[:, 100:320] = ramp  # most are on a slope
    cut = [find_room(shape, RNG(seed), image=image) for seed in range(12)]
    assert all(hole.sum() == 3600 for hole in cut)
    on_slope = [bool(hole[:, 100:320].any()) for hole in cut]
    assert sum(on_slope) >= 10


def test_an_object_that_leaves_no_room_is_refused() -> None:
    shape = np.zeros((100, 100), bool)
    shape[3:97, 3:97] = True
    with pytest.raises(Unusable, match="no room for a hole of 3% of the picture"):
        find_room(shape, RNG(0))


def test_the_fill_that_is_told_is_that_of_the_hole_beside_the_object() -> None:
    subject, edit = Subject(blob_on_grass()), edit_named("fill-control", {})
    room = find_room(find_hole(subject.cutout.alpha), RNG(1))
    told = edit.find_shown_fill(subject, RNG(1), Supplied())
    assert told == ("exemplar", room.mean())
    assert room.mean() != subject.hole.mean()
    again = edit.find_shown_fill(subject.with_second_fill, RNG(1), Supplied())
    assert again == ("exemplar, other sources", room.mean())


def test_the_control_of_a_run_is_the_control_alone() -> None:
    conditions = (Condition("control", "control", "none"), Condition("control", "fill-control", "beside"))
    rows = np.arange(2)
    answers = Answers(
        models=("m",), conditions=conditions, samples=("s",), model=np.zeros(2, np.intp), condition=rows,
        sample=np.zeros(2, np.intp), replicate=np.zeros(2, np.intp), correct=np.array([True, False]),
        scored=np.ones(2, bool), object_share=np.full(2, np.nan),
    )  # fmt: skip
    assert answers.control_rates.tolist() == [[1.0]]
