"""JPEG, fewer pixels and no colour, against Pillow and scikit-image."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from skimage.transform import downscale_local_mean

from counterfoil.edits.registry import edit_named
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import cat

RNG = np.random.default_rng


def applied(name: str, picture: Picture, **settings: object) -> Picture:
    return edit_named(name, settings)(picture, RNG(0))


@pytest.mark.parametrize("quality", [5, 30, 90])
def test_jpeg_is_what_pillow_stores(quality: int) -> None:
    file = io.BytesIO()
    Image.fromarray(cat().image).save(file, "JPEG", quality=quality)
    assert np.abs(applied("jpeg", cat(), quality=quality).image - np.array(Image.open(file)).astype(int)).mean() < 0.5


def test_resize_leaves_the_means_of_blocks() -> None:
    picture = Picture(np.ascontiguousarray(cat().image[:, :150]), np.ascontiguousarray(cat().alpha[:, :150]))
    made = applied("resize", picture, side=30)
    means = downscale_local_mean(picture.image, (5, 5, 1))
    centres = made.image[2::5, 2::5].astype(float)  # there the enlarged picture shows a pixel of the small one
    assert np.abs(centres - means).max() <= 1


def test_resize_to_more_pixels_than_there_are_says_so() -> None:
    with pytest.raises(Unusable, match="225 x 150 pixels"):
        applied("resize", cat(), side=150)


def test_grayscale_is_pillows_luma() -> None:
    luma = np.array(Image.fromarray(cat().image).convert("L")).astype(int)
    made = applied("grayscale", cat()).image
    assert np.abs(made - luma[..., None]).max() <= 1
    assert (np.ptp(made, axis=2) == 0).all()


@pytest.mark.parametrize(
    ("name", "settings"), [("jpeg", {"quality": 0}), ("jpeg", {"quality": 101}), ("resize", {"side": 0})]
)
def test_a_setting_out_of_range_is_refused(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="expected"):
        edit_named(name, settings)
