"""Donors that an edit refuses: refused for this edit with these settings, not for others of its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from counterfoil.errors import Unusable
from counterfoil.segmentation import make_segmenter
from counterfoil.sources.source_loaders import open_source
from counterfoil.types import Variant
from counterfoil.variant_renderer import Renderer

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
