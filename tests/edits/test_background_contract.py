"""What every background edit and every whole-picture edit promises, over all of their settings."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from counterfoil.contract_checks import check_edit
from counterfoil.edits.corruptions import CORRUPTIONS
from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.registry import edit_named
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, cat, edited, ellipse, subject_of

SETTINGS: tuple[tuple[str, dict[str, object]], ...] = (
    ("background-hue", {"hue": "red"}),
    ("background-hue", {"hue": "green"}),
    ("background-hue", {"hue": "blue"}),
    ("background-rainbow", {}),
    ("background-rainbow", {"per_pixel": True}),
    ("background-grayscale", {}),
    ("background-brightness", {}),
    ("background-brightness", {"factor": "ximagenet-12"}),
    ("background-contrast", {}),
    ("background-complexity", {"factor": 0.7}),
    ("background-complexity", {"factor": 2.0}),
    ("background-folder", {}),
    ("background-folder", {"fit": "tile"}),
    ("background-texture", {}),
    ("background-texture", {"texture": "gravel", "keep_colour": False}),
    ("background-plain", {}),
    ("background-swap", {}),
    ("background-blur", {}),
    ("background-blur", {"kernel": 41, "sigma": 10.0}),
)
BACKGROUNDS = [edit_named(name, settings) for name, settings in SETTINGS]
PRESENCE = [edit_named("object-box", {"fill": fill}) for fill in ("black", "tiled")]
GHOST = edit_named("background-additive", {})  # changes the object, too: that is what was published
WHOLE = [edit_named(name, {}) for name in (*CORRUPTIONS, "jpeg", "resize", "grayscale")]
COMBINED = [edit_named("combine", {}), edit_named("combine-donor", {})]
EVERY = [*BACKGROUNDS, *PRESENCE, GHOST, *WHOLE, *COMBINED]


def made_or_reason(edit: Edit, picture: Picture) -> Picture | str:
    try:
        return edited(edit, picture)
    except Unusable as reason:
        return str(reason)


@pytest.mark.parametrize("edit", EVERY, ids=repr)
def test_an_edit_keeps_the_contract_on_real_photos(edit: Edit) -> None:
    assert check_edit(edit, [subject_of(make()) for make in PICTURES.values()]) >= 3


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("edit", BACKGROUNDS, ids=repr)
def test_a_background_edit_touches_no_pixel_that_is_all_object(edit: Edit, picture: str) -> None:
    given = PICTURES[picture]()
    made = made_or_reason(edit, given)
    if isinstance(made, str):
        assert "background" in made
        return
    alpha = subject_of(given).alpha
    np.testing.assert_array_equal(made.image[alpha == 255], given.image[alpha == 255])
    np.testing.assert_array_equal(made.alpha, alpha)
    assert (made.image[alpha == 0] != given.image[alpha == 0]).any()


@pytest.mark.parametrize("edit", EVERY, ids=repr)
def test_holes_and_several_pieces_are_objects_like_others(edit: Edit) -> None:
    picture = blob_on_grass()
    pieces = np.maximum(picture.alpha, ellipse(picture.alpha.shape, (30, 160), (14, 20)))
    pieces[cv2.erode(picture.alpha, np.ones((45, 25), np.uint8)) > 0] = 0  # a hole in the middle of the first
    given = Picture(picture.image, pieces)
    made = edited(edit, given)
    if edit in BACKGROUNDS:
        alpha = subject_of(given).alpha
        np.testing.assert_array_equal(made.image[alpha == 255], picture.image[alpha == 255])


@pytest.mark.parametrize("edit", [*BACKGROUNDS, *PRESENCE, GHOST, *COMBINED], ids=repr)
def test_no_object_is_a_reason(edit: Edit) -> None:
    image = cat().image
    with pytest.raises(Unusable, match=r"the object covers 0\.00%"):
        edited(edit, Picture(image, np.zeros(image.shape[:2], np.uint8)))


@pytest.mark.parametrize("edit", [*BACKGROUNDS, *PRESENCE, GHOST, *COMBINED], ids=repr)
def test_nothing_but_object_is_a_reason(edit: Edit) -> None:
    image = cat().image
    with pytest.raises(Unusable, match="background"):
        edited(edit, Picture(image, np.full(image.shape[:2], 255, np.uint8)))


@pytest.mark.parametrize("shape", [(20, 20), (7, 9), (16, 150), (131, 33)])
@pytest.mark.parametrize("edit", EVERY, ids=repr)
def test_odd_shapes_give_a_picture_or_a_reason(edit: Edit, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    alpha = np.zeros(shape, np.uint8)
    alpha[shape[0] // 3 : 2 * shape[0] // 3, shape[1] // 3 : 2 * shape[1] // 3] = 255
    made = made_or_reason(edit, Picture(image, alpha))
    if isinstance(made, str):
        assert any(word in made for word in ("object", "pixels", "background")), made
    else:
        assert made.image.shape == image.shape
