"""Size, position and direction against independent measurements."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import chisquare
from skimage.measure import label, regionprops

from counterfoil.edits.geometry import object_box
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, edited, ellipse, texture


def made(name: str, settings: dict[str, object], picture: Picture, seed: int = 0) -> Picture:
    return edited(edit_named(name, settings), picture, seed)


def box(alpha: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Top, left, bottom, right of all pieces but specks, measured by scikit-image."""
    pieces = regionprops(label(alpha > 127, connectivity=2))
    boxes = np.array([piece.bbox for piece in pieces if piece.area >= 0.02 * max(other.area for other in pieces)])
    ends = (*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0))
    return tuple(int(value) for value in ends)  # type: ignore[return-value]


def rate(alpha: NDArray[np.uint8]) -> float:
    top, left, bottom, right = box(alpha)
    return float((alpha[top:bottom, left:right] > 127).sum() / alpha.size)


def two_pieces() -> Picture:
    picture = blob_on_grass()
    alpha = picture.alpha.copy()
    alpha[10:20, 170:190] = 255
    return Picture(picture.image, alpha)


def with_hole() -> Picture:
    picture = blob_on_grass()
    hole = ellipse(picture.alpha.shape, (88, 90), (10, 10))
    return Picture(picture.image, np.where(hole > 0, 0, picture.alpha).astype(np.uint8))


def at_the_edge() -> Picture:
    image = texture("gravel", 150)
    return Picture(image, ellipse((150, 150), (140, 5), (40, 30)))


VARIED = {**PICTURES, "two pieces": two_pieces, "hole": with_hole, "edge": at_the_edge}


@pytest.mark.parametrize("target", [0.02, 0.05, 0.08, 0.1])
@pytest.mark.parametrize("picture", VARIED)
def test_size_meets_its_target_within_half_a_percent_of_the_picture(picture: str, target: float) -> None:
    full, edited = (made("size", {"rate": value}, VARIED[picture]()) for value in ("full", target))
    assert abs(rate(edited.alpha) - min(target, rate(full.alpha))) <= 0.005


def test_size_keeps_the_objects_centre_and_shape() -> None:
    picture = blob_on_grass()
    before, after = box(Subject(picture).alpha), box(made("size", {"rate": 0.03}, picture).alpha)
    assert np.allclose(np.add(before[:2], before[2:]), np.add(after[:2], after[2:]), atol=3)
    ratios = [(b[2] - b[0]) / (b[3] - b[1]) for b in (before, after)]
    assert abs(ratios[0] / ratios[1] - 1) < 0.06


def test_full_is_a_crop_of_the_photo_enlarged() -> None:
    picture = blob_on_grass()
    top, left, bottom, right = box(Subject(picture).alpha)
    share = max((bottom - top) / 160, (right - left) / 200)
    height, width = round(160 * share), round(200 * share)
    row = min(max(0, round(top + (bottom - top - height) / 2)), 160 - height)
    column = min(max(0, round(left + (right - left - width) / 2)), 200 - width)
    crop = Image.fromarray(picture.image).crop((column, row, column + width, row + height))
    expected = np.asarray(crop.resize((200, 160), Image.Resampling.BICUBIC)).astype(float)
    edited = made("size", {"rate": "full"}, picture)
    assert np.abs(edited.image - expected).mean() < 2
    assert edited.alpha.max() == 255
    assert rate(edited.alpha) > 2 * rate(picture.alpha)


def test_a_target_above_full_gives_full() -> None:
    picture = blob_on_grass()
    full, above = (made("size", {"rate": value}, picture) for value in ("full", 0.9))
    np.testing.assert_array_equal(full.image, above.image)


def test_the_faithful_size_leaves_an_object_that_is_near_its_target() -> None:
    picture = blob_on_grass()
    near = rate(Subject(picture).alpha) - 0.012
    control = made("control", {}, picture)
    faithful, exact = (made("size", {"rate": near, "faithful": value}, picture) for value in (True, False))
    here = control.alpha == 255  # beside it the control keeps what was taken for the object's shadow
    assert np.abs(faithful.image.astype(int) - control.image)[here].max() <= 1
    assert np.abs(faithful.alpha.astype(int) - control.alpha).max() <= 1
    assert abs(rate(exact.alpha) - near) <= 0.005
    assert rate(exact.alpha) < rate(faithful.alpha)


def test_positions_are_uniform_over_all_places_where_the_box_is_inside() -> None:
    picture = _square(40, 60, side=9)
    places = [box(made("position", {}, picture, seed).alpha)[:2] for seed in range(600)]
    for axis, room in ((0, 40 - 9 + 1), (1, 60 - 9 + 1)):
        counts = np.bincount([place[axis] for place in places], minlength=room)
        assert len(counts) == room
        assert counts[0] > 0 < counts[-1]
        assert chisquare(counts).pvalue > 1e-4


