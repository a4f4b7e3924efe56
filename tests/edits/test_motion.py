"""The motion of the object: a mean along a line, the background sharp."""

from __future__ import annotations

import math

import numpy as np
import pytest

from counterfoil.edits.motion import draw_line
from counterfoil.edits.registry import edit_named
from counterfoil.errors import UserError
from edit_pictures import blob_on_grass


def test_the_line_has_its_length_direction_and_a_weight_of_one() -> None:
    flat = draw_line(20, 0)
    assert flat.sum() == pytest.approx(1)
    assert np.flatnonzero(flat.sum(axis=1) > 1e-6).tolist() == [flat.shape[0] // 2]
    across = np.arange(flat.shape[1]) - flat.shape[1] // 2
    spread = float((flat.sum(axis=0) * across**2).sum())
    assert spread == pytest.approx(20**2 / 12, rel=0.05), "the variance of a uniform line"
    up = draw_line(20, math.pi / 2)
    np.testing.assert_allclose(up, flat.T, atol=1e-3)


def test_motion_smears_the_object_along_the_line_and_leaves_the_rest() -> None:
    given = blob_on_grass()
    made = edit_named("object-motion", {"length": 0.3, "angle": 0})(given, np.random.default_rng(0))
    columns = [np.flatnonzero((alpha > 127).any(axis=0)) for alpha in (made.alpha, given.alpha)]
    rows = [np.flatnonzero((alpha > 0).any(axis=1)) for alpha in (made.alpha, given.alpha)]
    assert np.flatnonzero((made.alpha > 0).any(axis=0)).size > columns[1].size + 10
    assert abs(rows[0].size - rows[1].size) <= 6
    away = made.alpha == 0
    away &= np.asarray(given.alpha == 0)
    assert (made.image[away] != given.image[away]).any(axis=1).mean() < 0.1
    middle = given.image[80:100, 85:95].astype(float).std(), made.image[80:100, 85:95].astype(float).std()
    assert middle[1] < middle[0], "stripes across the motion are averaged"


def test_a_motion_of_nothing_or_of_more_than_half_the_object_is_refused() -> None:
    for length in (0, 0.7):
        with pytest.raises(UserError, match="length: expected"):
            edit_named("object-motion", {"length": length})
