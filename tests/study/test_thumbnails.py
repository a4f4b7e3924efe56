"""Thumbnails that are kept while the pixels are there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterfoil.sources.pixels import hash_pixels
from counterfoil.store.prediction_tables import RenderedVariant
from counterfoil.study.thumbnails import ThumbnailCandidates, thumbnail_jpeg
from counterfoil.types import Prediction, Variant


def show(candidates: ThumbnailCandidates, sample: str, attribute: str, image: NDArray[np.uint8], answer: str) -> str:
    """Add one picture with one model's answer; gives back the hash of its pixels."""
    variant = Variant(
        id=f"{sample} {attribute}", sample_id=sample, label="cat", attribute=attribute, edit=attribute, level="",
        settings="{}", seed=1,
    )  # fmt: skip
    row = RenderedVariant(variant, hash_pixels(image), 20.0)
    candidates.add([row], [image], {"model": [Prediction(variant.id, (answer,), (0.9,), 0.5)]})
    return row.sha256


def noise(seed: int, side: int = 40) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)


def test_a_picture_on_which_a_model_fails_is_kept_with_its_original() -> None:
    candidates = ThumbnailCandidates(["model"])
    original, edited = noise(0), noise(1)
    names = show(candidates, "a", "original", original, "cat"), show(candidates, "a", "grayscale", edited, "dog")
    assert candidates.jpegs[names[0]] == thumbnail_jpeg(original)
    assert candidates.jpegs[names[1]] == thumbnail_jpeg(edited)


def test_only_the_newest_originals_are_held_for_pictures_that_come_later() -> None:
    candidates = ThumbnailCandidates(["model"])
    for number in range(600):  # more than the report chooses from, so that hardly any original is kept for itself
        show(candidates, f"small {number}", "original", noise(number, 8), "cat")
    originals = [
        show(candidates, f"wide {level}", "original", np.full((2400, 2400, 3), level, np.uint8), "cat")
        for level in range(3)
    ]
    edited = [show(candidates, f"wide {level}", "grayscale", noise(level), "dog") for level in range(3)]
    assert set(edited) <= set(candidates.jpegs)
    assert [name in candidates.jpegs for name in originals] == [False, False, True]  # 17 MB each, 34 MB are held
