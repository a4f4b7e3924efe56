"""The resize of a crop has Pillow's levels, every one of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.pillow_resize import Interpolation, ResizedCrop, resize_cropped

FILTERS: dict[Interpolation, Image.Resampling] = {
    "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS,
}  # fmt: skip


def by_pillow(image: NDArray[np.uint8], kept: ResizedCrop, interpolation: Interpolation) -> NDArray[np.uint8]:
    resized = Image.fromarray(image).resize((kept.width, kept.height), FILTERS[interpolation])
    return np.asarray(resized.crop((kept.left, kept.top, kept.left + kept.columns, kept.top + kept.rows)))


def pictures(rng: np.random.Generator, height: int, width: int) -> list[NDArray[np.uint8]]:
    """Noise, and edges between black and white, at which bicubic and Lanczos leave the levels that there are."""
    noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return [noise, np.where(noise > 127, 255, 0).astype(np.uint8)]


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize(
    ("size", "kept"),
    [
        ((375, 500), ResizedCrop(341, 256, 58, 16, 224, 224)),
        ((500, 375), ResizedCrop(256, 341, 16, 58, 224, 224)),
        ((512, 512), ResizedCrop(256, 256, 16, 16, 224, 224)),  # half as large: many sums end in a half
        ((64, 64), ResizedCrop(128, 128, 0, 0, 128, 128)),
        ((97, 120), ResizedCrop(316, 256, 46, 16, 224, 224)),
        ((600, 200), ResizedCrop(64, 80, 3, 5, 50, 60)),  # loses much height: newer versions of Pillow go down first
        ((200, 2000), ResizedCrop(224, 224, 0, 0, 224, 224)),
        ((700, 40), ResizedCrop(40, 700, 2, 3, 30, 600)),
        ((1, 7), ResizedCrop(9, 3, 1, 0, 8, 3)),
        ((5, 1), ResizedCrop(1, 1, 0, 0, 1, 1)),
    ],
)
def test_a_resized_crop_has_the_levels_of_pillow(
    interpolation: Interpolation, size: tuple[int, int], kept: ResizedCrop
) -> None:
    for image in pictures(np.random.default_rng(0), *size):
        np.testing.assert_array_equal(resize_cropped(image, kept, interpolation), by_pillow(image, kept, interpolation))


def test_crops_of_any_size_and_place_have_the_levels_of_pillow() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        height, width, rows, columns = rng.integers(1, 120, 4).tolist()
        left, top = int(rng.integers(columns)), int(rng.integers(rows))
        kept = ResizedCrop(columns, rows, left, top, columns - left, rows - top)
        for image in pictures(rng, height, width):
            for name in FILTERS:
                ours, theirs = resize_cropped(image, kept, name), by_pillow(image, kept, name)
                np.testing.assert_array_equal(ours, theirs, err_msg=f"{image.shape} {kept} {name}")


def test_a_view_of_a_larger_picture_is_resized_like_a_copy() -> None:
    wide = np.random.default_rng(2).integers(0, 256, (90, 300, 3), dtype=np.uint8)
    kept = ResizedCrop(40, 30, 2, 2, 36, 26)
    for view in (wide[:, 20:140], wide[::2, ::-1], wide[:, :90].transpose(1, 0, 2), wide[:, :120, ::-1]):
        np.testing.assert_array_equal(
            resize_cropped(view, kept, "bicubic"), by_pillow(np.ascontiguousarray(view), kept, "bicubic")
        )


def test_the_levels_are_computed_without_pillow_once_it_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    image, kept = pictures(np.random.default_rng(3), 80, 100)[0], ResizedCrop(50, 40, 5, 5, 40, 30)
    expected = resize_cropped(image, kept, "bicubic")
    monkeypatch.delattr(Image.Image, "resize")
    np.testing.assert_array_equal(resize_cropped(image, kept, "bicubic"), expected)
