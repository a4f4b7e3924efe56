"""The object's box covered, as in ImageNet-9."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, ellipse

RNG = np.random.default_rng


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("fill", ["black", "tiled"])
def test_everything_outside_the_box_stays_and_nothing_of_the_object_does(name: str, fill: str) -> None:
    picture = PICTURES[name]()
    alpha = Subject(picture).cutout.alpha
    rows, columns = (np.flatnonzero(alpha.any(axis=axis)) for axis in (1, 0))
    box = np.zeros(alpha.shape, bool)
    box[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    made = edit_named("object-box", {"fill": fill})(picture, RNG(0))
    np.testing.assert_array_equal(made.image[~box], picture.image[~box])
    assert not made.alpha.any()
    if fill == "black":
        assert not made.image[box].any()
    else:
        seen = {tuple(pixel) for pixel in picture.image[~box].reshape(-1, 3).tolist()}
        assert {tuple(pixel) for pixel in made.image[box].reshape(-1, 3).tolist()} <= seen


def test_tiles_repeat_the_largest_strip() -> None:
    image = RNG(0).integers(0, 256, (60, 100, 3), np.uint8)
    alpha = np.zeros((60, 100), np.uint8)
    alpha[10:50, 60:90] = 255  # left of it lies the largest strip: 60 rows, about 58 columns
    picture = Picture(image, alpha)
    left = int(np.flatnonzero(Subject(picture).cutout.alpha.any(axis=0))[0])
    top = int(np.flatnonzero(Subject(picture).cutout.alpha.any(axis=1))[0])
    made = edit_named("object-box", {"fill": "tiled"})(picture, RNG(0))
    np.testing.assert_array_equal(made.image[top : top + 20, left : left + 20], image[:20, :20])


def test_several_pieces_are_covered_together() -> None:
    picture = blob_on_grass()
    second = ellipse(picture.alpha.shape, (20, 180), (8, 8))
    both = Picture(picture.image, np.maximum(picture.alpha, second))
    made = edit_named("object-box", {})(both, RNG(0))
    assert not made.image[20, 180].any()
    assert not made.image[88, 90].any()


def test_a_box_as_large_as_the_picture_says_so() -> None:
    picture = blob_on_grass()
    alpha = np.zeros_like(picture.alpha)
    alpha[:, 95:105] = alpha[70:90, :] = 255  # a cross: little object, but its box is everything
    with pytest.raises(Unusable, match=r"leaves 0\.0% of the picture"):
        edit_named("object-box", {})(Picture(picture.image, alpha), RNG(0))
