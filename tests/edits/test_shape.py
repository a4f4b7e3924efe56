"""The object alone, its silhouette and its edges."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.feature import canny

from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, edited


def made(name: str, settings: dict[str, object], picture: Picture) -> Picture:
    return edited(edit_named(name, settings), picture, 0)


@pytest.mark.parametrize(("ground", "level"), [("black", 0), ("white", 255), ("transparent", 255)])
@pytest.mark.parametrize("picture", PICTURES)
def test_a_segmented_object_stands_on_nothing_but_its_ground(picture: str, ground: str, level: int) -> None:
    given = PICTURES[picture]()
    edited = made("segmented", {"ground": ground}, given)
    alpha = Subject(given).alpha
    assert (edited.image[alpha == 0] == level).all()
    np.testing.assert_array_equal(edited.image[alpha == 255], given.image[alpha == 255])
    np.testing.assert_array_equal(edited.alpha, alpha)


@pytest.mark.parametrize("picture", PICTURES)
def test_a_silhouette_is_the_alpha_in_black_on_white(picture: str) -> None:
    given = PICTURES[picture]()
    edited = made("silhouette", {}, given)
    assert np.abs(edited.image.astype(int) - (255 - Subject(given).alpha.astype(int))[..., None]).max() <= 1


def test_a_silhouette_in_its_photo_is_black_where_the_object_is() -> None:
    given = blob_on_grass()
    edited = made("silhouette", {"ground": "photo"}, given)
    alpha = Subject(given).alpha
    assert (edited.image[alpha == 255] == 0).all()
    np.testing.assert_array_equal(edited.image[alpha == 0], given.image[alpha == 0])


@pytest.mark.parametrize("picture", PICTURES)
def test_edges_are_black_and_white_and_show_the_whole_outline(picture: str) -> None:
    given = PICTURES[picture]()
    edited = made("edges", {}, given)
    opaque = Subject(given).alpha == 255
    assert set(np.unique(edited.image[opaque])) <= {0, 255}
    inside = Subject(given).alpha > 127
    ring = inside & ~(np.roll(inside, 1, 0) & np.roll(inside, -1, 0) & np.roll(inside, 1, 1) & np.roll(inside, -1, 1))
    assert (edited.image[ring] < 140).mean() > 0.95
    assert (edited.image[~inside] > 115).all()


def test_inner_edges_lie_where_scikit_image_finds_them() -> None:
    given = PICTURES["cup"]()
    edited = made("edges", {}, given)
    ours = edited.image[..., 0] < 128
    gray = given.image @ np.array([0.299, 0.587, 0.114])
    theirs = canny(gray, sigma=1.1, low_threshold=12, high_threshold=30)
    inner = np.zeros_like(ours)
    inner[30:95, 50:135] = True
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(theirs, 2), (5, 5))
    near = np.asarray(windows.any(axis=(2, 3)))
    assert (ours & inner).sum() > 50
    assert near[ours & inner].mean() > 0.8


def test_thresholds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(UserError, match="low <= high"):
        edit_named("edges", {"low": 200, "high": 100})
