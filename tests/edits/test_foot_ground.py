"""The ground under a moved object's foot: of the kind on which it stood."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.cutout import Matrix
from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.foot_ground import FootGround, check_foot_ground
from counterfoil.edits.geometry import object_box
from counterfoil.edits.position import Position
from counterfoil.edits.size import Size
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import ellipse, texture

SHAPE = (160, 240)


def beside_water(centre: tuple[int, int] = (90, 60)) -> Picture:
    """A red ball on rough ground, which ends at column 130; beside it is smooth dark water."""
    image = texture("grass", 240)[: SHAPE[0], : SHAPE[1]] // 2 + 90
    image[:, 130:] = (40, 60, 70)
    alpha = ellipse(SHAPE, centre, (24, 20))
    return Picture(np.where(alpha[..., None] > 0, (200, 40, 40), image).astype(np.uint8), alpha)


def moved(right: float, down: float) -> Matrix:
    return np.array([[1, 0, right], [0, 1, down]], np.float64)


def test_the_same_ground_suits_and_another_does_not() -> None:
    ground = FootGround.of(Subject(beside_water()))
    across, down = ground.foot
    assert (across, down) == pytest.approx((60, 115), abs=2)
    assert ground.suits((across + 30, down + 20))
    assert not ground.suits((across + 120, down))
    assert ground.suits((across, 160))  # at the lower border
    assert not ground.suits((across + 120, 160))


def test_a_foot_that_comes_to_other_ground_is_refused() -> None:
    subject = Subject(beside_water())
    check_foot_ground(subject, moved(30, 10))
    with pytest.raises(Unusable, match="another kind of ground"):
        check_foot_ground(subject, moved(120, 0))


def test_an_object_moves_only_on_its_ground() -> None:
    picture = beside_water()
    for seed in range(12):
        made = Position(grounded=True).apply(Subject(picture), np.random.default_rng(seed), Supplied())
        box = object_box(made.alpha)
        assert box.left + box.width / 2 < 140
    free = Position().apply(Subject(picture), np.random.default_rng(0), Supplied())
    assert free.alpha.any()


def test_ground_that_is_nowhere_else_leaves_no_place() -> None:
    picture = beside_water()
    image = np.full_like(picture.image, 70)
    image[114:124, 52:68] = picture.image[114:124, 52:68]  # a stone under the object
    image[picture.alpha > 0] = (200, 40, 40)
    with pytest.raises(Unusable, match="another kind of ground"):
        Position(rate=0.04, grounded=True).apply(
            Subject(Picture(image, picture.alpha)),
            np.random.default_rng(0),
            Supplied(),
        )


def test_what_shrinks_about_its_foot_stays_where_it_stood() -> None:
    made = Size(rate=0.02, grounded=True).apply(Subject(beside_water()), np.random.default_rng(0), Supplied())
    box = object_box(made.alpha)
    assert box.top + box.height == pytest.approx(115, abs=3)
