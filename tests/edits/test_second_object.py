"""A second object: its size and place, and donors that cannot lend theirs."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.registry import edit_named
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, ellipse, subject_of, texture


def red_ball(centre: tuple[float, float] = (60, 60), radius: float = 30) -> Picture:
    alpha = ellipse((120, 120), centre, (radius, radius))
    image = np.where(alpha[..., None] > 0, np.array((250, 10, 10)), texture("gravel", 120)).astype(np.uint8)
    return Picture(image, alpha)


def red(picture: Picture) -> np.typing.NDArray[np.bool_]:
    return (picture.image[..., 0] > 150) & (picture.image[..., 1] < 60) & (picture.image[..., 2] < 60)


def test_the_second_object_stands_beside_with_its_share_of_the_area_and_on_the_same_ground() -> None:
    given = blob_on_grass()
    made = edit_named("second-object", {"size": 0.5})(given, np.random.default_rng(1), red_ball())
    seen = red(made) & ~red(given)
    assert abs(seen.sum() / (given.alpha > 127).sum() - 0.5) < 0.08
    assert not (seen & (given.alpha > 0)).any()
    lowest = [np.flatnonzero(plane.any(axis=1))[-1] for plane in (seen, given.alpha > 127)]
    assert abs(int(lowest[0]) - int(lowest[1])) <= 2
    np.testing.assert_array_equal(made.alpha, subject_of(given).cutout.alpha)


def test_behind_means_that_the_object_hides_a_part_and_enough_is_seen() -> None:
    given = blob_on_grass()
    made = edit_named("second-object", {"place": "behind", "size": 1.0})(given, np.random.default_rng(1), red_ball())
    seen = red(made) & ~red(given)
    share = seen.sum() / (given.alpha > 127).sum()
    assert 0.35 < share < 0.9
    inside = given.alpha == 255
    assert (made.image[inside] == given.image[inside]).mean() > 0.9


def test_donors_that_are_cut_scattered_or_too_large_are_refused_by_name() -> None:
    edit = edit_named("second-object", {})
    pieces = red_ball((40, 40), 20)
    scattered = Picture(pieces.image, np.maximum(pieces.alpha, ellipse((120, 120), (90, 90), (20, 20))))
    for donor, reason in (
        (red_ball((60, 5)), "cut by the left"),
        (red_ball((60, 60), 55), "covers"),
        (red_ball((60, 60), 10), "pixels"),
        (scattered, "in 2 pieces"),
    ):
        with pytest.raises(Unusable, match=reason):
            edit.check_donor(subject_of(donor))
    edit.check_donor(subject_of(red_ball((100, 60))))  # cut by the lower border alone: it can stand on another one


def test_an_object_cut_by_the_lower_border_stands_on_the_lower_border() -> None:
    made = edit_named("second-object", {"size": 0.5})(blob_on_grass(), np.random.default_rng(1), red_ball((100, 60)))
    assert red(made)[-1].any()


def before(background: np.typing.NDArray[np.uint8]) -> Picture:
    alpha = ellipse(background.shape[:2], (80, 60), (30, 20))
    return Picture(np.where(alpha[..., None] > 0, (200, 120, 30), background).astype(np.uint8), alpha)


@pytest.mark.parametrize("name", ["second-object", "occlusion-object"])
def test_no_object_of_a_donor_hangs_in_the_air_or_stands_on_a_frame(name: str) -> None:
    edit, stands = edit_named(name, {}), subject_of(red_ball())
    grass = texture("grass", 200)[:160, :120]
    sky = np.full((160, 120, 3), (150, 180, 220), np.uint8)
    sea = grass[..., ::-1] // 2 + np.array((0, 20, 100), np.uint8)
    edit.check_fit(subject_of(before(grass)), stands)
    with pytest.raises(Unusable, match="in the air"):
        edit.check_fit(subject_of(before(sky)), stands)
    edit.check_fit(subject_of(before(sky)), subject_of(before(sky)))  # a bird beside a bird
    with pytest.raises(Unusable, match="may be in water"):
        edit.check_fit(subject_of(before(sea)), stands)
    with pytest.raises(Unusable, match="enlarged more than 3 times"):
        edit.check_fit(subject_of(before(grass)), subject_of(red_ball(radius=8)))
    framed = grass.copy()
    framed[-12:] = 255
    with pytest.raises(Unusable, match="frame"):
        edit.check_fit(subject_of(before(framed)), stands)


def test_a_full_picture_has_no_room_and_a_size_of_nothing_is_no_size() -> None:
    image = blob_on_grass().image
    wide = Picture(image, ellipse(image.shape[:2], (80, 100), (70, 95)))
    with pytest.raises(Unusable, match="no room beside the object"):
        edit_named("second-object", {})(wide, np.random.default_rng(1), red_ball())
    with pytest.raises(UserError, match="size: expected"):
        edit_named("second-object", {"size": 0})


def test_nothing_stands_on_the_lower_border_below_an_object_in_the_air() -> None:
    sky = before(np.full((160, 120, 3), (150, 180, 220), np.uint8))
    with pytest.raises(Unusable, match="in the air"):
        edit_named("second-object", {}).check_fit(subject_of(sky), subject_of(red_ball((100, 60))))
