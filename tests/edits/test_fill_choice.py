"""Which fill a hole gets, and what its pictures say about it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.assets.asset_catalogue import SHIPPED_CATALOGUE, read_catalogue
from counterfoil.assets.inpainting_weights import find_inpainting_weights
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.edits.fill_choice import Fills, FillTask, load_fills, load_same_fills
from counterfoil.edits.inpainting_network import InpaintingNetwork
from counterfoil.edits.smooth_fill import fill_smoothly
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import blob_on_grass

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


class RedNetwork(InpaintingNetwork):
    """A network that invents something red in every hole."""

    def fill(self, image: Bytes, hole: Flags) -> Bytes:
        return np.where(hole[..., None], np.array([230, 10, 10], np.uint8), image)


@dataclass(frozen=True)
class CountedNetwork(RedNetwork):
    """The same, with the pictures it was given."""

    given: list[Bytes] = field(default_factory=list)

    def fill(self, image: Bytes, hole: Flags) -> Bytes:
        self.given.append(image)
        return super().fill(image, hole)


RED = Fills(network=RedNetwork(Path()), judged=True)


def test_patches_are_taken_where_the_network_invents() -> None:
    subject = Subject(blob_on_grass(), tools=Tools(fills=RED))
    assert subject.fill.name.startswith("exemplar")
    assert not (subject.fill.image == (230, 10, 10)).all(axis=2).any()
    assert subject.visible_background is subject.fill.image


def test_the_mirrored_picture_is_filled_only_where_that_may_decide() -> None:
    grass = blob_on_grass().image
    hole = np.zeros(grass.shape[:2], bool)
    hole[20:-20, 20:-20] = True
    rows, columns = np.indices(hole.shape)
    stripes = np.where(((rows * columns) // 400 % 2)[..., None], np.uint8(0), np.uint8(255)).repeat(3, axis=2)
    times = []
    for image in (grass, stripes):  # patches of grass fit nearly, those of stripes by no means
        network = CountedNetwork(Path())
        fill = Fills(network=network, judged=True).first(FillTask(image, hole))
        assert fill.reason
        times.append(len(network.given))
    assert times == [2, 1]


def test_the_second_fill_comes_from_other_sources_where_the_network_fails() -> None:
    subject = Subject(blob_on_grass(), tools=Tools(fills=RED))
    again = subject.with_second_fill
    assert again.fill.name in ("exemplar", "exemplar, other sources")
    assert again.fill.name != subject.fill.name
    assert (again.fill.image != subject.fill.image)[subject.hole].mean() > 0.2


def test_a_hole_that_no_fill_fits_is_refused_but_the_control_is_not() -> None:
    image = blob_on_grass().image
    alpha = np.zeros(image.shape[:2], np.uint8)
    alpha[5:-5, 5:-30] = 255
    subject = Subject(Picture(image, alpha), tools=Tools(fills=Fills(judged=True)))
    with pytest.raises(Unusable, match="at most 65% can be filled"):
        _ = subject.visible_background
    assert subject.background.shape == image.shape


def test_a_record_makes_the_same_fills_again() -> None:
    assert load_same_fills("exemplar") == Fills()
    assert load_same_fills("") == Fills()
    record = load_fills(network=False).record
    assert record == "exemplar, judged, version 2"
    assert load_same_fills(record).record == record


def test_a_file_that_is_not_the_network_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(b"no network")
    monkeypatch.setenv("COUNTERFOIL_MIGAN", str(other))
    with pytest.raises(UserError, match="COUNTERFOIL_MIGAN: expected sha256 6f1f3530"):
        find_inpainting_weights()
    monkeypatch.setenv("COUNTERFOIL_MIGAN", str(tmp_path / "missing"))
    with pytest.raises(UserError, match=r"must name the file migan_pipeline_v2\.onnx or be 'none'"):
        find_inpainting_weights()


def test_without_npm_and_hub_the_reasons_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COUNTERFOIL_MIGAN")
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    weights = find_inpainting_weights()
    assert weights.path is None
    assert weights.reason.startswith("npm: there is no npm client; hub: http://127.0.0.1:9/andraniksargsyan/migan")


@pytest.fixture(scope="module")
def network() -> InpaintingNetwork:
    before = os.environ.pop("COUNTERFOIL_MIGAN", None)
    try:
        weights = find_inpainting_weights()
    finally:
        if before is not None:
            os.environ["COUNTERFOIL_MIGAN"] = before
    if weights.path is None:
        pytest.skip(f"needs MI-GAN, which cannot be fetched: {weights.reason}")
    assert read_catalogue(SHIPPED_CATALOGUE)["migan"].is_intact(weights.path)
    return InpaintingNetwork(weights.path)


def test_the_network_paints_what_its_file_paints(network: InpaintingNetwork) -> None:
    coarse = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    image = np.asarray(cv2.resize(coarse, (512, 512)), np.uint8)
    hole = np.zeros((512, 512), bool)
    hole[160:320, 200:400] = True
    mask = np.where(hole, 0, 255).astype(np.uint8)[None, None]
    planes = np.ascontiguousarray(fill_smoothly(image, hole).transpose(2, 0, 1))[None]
    (expected,) = open_onnx_session(network.weights).run(["result"], {"image": planes, "mask": mask})
    apart = np.abs(network.fill(image, hole).astype(int) - expected[0].transpose(1, 2, 0))[hole]
    assert apart.mean() < 0.1
    assert (apart <= 1).mean() > 0.98


@pytest.mark.parametrize("shape", [(384, 500), (90, 130), (700, 400)])
def test_the_network_fills_pictures_of_any_size(network: InpaintingNetwork, shape: tuple[int, int]) -> None:
    image = np.full((*shape, 3), (90, 120, 60), np.uint8)
    hole = np.zeros(shape, bool)
    hole[30:60, -50:] = True
    filled = network.fill(image, hole)
    np.testing.assert_array_equal(filled[~hole], image[~hole])
    assert np.abs(filled[hole].astype(int) - image[hole]).mean() < 12


def test_the_network_continues_a_ramp_and_leaves_the_rest(network: InpaintingNetwork) -> None:
    ramp = np.repeat(np.linspace(40, 210, 192).astype(np.uint8)[:, None], 256, axis=1)[..., None].repeat(3, axis=2)
    hole = np.zeros((192, 256), bool)
    hole[60:130, 90:170] = True
    spoilt = np.where(hole[..., None], np.uint8(255), ramp).astype(np.uint8)
    filled = network.fill(spoilt, hole)
    np.testing.assert_array_equal(filled[~hole], ramp[~hole])
    assert np.abs(filled[hole].astype(int) - ramp[hole]).mean() < 12


def test_the_judge_of_a_run_has_a_network_that_sees_objects() -> None:
    fills = load_fills(network=False)
    assert fills.find_salience is not None
    assert fills.find_salience(blob_on_grass().image).shape == (320, 320)
