"""A run over photos without masks: doubtful masks are recorded, and only edits that need them are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import counterfoil as cf
from counterfoil.errors import UserError
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.study.runs import open_runs
from planted import write_photos

RECIPE = """
name: two
about: one edit that needs the mask and one that does not
working_size: 160
edits:
  - {edit: control}
  - {edit: jpeg}
"""


@pytest.fixture
def photos(tmp_path: Path, assets: object) -> Path:
    """An airliner, and noise in which there is no object to find."""
    source = DemoSource()
    plane = next(sample for sample in source.samples()[0] if sample.id == "n02690373/ffffffff0000ff00_0404.png")
    folder = tmp_path / "photos" / "n02690373"
    folder.mkdir(parents=True)
    Image.fromarray(source.read(plane)[0]).save(folder / "plane.png")
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    Image.fromarray(noise).save(folder / "noise.png")
    (tmp_path / "two.yaml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def test_a_doubtful_mask_is_recorded_and_left_out_unless_it_is_to_be_kept(photos: Path) -> None:
    result = cf.run(
        photos / "photos", ["embedded:efficientnet-lite0"], recipe=str(photos / "two.yaml"), out=photos / "out",
    )  # fmt: skip
    verdicts = {verdict.sample: verdict.verdict for verdict in result.study.masks}
    assert verdicts == {"n02690373/noise.png": "doubtful", "n02690373/plane.png": "accepted"}
    refused = [(row.sample_id, row.edit) for row in result.skipped if "the mask is doubtful" in row.reason]
    assert refused == [("n02690373/noise.png", "control")]
    result.report(photos / "elsewhere")
    study = open_runs([photos / "elsewhere"])
    assert [verdict.sample for verdict in study.doubtful_masks] == ["n02690373/noise.png"]
    assert study.doubtful_masks[0].reasons
    assert json.loads((photos / "out" / "run.json").read_text("utf-8"))["segmenter"] == "joint"
    kept = cf.run(
        photos / "photos", ["embedded:efficientnet-lite0"], recipe=str(photos / "two.yaml"), doubtful_masks="keep",
    )  # fmt: skip
    assert [row.edit for row in kept.skipped if "the mask is doubtful" in row.reason] == []
    assert [verdict.verdict for verdict in kept.study.masks] == ["doubtful", "accepted"]


def test_a_segmenter_that_is_not_there_is_refused_in_one_line(photos: Path) -> None:
    with pytest.raises(UserError, match=r"expected a segmenter of joint, u2netp, u2net, got 'sam'"):
        cf.run(photos / "photos", ["embedded:efficientnet-lite0"], segmenter="sam")


def test_pixels_that_one_edit_makes_at_two_levels_count_once(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    recipe = tmp_path / "twice.yaml"
    recipe.write_text(
        "about: the same picture twice\nworking_size: 128\n"
        "edits:\n  - {edit: segmented, levels: {ground: [white, transparent, black]}}\n",
        encoding="utf-8",
    )
    result = cf.run(images, ["python:planted:honest"], masks=masks, recipe=str(recipe), out=tmp_path / "out")
    assert {(row.level, row.n) for row in result.drops} == {("white", 4), ("black", 4)}
    reasons = {row.reason for row in result.skipped}
    assert reasons == {"level transparent has the same pixels as level white, and counts once"}