def _square(height: int, width: int, side: int) -> Picture:
    rng = np.random.default_rng(1)
    alpha = np.zeros((height, width), np.uint8)
    top, left = (height - side) // 2, (width - side) // 2
    # A rim that is graded and wide keeps the alpha as it is given: the box is then known exactly.
    alpha[top - 3 : top + side + 3, left - 3 : left + side + 3] = 60
    alpha[top : top + side, left : left + side] = 255
    return Picture(rng.integers(0, 256, (height, width, 3), dtype=np.uint8), alpha)


def test_a_moved_object_is_the_same_to_the_pixel() -> None:
    picture = _square(60, 80, side=21)
    edited = made("position", {}, picture, seed=4)
    old, new = (picture.image[a == 255] for a, picture in ((picture.alpha, picture), (edited.alpha, edited)))
    np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("seed", range(12))
def test_inside_crop_stays_inside_what_models_see(seed: int) -> None:
    picture = blob_on_grass()
    top, left, bottom, right = box(made("position", {"rate": 0.04, "inside_crop": True}, picture, seed).alpha)
    assert top >= 10 - 1
    assert bottom <= 150 + 1
    assert left >= 30 - 1
    assert right <= 170 + 1


def test_an_object_as_large_as_the_picture_cannot_move() -> None:
    image = texture("grass", 100)
    alpha = np.zeros((100, 100), np.uint8)
    alpha[:, 48:52] = alpha[48:52, :] = 255
    with pytest.raises(Unusable, match="border cuts the object"):
        made("position", {}, Picture(image, alpha))


def test_a_quarter_turn_is_exact() -> None:
    picture = _square(61, 61, side=21)
    edited = made("direction", {"angle": 90}, picture)
    np.testing.assert_array_equal(edited.alpha, np.rot90(picture.alpha))
    inside = edited.alpha == 255
    np.testing.assert_array_equal(edited.image[inside], np.rot90(picture.image)[inside])


@pytest.mark.parametrize("angle", [-45, -10, 30])
def test_a_turn_agrees_with_pillow(angle: int) -> None:
    picture = blob_on_grass()
    top, left, bottom, right = box(Subject(picture).alpha)
    centre = ((left + right) / 2, (top + bottom) / 2)  # Pillow counts from the corner of the first pixel
    edited = made("direction", {"angle": angle}, picture)
    turned = Image.fromarray(Subject(picture).alpha).rotate(angle, Image.Resampling.BICUBIC, center=centre)
    assert np.abs(edited.alpha.astype(float) - np.asarray(turned)).mean() < 0.5
    photo = Image.fromarray(picture.image).rotate(angle, Image.Resampling.BICUBIC, center=centre)
    inside = edited.alpha == 255
    assert np.abs(edited.image[inside].astype(float) - np.asarray(photo)[inside]).mean() < 3


def test_the_faithful_turn_is_about_the_pictures_centre() -> None:
    picture = blob_on_grass()
    edited = made("direction", {"angle": 180, "faithful": True}, picture)
    assert np.abs(edited.alpha.astype(int) - Subject(picture).alpha[::-1, ::-1]).max() <= 1


def test_an_object_that_a_turn_takes_out_of_the_picture_is_refused() -> None:
    image = np.ascontiguousarray(texture("gravel", 200)[:60])
    picture = Picture(image, ellipse((60, 200), (30, 15), (12, 10)))
    with pytest.raises(Unusable, match="leave the picture"):
        made("direction", {"angle": 90, "faithful": True}, picture)


def test_angles_are_whole_degrees_drawn_from_both_ends_included() -> None:
    picture = blob_on_grass((60, 60))
    for seed in range(5):
        angle = int(np.random.default_rng(seed).integers(-2, 3))
        drawn, fixed = (
            made("direction", {"low": -2, "high": 2}, picture, seed),
            made("direction", {"angle": angle}, picture),
        )
        np.testing.assert_array_equal(drawn.image, fixed.image)


def test_a_turn_after_zooming_has_the_rate_that_was_asked_for() -> None:
    edited = made("direction", {"angle": 33, "rate": 0.05}, blob_on_grass())
    assert abs(rate(edited.alpha) - 0.05) <= 0.006


def test_what_an_object_left_is_the_filled_background() -> None:
    picture = blob_on_grass()
    edited = made("size", {"rate": 0.02}, picture)
    uncovered = edited.alpha == 0
    np.testing.assert_array_equal(edited.image[uncovered], Subject(picture).visible_background[uncovered])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("size", {"rate": 0.0}),
        ("size", {"rate": 1.5}),
        ("position", {"rate": -1}),
        ("direction", {"low": 5, "high": 1}),
    ],
)
def test_settings_that_no_picture_can_have_are_refused(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="expected"):
        edit_named(name, settings)


def test_a_box_is_that_of_its_own_plane_whatever_was_at_its_place_before() -> None:
    for side in range(5, 40):
        plane = np.zeros((64, 64), np.uint8)
        plane[3 : side + 3, 10 : side + 12] = 255
        plane.flags.writeable = False  # such planes are looked at once
        assert object_box(plane) == object_box(plane) == object_box(plane.copy()) == (10, 3, side + 2, side)
        del plane
