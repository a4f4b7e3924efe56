"""What every edit promises: ours, and whatever else is in the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.contract_checks import check_edit
from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.registry import EDITS, edit_named, name_of, settings_of
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, edited, ellipse, lender, subject_of, texture

Bytes = NDArray[np.uint8]
# Every edit of the catalogue as it is, and other settings of some.
MORE: dict[str, tuple[str, dict[str, object]]] = {
    "size 0.08": ("size", {"rate": 0.08}),
    "position 0.05": ("position", {"rate": 0.05, "inside_crop": True}),
    "position-grid 0.05": ("position-grid", {"row": 3, "column": 2, "rate": 0.05}),
    "direction 0.05": ("direction", {"rate": 0.05}),
    "flip upside-down": ("flip", {"axis": "upside-down"}),
    "tilt back": ("tilt", {"yaw": -30, "pitch": 35}),
    "object-hue 120": ("object-hue", {"shift": 120}),
    "object-brightness 0.5": ("object-brightness", {"factor": 0.5}),
    "texture striped": ("texture", {"texture": "striped", "strength": 0.5}),
    "material wood": ("material", {"material": "wood"}),
    "material glass": ("material", {"material": "glass"}),
    "material fabric": ("material", {"material": "fabric"}),
    "material stone": ("material", {"material": "stone"}),
    "shadow off": ("shadow", {"shadow": "off"}),
    "occlusion 0.7": ("occlusion", {"share": 0.7, "texture": "woven"}),
    "text beside": ("text", {"word": "neutral", "place": "beside"}),
    "second-object behind": ("second-object", {"donors": "same", "place": "behind"}),
    "exposure 2": ("exposure", {"stops": 2}),
    "crop 0.3": ("crop", {"share": 0.3}),
    "segmented white": ("segmented", {"ground": "white"}),
    "silhouette photo": ("silhouette", {"ground": "photo"}),
    "edges photo": ("edges", {"ground": "photo"}),
}
# One step of a diffusion model keeps every promise that ten keep.
SHORT = {name: {"steps": 1} if name.startswith("painted-") else {} for name in EDITS}
EDITED = {
    **{name: edit_named(name, settings) for name, settings in SHORT.items()},
    **{name: edit_named(*how) for name, how in MORE.items()},
}
KEEP_THE_OBJECT = (
    "control", "background-swap", "background-plain", "background-blur", "background-folder", "background-texture",
    "background-hue", "background-rainbow", "background-grayscale", "background-brightness", "background-contrast",
    "background-complexity", "painted-complexity", "painted-adversarial", "painted-random", "shadow", "shadow off",
    "segmented", "segmented white", "text beside", "second-object", "second-object behind",
)  # fmt: skip
KEEP_THE_BACKGROUND = (
    "control", "object-removed", "painted-removal", "size 0.08", "position", "position 0.05", "position-grid",
    "position-grid 0.05",
    "direction", "direction 0.05", "flip", "flip upside-down", "tilt", "tilt back", "object-blur", "object-hue",
    "object-hue 120", "object-grayscale", "object-brightness", "object-brightness 0.5", "texture", "texture striped",
    "material", "material wood", "material glass", "material fabric", "material stone", "silhouette photo",
    "edges photo",
)  # fmt: skip
# These paint the object where it is: not even the pixels next to it change.
NEVER_FILL = tuple(
    name for name in KEEP_THE_BACKGROUND
    if name.startswith(("object-b", "object-h", "object-g", "texture", "material", "silhouette", "edges"))
)  # fmt: skip


@pytest.mark.parametrize("name", EDITED)
def test_an_edit_keeps_the_contract_that_plug_ins_are_checked_by(name: str) -> None:
    pictures = [subject_of(make()) for make in PICTURES.values()]
    if EDITED[name].needs.scene:  # on open ground each photo has a scene, in another photo the first two
        assert check_edit(EDITED[name], with_lenders(blob_on_grass())) == 3
        assert check_edit(in_photo(name), with_lenders(blob_on_grass())) == 2
        return
    changed = check_edit(EDITED[name], pictures)
    # A shadow that is not there stays away, one is not cast where it would miss the ground, and a text that can be read
    # would hide the smallest object.
    assert changed == len(pictures) or (name in ("shadow", "shadow off", "text") and changed)


def in_photo(name: str) -> Edit:
    """The edit in a scene that another photo lends."""
    edit = EDITED[name]
    return edit_named(name_of(edit), {**settings_of(edit), "ground": "photo"})


def with_lenders(picture: Picture) -> list[Picture]:
    """A photo and two with their object in a corner: the first two get a scene from the next."""
    return [picture, lender(), lender((170, 210))]


@pytest.mark.parametrize("name", EDITED)
def test_what_is_done_to_a_made_picture_does_not_reach_the_next_one(name: str) -> None:
    given = PICTURES["cat"]()
    first = edited(EDITED[name], given)
    assert not np.shares_memory(first.image, given.image)
    kept = Picture(first.image.copy(), first.alpha.copy())
    first.image[:], first.alpha[:] = 7, 7
    again = edited(EDITED[name], given)
    np.testing.assert_array_equal(again.image, kept.image)
    np.testing.assert_array_equal(again.alpha, kept.alpha)


def test_threads_make_the_same_pictures_as_one_worker_in_another_order() -> None:
    jobs = [(name, "blob" if place % 2 else "cup") for place, name in enumerate(EDITED) if name != "shadow"]
    jobs.append(("shadow", "blob"))  # the cup's would fall on its saucer and is refused
    alone = {job: edited(EDITED[job[0]], PICTURES[job[1]]()) for job in reversed(jobs)}
    # One pixel more makes the photo a new one: nothing remembered from the first turn can answer.
    fresh = {picture: _widened(PICTURES[picture]()) for picture in PICTURES}
    with ThreadPoolExecutor(8) as pool:
        wide = list(pool.map(lambda job: edited(EDITED[job[0]], fresh[job[1]]), jobs * 2))
        same = list(pool.map(lambda job: edited(EDITED[job[0]], PICTURES[job[1]]()), jobs))
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
    if name == "shadow" and picture in ("cup", "rocket"):
        with pytest.raises(Unusable, match="something else than the object's ground"):
            edited(EDITED[name], given)
        return
    made = edited(EDITED[name], given)
    inside = cv2.erode(given.alpha, np.ones((7, 7), np.uint8)) == 255
    assert inside.any()
    np.testing.assert_array_equal(made.image[inside], given.image[inside])
    np.testing.assert_array_equal(made.alpha[inside], 255)


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("name", KEEP_THE_BACKGROUND)
def test_object_edits_leave_the_background_away_from_the_object_as_photographed(name: str, picture: str) -> None:
    given = PICTURES[picture]()
    made = edited(EDITED[name], given)
    old = cv2.dilate(given.alpha, np.ones((13, 13), np.uint8)) > 0
    hole = Subject(given).hole if EDITED[name].shows_fill else old  # with the shadow that leaves with the object
    away = ~old & ~hole & (made.alpha == 0)
    assert away.any()
    np.testing.assert_array_equal(made.image[away], given.image[away])


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("name", NEVER_FILL)
def test_an_object_that_stays_in_place_changes_no_pixel_beyond_its_soft_edge(name: str, picture: str) -> None:
    given = PICTURES[picture]()
    made = edited(EDITED[name], given)
    np.testing.assert_array_equal(made.image[made.alpha == 0], given.image[made.alpha == 0])
    assert (made.image != given.image).any()


def test_what_hides_the_object_changes_nothing_beyond_the_objects_box() -> None:
    for name in ("occlusion", "occlusion 0.7"):
        given = PICTURES["rocket"]()
        made = edited(EDITED[name], given)
        rows, columns = (np.flatnonzero((given.alpha > 0).any(axis=axis)) for axis in (1, 0))
        outside = np.ones(given.alpha.shape, bool)
        outside[rows[0] - 4 : rows[-1] + 5, columns[0] - 4 : columns[-1] + 5] = False
        np.testing.assert_array_equal(made.image[outside], given.image[outside])


ABOUT_THE_OBJECT = sorted(name for name in EDITED if EDITED[name].attribute != "corruption")


@pytest.mark.parametrize("name", ABOUT_THE_OBJECT)
def test_a_picture_without_object_says_why_it_cannot_be_used(name: str) -> None:
    image = blob_on_grass().image
    with pytest.raises(Unusable, match=r"the object covers 0\.00% of the picture"):
        edited(EDITED[name], Picture(image, np.zeros(image.shape[:2], np.uint8)))


# An object without background can still be painted, hidden or cropped; it cannot be moved, cut out or outlined.
POSSIBLE_WITHOUT_BACKGROUND = (
    "size", "object-", "texture", "material", "occlusion", "crop", "text", "exposure", "white-balance",
)  # fmt: skip
IMPOSSIBLE_ALL_THE_SAME = (
    "object-removed", "object-box", "object-motion", "size 0.08", "material glass", "text beside",
)  # fmt: skip


@pytest.mark.parametrize("name", ABOUT_THE_OBJECT)
def test_an_object_that_fills_the_picture_is_edited_as_a_whole_or_says_why_not(name: str) -> None:
    image = blob_on_grass().image
    full = Picture(image, np.full(image.shape[:2], 255, np.uint8))
    if not name.startswith(POSSIBLE_WITHOUT_BACKGROUND) or name in IMPOSSIBLE_ALL_THE_SAME:
        with pytest.raises(Unusable, match=r"background|no room to move|cuts the object"):
            edited(EDITED[name], full)
    else:
        made = edited(EDITED[name], full)
        assert made.alpha.any()
        assert name == "size" or (made.image != image).any()


def _pieces(image: Bytes) -> Bytes:
    return np.maximum(ellipse(image.shape[:2], (40, 40), (20, 15)), ellipse(image.shape[:2], (110, 150), (12, 20)))


def _ring(image: Bytes) -> Bytes:
    outer, inner = (ellipse(image.shape[:2], (80, 100), axes) for axes in ((50, 45), (30, 25)))
    return np.asarray(np.where(inner > 0, 0, outer), np.uint8)


def _speckled(image: Bytes) -> Bytes:
    alpha = ellipse(image.shape[:2], (80, 100), (40, 40))
    alpha[::9, ::7] = 0
    return alpha


TAKE_THE_DONORS_OBJECT = ("second-object", "occlusion-object")  # which has to be in one piece


@pytest.mark.parametrize("mask", [_pieces, _ring, _speckled])
@pytest.mark.parametrize("name", EDITED)
def test_masks_with_holes_or_several_pieces_are_edited_like_any_other(
    name: str, mask: Callable[[Bytes], Bytes]
) -> None:
    image = blob_on_grass().image
    if EDITED[name].needs.scene or name == "shadow":  # a blob that no mask holds would be another thing in the scene
        image = texture("grass", max(image.shape))[: image.shape[0], : image.shape[1]]
    refused = name.startswith(TAKE_THE_DONORS_OBJECT) and mask is _pieces
    masked = Picture(image, mask(image))
    edit = in_photo(name) if EDITED[name].needs.scene else EDITED[name]
    pictures = with_lenders(masked) if edit.needs.scene else [masked] * 2
    lends = edit.needs.scene and mask is _pieces  # beside the pieces there is room for a scene
    assert check_edit(edit, pictures) == (0 if refused else 2 + lends)


@pytest.mark.parametrize("shape", [(20, 20), (16, 150), (131, 33), (7, 9)])
@pytest.mark.parametrize("name", EDITED)
def test_odd_shapes_give_a_picture_or_a_reason(name: str, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    alpha = np.zeros(shape, np.uint8)
    alpha[shape[0] // 3 : 2 * shape[0] // 3, shape[1] // 3 : 2 * shape[1] // 3] = 255
    try:
        shape_or_reason: object = edited(EDITED[name], Picture(image, alpha)).image.shape
    except Unusable as reason:
        shape_or_reason = str(reason)
    assert shape_or_reason == image.shape or re.search("the object|background|picture|photo", str(shape_or_reason))
