"""Masks found by two networks of different kinds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import build_click_network
from counterfoil.mask_quality import MaskJudge
from counterfoil.object_mask import ObjectMask, hard_object, mask_overlap
from counterfoil.segmentation import ClickNetwork, JointSegmenter, SalienceNetwork, Segmentation, keep_masks
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.result_cache import ResultCache


class Finder(SalienceNetwork):
    """Finds a rectangle of the picture."""

    def look_twice(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        salience = np.zeros(image.shape[:2], np.uint8)
        salience[20:60, 30:90] = 255
        return salience, salience


class Clicked(ClickNetwork):
    """Cuts out a rectangle, less of it than the finder found."""

    def click(self, image: np.ndarray, found: np.ndarray) -> Iterator[np.ndarray]:
        cut = np.zeros(image.shape[:2], np.uint8)
        cut[20:60, 30:60] = 200
        yield cut


def joint() -> JointSegmenter:
    return JointSegmenter(Finder("nowhere"), Clicked("nowhere"))  # type: ignore[arg-type]


def test_the_mask_is_the_mean_of_both_networks() -> None:
    found = joint()(np.zeros((100, 120, 3), np.uint8))
    assert found.mask.values[40, 40] == 255
    assert found.mask.values[40, 80] == 255  # (255 + 0 + 1) // 2 = 128: one sure network is enough
    assert found.mask.values[80, 40] == 0
    assert found.agreement == pytest.approx(0.5)
    assert math.isnan(found.steadiness)


@pytest.mark.parametrize("like_the_object", [True, False])
def test_a_part_that_one_network_finds_belongs_to_the_object_if_it_has_its_colours(like_the_object: bool) -> None:
    class Generous(Clicked):
        def click(self, image: np.ndarray, found: np.ndarray) -> Iterator[np.ndarray]:
            cut = np.zeros(image.shape[:2], np.uint8)
            cut[20:60, 30:78] = 200  # four fifths of the rectangle
            yield cut

    rng = np.random.default_rng(0)
    image = rng.integers(0, 60, (100, 120, 3)).astype(np.uint8) + np.uint8(20)
    image[20:60, 30 : 90 if like_the_object else 78, 0] += 150
    segmenter = JointSegmenter(Finder("nowhere"), Generous("nowhere"))  # type: ignore[arg-type]
    found = segmenter(image)
    assert found.agreement == pytest.approx(0.8)
    assert (found.mask.values[25:55, 30:76] == 255).all()
    assert (found.mask.values[25:55, 80:90] == 255).mean() == float(like_the_object)
    np.testing.assert_array_equal(found.mask.values, segmenter(image).mask.values)


@pytest.mark.parametrize(("reached", "agreement"), [(90, 1.0), (78, 0.5)])
def test_further_clicks_complete_a_group_and_count_only_where_they_nearly_do(reached: int, agreement: float) -> None:
    class Patient(Clicked):
        def click(self, image: np.ndarray, found: np.ndarray) -> Iterator[np.ndarray]:
            yield from super().click(image, found)
            cut = np.zeros(image.shape[:2], np.uint8)
            cut[20:60, 30:reached] = 200
            yield cut

    found = JointSegmenter(Finder("nowhere"), Patient("nowhere"))(np.zeros((100, 120, 3), np.uint8))  # type: ignore[arg-type]
    assert found.agreement == pytest.approx(agreement)
    if agreement < 1:
        assert found.added is None
    else:
        assert found.added is not None
        np.testing.assert_array_equal(np.argwhere(found.added)[[0, -1]], [(20, 60), (59, 89)])


def test_kept_masks_come_back_with_what_further_clicks_added(tmp_path: Path) -> None:
    mask = np.zeros((50, 60), np.uint8)
    mask[10:40, 10:50] = 255
    for added in (None, mask // 2):
        made = Segmentation(ObjectMask(mask, "salience"), math.nan, math.nan, 0.9, added)
        image, cache = np.full((50, 60, 3), 0 if added is None else 9, np.uint8), ResultCache(tmp_path)
        keep_masks(lambda _, made=made: made, "joint", cache)(image)  # type: ignore[misc]
        back = keep_masks(joint(), "joint", cache)(image)
        np.testing.assert_array_equal(back.mask.values, mask)
        assert (back.added is None) == (added is None)
        assert back.agreement == pytest.approx(0.9)


def test_a_click_that_finds_something_else_gets_no_help() -> None:
    class Elsewhere(Clicked):
        def click(self, image: np.ndarray, found: np.ndarray) -> Iterator[np.ndarray]:
            for width in (10, 60):  # a sixth of the rectangle, then all of it
                cut = np.zeros(image.shape[:2], np.uint8)
                cut[20:60, 30 : 30 + width] = 200
                yield cut

    found = JointSegmenter(Finder("nowhere"), Elsewhere("nowhere"))(np.zeros((100, 120, 3), np.uint8))  # type: ignore[arg-type]
    assert found.agreement == pytest.approx(1 / 6)


def test_networks_that_find_different_things_make_the_mask_doubtful() -> None:
    image = np.random.default_rng(0).integers(0, 256, (100, 120, 3)).astype(np.uint8)
    verdict = MaskJudge().judge_found("photo", image, joint()(image))
    assert verdict.verdict == "doubtful"
    assert "a second network finds another object (overlap 50%)" in verdict.reasons


def test_a_photo_without_anything_salient_has_an_empty_mask() -> None:
    class Blind(Finder):
        def look_twice(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            empty = np.zeros(image.shape[:2], np.uint8)
            return empty, empty

    found = JointSegmenter(Blind("nowhere"), Clicked("nowhere"))(np.zeros((50, 60, 3), np.uint8))  # type: ignore[arg-type]
    assert not found.mask.values.any()


def test_a_click_on_a_real_object_cuts_it_out() -> None:
    source = open_source("demo:", None)
    network = ClickNetwork(build_click_network(fetch_asset, cache_folder()))
    overlaps = []
    for sample in source.samples()[0][:10]:
        image, mask = source.read(sample)
        assert mask is not None
        overlaps.append(mask_overlap(network(image, hard_object(mask)) >= 128, hard_object(mask)))
    assert float(np.median(overlaps)) > 0.7


def test_a_group_takes_a_click_on_each_of_its_things() -> None:
    source = open_source("demo:", None)
    geese = next(sample for sample in source.samples()[0] if sample.id.endswith("imagenet_15_99.jpg"))
    image, mask = source.read(geese)
    assert mask is not None
    network = ClickNetwork(build_click_network(fetch_asset, cache_folder()))
    one, *_, several = (
        mask_overlap(hard_object(cut), hard_object(mask)) for cut in islice(network.click(image, hard_object(mask)), 4)
    )
    assert one < 0.6 < 0.8 < several
