"""The ground line, contact shadows and the light at a place, on drawn scenes where they are known."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from counterfoil.edits.geometry import object_box, zoom
from counterfoil.edits.position import Position
from counterfoil.edits.registry import edit_named
from counterfoil.edits.scene import (
    find_ground_line,
    highest_foot,
    measure_contact_shadow,
    measure_footing,
    zoom_about_foot,
)
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, ellipse, texture


def on_grass_under_the_sky(shadow: float = 0.0, horizon: int = 60) -> Picture:
    """A grey ball on grass, blue above the horizon; with a contact shadow where it is asked for."""
    image = np.full((160, 200, 3), (120, 170, 230), np.float32)
    image[horizon:] = texture("grass", 200)[: 160 - horizon] * 0.2 + np.array((60, 90, 40))
    under = ellipse((160, 200), (122, 100), (8, 36)) > 0
    image[under] *= 1 - shadow
    alpha = ellipse((160, 200), (90, 100), (30, 30))
    return Picture(np.where(alpha[..., None] > 0, 128, image).astype(np.uint8), alpha)


@pytest.mark.parametrize("horizon", [40, 60, 80])
def test_the_ground_begins_at_the_horizon(horizon: int) -> None:
    line = find_ground_line(Subject(on_grass_under_the_sky(horizon=horizon)))
    assert line is not None
    assert abs(line - horizon) < 5


def test_no_ground_line_is_told_where_all_is_grass_or_the_line_is_below_the_object() -> None:
    assert find_ground_line(Subject(blob_on_grass())) is None
    assert find_ground_line(Subject(on_grass_under_the_sky(horizon=130))) is None


def test_a_contact_shadow_is_measured_and_an_object_in_the_air_has_none() -> None:
    assert measure_contact_shadow(Subject(on_grass_under_the_sky(shadow=0.5))) > 0.3
    flying = on_grass_under_the_sky(horizon=150)
    assert measure_contact_shadow(Subject(flying)) == 0


def test_feet_stay_on_the_ground_and_a_zoom_keeps_them_where_they_were() -> None:
    subject = Subject(on_grass_under_the_sky(shadow=0.5))
    assert abs(highest_foot(subject) - 60) < 5
    for seed in range(6):
        moved = Position(rate=0.03, grounded=True)(subject.picture, np.random.default_rng(seed))
        box = object_box(moved.alpha)
        assert box.top + box.height >= 55
    smaller = edit_named("size", {"rate": 0.04, "grounded": True})(subject.picture, np.random.default_rng(0))
    before, after = object_box(subject.picture.alpha), object_box(smaller.alpha)
    assert abs(before.top + before.height - after.top - after.height) <= 2
    matrix = zoom_about_foot(subject.alpha, zoom((5.0, 5.0), 0.5))
    np.testing.assert_allclose(matrix @ (99.5, before.top + before.height - 1, 1), (99.75, 119.5), atol=1)


def test_a_grounded_object_has_its_shadow_under_it_and_one_without_shadow_has_none() -> None:
    for shadow in (0.5, 0.0):
        given = on_grass_under_the_sky(shadow=shadow)
        made, bare = (
            edit_named("size", {"rate": 0.05, "grounded": grounded})(given, np.random.default_rng(0))
            for grounded in (True, False)
        )
        box = object_box(made.alpha)
        below = np.s_[
            box.top + box.height : box.top + box.height + 2, box.left + box.width // 3 : box.left + box.width * 2 // 3
        ]
        darker = made.image[below].mean() < 0.95 * bare.image[below].mean()
        assert darker == (shadow > 0)


def test_without_the_setting_pictures_and_ids_are_as_before() -> None:
    assert edit_named("size", {"rate": 0.05}) == edit_named("size", {"rate": 0.05, "grounded": False})
    assert "grounded" in Position.later


def on_grass(alpha: np.ndarray) -> Picture:
    """A red object on grass."""
    grass = texture("grass", 200)[: alpha.shape[0], : alpha.shape[1]]
    return Picture(np.where(alpha[..., None] > 0, (200, 40, 40), grass).astype(np.uint8), alpha)


def turned(picture: Picture, **settings: float) -> Picture:
    return edit_named("direction", {"grounded": True, **settings})(picture, np.random.default_rng(0))


def test_what_stands_on_a_point_turns_further_than_what_stands_broadly() -> None:
    ball, chest = ellipse((160, 200), (90, 100), (30, 30)), np.zeros((160, 200), np.uint8)
    chest[80:120, 60:140] = 255
    turned(on_grass(ball), angle=12)
    with pytest.raises(Unusable, match="turned by 10 degrees the object would hang in the air"):
        turned(on_grass(chest), angle=10)
    with pytest.raises(Unusable, match="turned by 5 degrees or more"):
        turned(on_grass(chest))


def test_what_stands_on_a_curved_edge_keeps_most_of_it_on_the_ground() -> None:
    drum = ellipse((160, 200), (112, 100), (8, 45))
    drum[60:112, 55:146] = 255
    assert measure_footing(drum).contact > 0.6
    with pytest.raises(Unusable, match="would hang in the air"):
        turned(on_grass(drum), angle=12)


def test_what_would_fall_over_is_not_turned_so_far() -> None:
    cup = np.zeros((160, 200), np.uint8)
    for row in range(40, 120):  # wide above, narrow at its foot
        half = 4 + round((120 - row) * 0.4)
        cup[row, 100 - half : 101 + half] = 255
    assert measure_footing(cup).overhang == 0
    turned(on_grass(cup), angle=5)
    with pytest.raises(Unusable, match="would hang in the air"):
        turned(on_grass(cup), angle=12)


def test_nothing_on_the_ground_leans_by_more_than_twelve_degrees() -> None:
    ball = on_grass(ellipse((160, 200), (90, 100), (30, 30)))
    with pytest.raises(Unusable, match="turned by more than 12 degrees the object would seem to fall"):
        turned(ball, angle=13)
    with pytest.raises(Unusable, match="turned by more than 12 degrees"):
        turned(ball, low=20, high=45)


def test_what_stands_on_a_slope_is_not_turned_further_up() -> None:
    wedge = np.zeros((160, 200), np.uint8)
    corners = np.array([(50, 60), (150, 60), (150, 118), (50, 90)])  # its foot rises to the left by 16 degrees
    cv2.fillConvexPoly(wedge, corners, 255)
    turned(on_grass(wedge), angle=6)
    with pytest.raises(Unusable, match="would hang in the air"):
        turned(on_grass(wedge), angle=-6)


def test_an_object_that_is_enlarged_stays_inside_the_picture() -> None:
    high_up = on_grass(ellipse((160, 200), (12, 100), (9, 9)))
    made = edit_named("size", {"rate": 0.05, "grounded": True})(high_up, np.random.default_rng(0))
    rows, columns = (np.flatnonzero((made.alpha >= 128).any(axis=axis)) for axis in (1, 0))
    assert len(rows) > 30  # it was 19 high
    assert rows[0] <= 3  # as near to where it was as it fits
    assert len(rows) == pytest.approx(len(columns), abs=1)  # a ball yet


def test_pictures_of_grounded_turns_are_of_a_newer_version() -> None:
    versions = [edit_named("direction", {"grounded": on}).picture_version for on in (False, True)]
    assert versions == [5, 7]
