"""Tilts, flips and the grid of places against independent geometry."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from skimage.transform import ProjectiveTransform, warp

from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, edited, texture


def made(name: str, settings: dict[str, object], picture: Picture, seed: int = 0) -> Picture:
    return edited(edit_named(name, settings), picture, seed)


def extent(alpha: np.typing.NDArray[np.uint8], least: int = 127) -> tuple[int, int, int, int]:
    """Top, left, bottom, right of everything above `least`."""
    rows, columns = (np.flatnonzero((alpha > least).any(axis=axis)) for axis in (1, 0))
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def card(height: int = 81, width: int = 61) -> Picture:
    """A card with a graded rim in the middle of gravel: its alpha is taken as it is."""
    alpha = np.zeros((160, 160), np.uint8)
    top, left = (160 - height) // 2, (160 - width) // 2
    alpha[top - 3 : top + height + 3, left - 3 : left + width + 3] = 60
    alpha[top : top + height, left : left + width] = 255
    image = texture("gravel", 160)
    image[top : top + height, left : left + width] = texture("brick", 160)[:height, :width]
    return Picture(image, alpha)


@pytest.mark.parametrize(("yaw", "pitch"), [(40, 0), (-60, 0), (0, 50), (30, -40)])
def test_a_tilt_is_a_plane_turned_in_space_and_seen_from_in_front(yaw: float, pitch: float) -> None:
    picture = card()
    edited = made("tilt", {"yaw": yaw, "pitch": pitch}, picture)
    expected = _turned(picture.alpha, math.radians(yaw), math.radians(pitch))
    assert np.abs(edited.alpha - expected * 255.0).mean() < 1.5


def _turned(alpha: np.typing.NDArray[np.uint8], yaw: float, pitch: float) -> np.typing.NDArray[np.float64]:
    """Four corners sent through space one by one, and scikit-image to warp by them."""
    top, left, bottom, right = extent(alpha, 0)
    middle = np.array([(left + right - 1) / 2, (top + bottom - 1) / 2])
    distance = 2.5 * max(right - left, bottom - top)
    corners, seen = [], []
    for x in (left, right - 1):
        for y in (top, bottom - 1):
            across, down = x - middle[0], y - middle[1]
            depth = across * math.sin(yaw)
            across = across * math.cos(yaw)
            # A positive pitch takes the top, where down is negative, away from the viewer.
            down, depth = (
                down * math.cos(pitch) + depth * math.sin(pitch),
                -down * math.sin(pitch) + depth * math.cos(pitch),
            )
            corners.append((x, y))
            seen.append((across / (1 + depth / distance), down / (1 + depth / distance)))
    ends = np.array(seen)
    low, high = ends.min(axis=0), ends.max(axis=0)
    factor = min(1.0, *(np.array([right - left - 1, bottom - top - 1]) / (high - low)))
    ends = (ends - (low + high) / 2) * factor + middle
    plane = ProjectiveTransform()  # not `from_estimate`, which scikit-image has from 0.26 on, and Python 3.10 has not
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert plane.estimate(np.array(corners, float), ends)
    map_back = plane.inverse
    return np.asarray(warp(alpha / 255.0, map_back, order=1), np.float64)


@pytest.mark.parametrize(("yaw", "pitch"), [(75, 0), (45, 45), (-70, 60), (20, 0)])
@pytest.mark.parametrize("picture", PICTURES)
def test_a_tilted_object_stays_inside_its_old_box_and_whole(picture: str, yaw: float, pitch: float) -> None:
    given = PICTURES[picture]()
    edited = made("tilt", {"yaw": yaw, "pitch": pitch}, given)
    old, new = extent(Subject(given).alpha, 0), extent(edited.alpha)
    assert new[0] >= old[0] - 1
    assert new[1] >= old[1] - 1
    assert new[2] <= old[2] + 1
    assert new[3] <= old[3] + 1


def test_the_side_that_goes_back_looks_smaller() -> None:
    edited = made("tilt", {"yaw": 50}, card())
    _, left, _, right = extent(edited.alpha)
    heights = [int((edited.alpha[:, column] > 127).sum()) for column in (left + 2, right - 3)]
    assert heights[0] > 1.1 * heights[1]


def test_a_tilt_of_nothing_is_the_control() -> None:
    picture = blob_on_grass()
    tilted, control = made("tilt", {"yaw": 0}, picture), made("control", {}, picture)
    here = control.alpha == 255  # beside it the control keeps what was taken for the object's shadow
    assert np.abs(tilted.image.astype(int) - control.image)[here].max() <= 1
    np.testing.assert_array_equal(tilted.alpha, control.alpha)


@pytest.mark.parametrize(("axis", "flipped"), [("left-right", np.fliplr), ("upside-down", np.flipud)])
@pytest.mark.parametrize("picture", PICTURES)
def test_a_flip_is_exact(picture: str, axis: str, flipped) -> None:  # type: ignore[no-untyped-def]
    given = PICTURES[picture]()
    edited = made("flip", {"axis": axis}, given)
    old, new = extent(Subject(given).alpha), extent(edited.alpha)
    assert old == new
    window = slice(old[0], old[2]), slice(old[1], old[3])
    np.testing.assert_array_equal(edited.alpha[window], flipped(Subject(given).alpha[window]))
    inside = edited.alpha[window] == 255
    np.testing.assert_array_equal(edited.image[window][inside], flipped(given.image[window])[inside])


@pytest.mark.parametrize("cell", [(1, 1), (2, 2), (3, 1), (2, 3)])
def test_a_cell_of_the_grid_holds_the_objects_middle_as_far_as_it_fits(cell: tuple[int, int]) -> None:
    picture = blob_on_grass()
    edited = made("position-grid", {"row": cell[0], "column": cell[1], "rate": 0.02}, picture)
    top, left, bottom, right = extent(edited.alpha)
    wanted = (cell[0] - 0.5) / 3 * 160, (cell[1] - 0.5) / 3 * 200
    for middle, aim, half, length in (
        ((top + bottom) / 2, wanted[0], (bottom - top) / 2, 160),
        ((left + right) / 2, wanted[1], (right - left) / 2, 200),
    ):
        assert abs(middle - min(max(aim, half), length - half)) <= 1.5


def test_a_grounded_cell_centres_all_pieces_of_the_object_as_an_ungrounded_one_does() -> None:
    alpha = np.zeros((160, 200), np.uint8)
    alpha[60:90, 80:100] = alpha[60:90, 104:116] = 255  # two pieces, the second as tall and more than a speck
    picture = Picture(texture("grass", 200)[:160], alpha)
    settings = {"row": 3, "column": 1}
    plain, grounded = (made("position-grid", {**settings, "grounded": on}, picture) for on in (False, True))
    assert extent(plain.alpha) == extent(grounded.alpha)
    versions = [edit_named("position-grid", {"grounded": on}).picture_version for on in (False, True)]
    assert versions == [5, 6]  # the pictures of grounded cells changed


def test_all_cells_have_a_level_of_their_own() -> None:
    cells = [(row, column) for row in (1, 2, 3) for column in (1, 2, 3)]
    levels = {edit_named("position-grid", {"row": row, "column": column}).level for row, column in cells}
    assert len(levels) == 9
    assert edit_named("position-grid", {"row": 1, "column": 2, "rate": 0.05}).level == "1/3,2/3@0.05"


def test_an_object_as_large_as_the_picture_fits_no_cell() -> None:
    alpha = np.zeros((100, 100), np.uint8)
    alpha[:, 48:52] = alpha[48:52, :] = 255
    with pytest.raises(Unusable, match="border cuts the object"):
        made("position-grid", {}, Picture(texture("grass", 100), alpha))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("tilt", {"yaw": 90}),
        ("tilt", {"pitch": -80}),
        ("position-grid", {"row": 0}),
        ("position-grid", {"column": 4}),
        ("flip", {"axis": "diagonal"}),
    ],
)
def test_turns_and_cells_that_do_not_exist_are_refused(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"expected|Input should be"):
        edit_named(name, settings)


def plank(turned: bool) -> Picture:
    """A long object on gravel, lying or upright."""
    alpha = np.zeros((160, 160), np.uint8)
    if turned:
        alpha[40:120, 72:88] = 255
    else:
        alpha[84:100, 30:130] = 255
    return Picture(texture("gravel", 160), alpha)


def test_a_grounded_object_turns_only_as_far_as_it_stands_and_keeps_its_foot() -> None:
    for seed in range(3):
        upright = made("direction", {"grounded": True}, plank(True), seed)
        assert extent(upright.alpha)[2] == pytest.approx(120, abs=1)
    with pytest.raises(Unusable, match="turned by 5 degrees or more the object would hang in the air"):
        made("direction", {"grounded": True}, plank(False))  # a long foot: a small turn lifts it
    with pytest.raises(Unusable, match="turned by 11 degrees the object would hang in the air"):
        made("direction", {"grounded": True, "angle": 11}, plank(False))
    assert extent(made("direction", {"angle": 40}, plank(False)).alpha)[0] < 70  # the papers' turn is free


def test_a_grounded_object_does_not_turn_out_of_the_picture() -> None:
    image = np.random.default_rng(1).integers(90, 130, (120, 160, 3)).astype(np.uint8)
    at_border, in_the_middle = np.zeros((2, 120, 160), np.uint8)
    at_border[20:40, 1:41] = at_border[40:110, 19:23] = 255  # a sign
    in_the_middle[20:110, 75:85] = 255  # a post, which may lean a little
    with pytest.raises(Unusable, match="turned by 12 degrees part of the object would be outside the picture"):
        made("direction", {"grounded": True, "angle": 12}, Picture(image, at_border))
    leaning = made("direction", {"grounded": True, "angle": 8}, Picture(image, in_the_middle))
    assert np.count_nonzero(leaning.alpha >= 128) > 0.9 * np.count_nonzero(in_the_middle)
