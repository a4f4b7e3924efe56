"""What every edit promises."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from counterfoil.edit import edit_named
from counterfoil.errors import Unusable
from counterfoil.types import AnyEdit, DonorEdit, Picture
from edit_pictures import PICTURES, blob_on_grass

EDITS = {
    "control": edit_named("control", {}),
    "swap": edit_named("background-swap", {}),
    "plain": edit_named("background-plain", {}),
    "blur": edit_named("background-blur", {}),
    "removed": edit_named("object-removed", {}),
    "full": edit_named("size", {"rate": "full"}),
    "small": edit_named("size", {"rate": 0.08}),
    "position": edit_named("position", {}),
    "position-small": edit_named("position", {"rate": 0.05, "inside_crop": True}),
    "direction": edit_named("direction", {}),
    "direction-small": edit_named("direction", {"rate": 0.05}),
}
KEEP_THE_OBJECT = ("control", "swap", "plain", "blur")
KEEP_THE_BACKGROUND = ("control", "removed", "small", "position", "direction")


def applied(edit: AnyEdit, picture: Picture, seed: int = 3) -> Picture:
    rng = np.random.default_rng(seed)
    return edit(picture, rng, blob_on_grass((90, 70))) if isinstance(edit, DonorEdit) else edit(picture, rng)


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_gives_a_whole_picture_and_leaves_the_given_one_alone(name: str, picture: str) -> None:
    given = PICTURES[picture]()
    image, alpha = given.image.copy(), given.alpha.copy()
    made = applied(EDITS[name], given)
    assert made.image.dtype == made.alpha.dtype == np.uint8
    assert made.image.shape == image.shape
    assert made.alpha.shape == alpha.shape
    np.testing.assert_array_equal(given.image, image)
    np.testing.assert_array_equal(given.alpha, alpha)
    assert not np.shares_memory(made.image, given.image)
    assert made.image.flags.writeable
    assert made.alpha.flags.writeable


@pytest.mark.parametrize("name", EDITS)
def test_what_is_done_to_a_made_picture_does_not_reach_the_next_one(name: str) -> None:
    given = PICTURES["cat"]()
    first = applied(EDITS[name], given)
    kept = Picture(first.image.copy(), first.alpha.copy())
    first.image[:], first.alpha[:] = 7, 7
    again = applied(EDITS[name], given)
    np.testing.assert_array_equal(again.image, kept.image)
    np.testing.assert_array_equal(again.alpha, kept.alpha)


def test_threads_make_the_same_pictures_as_one_worker_in_another_order() -> None:
    jobs = [(name, picture) for name in EDITS for picture in PICTURES]
    alone = {job: applied(EDITS[job[0]], PICTURES[job[1]]()) for job in reversed(jobs)}
    # One pixel more makes the photo a new one: nothing remembered from the first turn can answer.
    fresh = {picture: _widened(PICTURES[picture]()) for picture in PICTURES}
    with ThreadPoolExecutor(8) as pool:
        wide = list(pool.map(lambda job: applied(EDITS[job[0]], fresh[job[1]]), jobs * 2))
        same = list(pool.map(lambda job: applied(EDITS[job[0]], PICTURES[job[1]]()), jobs))
    for job, made in zip(jobs, same, strict=True):
        np.testing.assert_array_equal(made.image, alone[job].image)
    for first, second in zip(wide[: len(jobs)], wide[len(jobs) :], strict=True):
        np.testing.assert_array_equal(first.image, second.image)


def _widened(picture: Picture) -> Picture:
    return Picture(np.pad(picture.image, ((0, 1), (0, 0), (0, 0)), "edge"), np.pad(picture.alpha, ((0, 1), (0, 0))))


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("name", KEEP_THE_OBJECT)
def test_background_edits_leave_the_inside_of_the_object_as_photographed(name: str, picture: str) -> None:
    given = PICTURES[picture]()
    made = applied(EDITS[name], given)
    inside = cv2.erode(given.alpha, np.ones((7, 7), np.uint8)) == 255
    assert inside.any()
    np.testing.assert_array_equal(made.image[inside], given.image[inside])
    np.testing.assert_array_equal(made.alpha[inside], 255)


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("name", KEEP_THE_BACKGROUND)
def test_object_edits_leave_the_background_away_from_the_object_as_photographed(name: str, picture: str) -> None:
    given = PICTURES[picture]()
    made = applied(EDITS[name], given)
    old = cv2.dilate(given.alpha, np.ones((13, 13), np.uint8)) > 0
    away = ~old & (made.alpha == 0)
    assert away.any()
    np.testing.assert_array_equal(made.image[away], given.image[away])


@pytest.mark.parametrize("name", EDITS)
def test_a_picture_without_object_says_why_it_cannot_be_used(name: str) -> None:
    image = blob_on_grass().image
    with pytest.raises(Unusable, match=r"the object covers 0\.00% of the picture"):
        applied(EDITS[name], Picture(image, np.zeros(image.shape[:2], np.uint8)))


@pytest.mark.parametrize("name", [name for name in EDITS if name != "full"])
def test_an_object_that_fills_the_picture_says_why_it_cannot_be_used(name: str) -> None:
    image = blob_on_grass().image
    with pytest.raises(Unusable, match=r"background|no room to move"):
        applied(EDITS[name], Picture(image, np.full(image.shape[:2], 255, np.uint8)))


@pytest.mark.parametrize("shape", [(20, 20), (16, 150), (131, 33), (7, 9)])
@pytest.mark.parametrize("name", EDITS)
def test_odd_shapes_give_a_picture_or_a_reason(name: str, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    alpha = np.zeros(shape, np.uint8)
    alpha[shape[0] // 3 : 2 * shape[0] // 3, shape[1] // 3 : 2 * shape[1] // 3] = 255
    try:
        shape_or_reason: object = applied(EDITS[name], Picture(image, alpha)).image.shape
    except Unusable as reason:
        shape_or_reason = str(reason)
    assert shape_or_reason in (image.shape,) or "the object" in str(shape_or_reason)
