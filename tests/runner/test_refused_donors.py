"""Donors that an edit refuses: refused for this edit with these settings, not for others of its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from counterfoil.errors import Unusable
from counterfoil.segmentation import make_segmenter
from counterfoil.sources.source_loaders import open_source
from counterfoil.types import GROWN_MASK, Variant
from counterfoil.variant_renderer import Renderer

GROUNDED = {"grounded": True}
FILLED = {"edits": [{"edit": "background-swap"}, {"edit": "jpeg"}]}
PLACED = {"edits": [{"edit": "second-object"}, {"edit": "jpeg"}]}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two photos: one whose object lies inside, and one whose object the left border cuts."""
    for label, across in (("inside", 80), ("cut", 0)):
        mask = np.zeros((120, 160), np.uint8)
        cv2.ellipse(mask, (across, 60), (24, 30), 0, 0, 360, 255, -1)
        image = np.random.default_rng(across).integers(60, 120, (120, 160, 3), np.uint8)
        image[mask > 0] = (200, 40, 40)
        for kind, pixels in (("images", image), ("masks", mask)):
            (tmp_path / kind / label).mkdir(parents=True)
            Image.fromarray(pixels).save(tmp_path / kind / label / "0.png")
    return tmp_path


def make_donors(photos: Path, order: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """For each combination, in this order of work, the donor that it took, or why it took none."""
    source = open_source(str(photos / "images"), str(photos / "masks"))
    samples = {sample.id: sample for sample in source.samples()[0]}
    renderer = Renderer(
        source=source, samples=samples, working_size=None, segmenter=make_segmenter(list(samples.values()))
    )
    own, donor = (next(name for name in samples if name.startswith(label)) for label in ("inside", "cut"))
    found = {}
    for settings in order:
        text = json.dumps(settings, sort_keys=True)
        variant = Variant(
            id="v", sample_id=own, label="inside", attribute="combination", edit="combine-donor", level="",
            settings=text, seed=1, donor_id=donor, replicate=0,
        )  # fmt: skip
        try:
            found[text] = str(renderer.resolve(variant).donor_id)
        except Unusable as error:
            found[text] = str(error)
    return found


def test_a_donor_that_one_combination_refuses_is_there_for_another_in_any_order(photos: Path) -> None:
    found = make_donors(photos, [PLACED, FILLED])
    assert found == make_donors(photos, [FILLED, PLACED])
    assert found[json.dumps(FILLED, sort_keys=True)].startswith("cut")
    assert "is cut by the left of its photo" in found[json.dumps(PLACED, sort_keys=True)]


@pytest.fixture
def scenes(tmp_path: Path) -> Path:
    """Three photos: objects on two kinds of rough ground, and one before an even sky."""
    for number, label in enumerate(("grass", "gravel", "sky")):
        mask = np.zeros((120, 160), np.uint8)
        cv2.ellipse(mask, (80, 60), (24, 30), 0, 0, 360, 255, -1)
        image = np.random.default_rng(number).integers(60, 160, (120, 160, 3), np.uint8)
        if label == "sky":
            image[:] = (150, 180, 220)
        image[mask > 0] = (200, 40, 40)
        for kind, pixels in (("images", image), ("masks", mask)):
            (tmp_path / kind / label).mkdir(parents=True)
            Image.fromarray(pixels).save(tmp_path / kind / label / "0.png")
    return tmp_path


def test_a_donor_that_does_not_suit_the_photo_is_passed_over_and_the_window_is_recorded(scenes: Path) -> None:
    source = open_source(str(scenes / "images"), str(scenes / "masks"))
    samples = {sample.id: sample for sample in source.samples()[0]}
    renderer = Renderer(
        source=source, samples=samples, working_size=None, segmenter=make_segmenter(list(samples.values()))
    )
    grass, gravel, sky = sorted(samples)
    planned = Variant(
        id="v", sample_id=grass, label="grass", attribute="background", edit="background-swap", level="other",
        settings=json.dumps(GROUNDED), seed=1, donor_id=sky, replicate=0,
    )  # fmt: skip
    variant, picture = renderer.make(planned)
    assert variant.donor_id == gravel
    assert variant.id != planned.id
    assert len(json.loads(variant.settings)["window"]) == 4
    np.testing.assert_array_equal(renderer.render(variant).image, picture.image)
    doubled = renderer.resolve(replace(planned, attribute=GROWN_MASK))  # the window is that of the unchanged mask
    assert doubled.settings == variant.settings
    with pytest.raises(Unusable, match="in the air"):
        renderer.resolve(replace(planned, sample_id=sky, label="sky", donor_id=grass))
