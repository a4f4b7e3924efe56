"""Masks are accepted, corrected and rejected, and `run --masks` takes what was decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.mask_review.clicked_region import change_region
from counterfoil.mask_review.review_folder import (
    MaskReview,
    merge_drawing,
    open_review,
    page_size,
    reduce_mask,
)
from counterfoil.object_mask import ObjectMask, mask_overlap
from counterfoil.segmentation import Segmentation
from counterfoil.sources.folder import FolderSource
from counterfoil.sources.pixels import read_mask
from counterfoil.store.mask_table import read_masks, write_masks
from counterfoil.store.run_checksums import renew_checksums
from planted import write_photos


@pytest.fixture
def photos(tmp_path: Path) -> tuple[Path, Path]:
    return write_photos(tmp_path, 3)


def make_scene() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """A red disc before a textured green ground, and where the disc is."""
    rng = np.random.default_rng(0)
    image = np.full((200, 260, 3), (60, 140, 60), np.uint8)
    disc = cv2.circle(np.zeros((200, 260), np.uint8), (130, 100), 50, 1, -1) == 1
    image[disc] = (200, 40, 40)
    noisy = np.clip(image + rng.normal(0, 8, image.shape), 0, 255)
    return noisy.astype(np.uint8), np.asarray(disc)


def test_a_click_on_the_missing_half_of_an_object_grows_the_mask_over_it() -> None:
    image, disc = make_scene()
    half = disc.copy()
    half[:, 130:] = False
    grown = change_region(image, half, (155, 100), "grow")
    assert mask_overlap(grown, disc) > 0.97
    assert grown[half].all()


def test_a_click_on_ground_that_the_mask_covers_cuts_it_off() -> None:
    image, disc = make_scene()
    spilt = disc.copy()
    spilt[80:120, 185:215] = True
    cut = change_region(image, spilt, (200, 100), "cut")
    assert mask_overlap(cut, disc) > 0.97


def test_a_click_into_an_empty_mask_starts_an_object() -> None:
    image, disc = make_scene()
    started = change_region(image, np.zeros(disc.shape, bool), (130, 100), "grow")
    assert mask_overlap(started, disc) > 0.9


def test_a_click_changes_nothing_far_from_it() -> None:
    image, disc = make_scene()
    mask = disc.copy()
    mask[:10, :10] = True
    assert change_region(image, mask, (155, 100), "grow")[:10, :10].all()


def test_what_was_not_drawn_on_keeps_its_soft_edge() -> None:
    alpha = cv2.GaussianBlur(np.where(make_scene()[1], 255, 0).astype(np.uint8), (0, 0), 3)
    values = np.asarray(cv2.resize(alpha, (2600, 2000)), np.uint8)
    drawn = reduce_mask(values, (1024, 788))
    assert np.array_equal(merge_drawing(values, drawn), values)
    drawn[:40, :40] = 255
    merged = merge_drawing(values, drawn)
    assert (merged[:90, :90] == 255).all()
    assert np.array_equal(merged[200:], values[200:])


def test_large_photos_are_drawn_on_at_the_size_of_the_page() -> None:
    assert page_size(np.zeros((3000, 4000, 3), np.uint8)) == (1024, 768)
    assert page_size(np.zeros((300, 400, 3), np.uint8)) == (400, 300)


def test_run_takes_accepted_masks_and_leaves_rejected_photos_out(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    review = open_review(images, tmp_path / "reviewed", masks)
    first, second, *others = review.photos
    drawn = reduce_mask(review.read_mask(first).values, page_size(review.read_photo(first)))
    drawn[:30, :30] = 255
    review.accept(first, drawn)
    review.reject(second)
    samples, skipped = FolderSource(images, tmp_path / "reviewed").samples()
    assert [sample.id for sample in samples] == [first.id]
    reasons = {row.sample_id: row.reason for row in skipped}
    assert reasons[second.id] == "the photo was rejected in the review of masks"
    assert all(reasons[other.id].startswith("there is no mask") for other in others)
    _, mask = FolderSource(images, tmp_path / "reviewed").read(samples[0])
    assert mask is not None
    assert (mask[:25, :25] == 255).all()


def test_an_unchanged_mask_is_accepted_to_the_byte_of_its_values(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    review = open_review(images, tmp_path / "reviewed", masks)
    sample = review.photos[0]
    review.accept(sample, None)
    written = next((tmp_path / "reviewed").rglob("*.png"))
    assert np.array_equal(read_mask(written), read_mask(masks / written.relative_to(tmp_path / "reviewed")))


def test_a_review_that_was_killed_continues_with_its_drafts_and_verdicts(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    images, masks = photos
    before = open_review(images, tmp_path / "reviewed", masks)
    first, second, *_ = before.photos
    drawn = np.zeros(page_size(before.read_photo(first))[::-1], np.uint8)
    drawn[40:80, 40:80] = 255
    before.keep_draft(first, drawn)
    before.reject(second)
    after = open_review(images, tmp_path / "reviewed", masks)
    state = after.read_mask(first)
    assert state.is_draft
    assert np.array_equal(state.values == 255, drawn == 255)
    assert after.verdicts() == {second.id: "rejected"}


def test_a_decision_taken_back_gives_the_folder_its_own_mask_again(photos: tuple[Path, Path]) -> None:
    images, masks = photos
    review = open_review(images, masks)
    sample = review.photos[0]
    own = read_mask(masks / Path(sample.image).with_suffix(".png"))
    drawn = np.zeros(page_size(review.read_photo(sample))[::-1], np.uint8)
    drawn[:20] = 255
    review.accept(sample, drawn)
    assert not np.array_equal(read_mask(masks / Path(sample.image).with_suffix(".png")), own)
    review.reopen(sample)
    assert np.array_equal(read_mask(masks / Path(sample.image).with_suffix(".png")), own)
    assert review.verdicts() == {}
    assert review.read_mask(sample).is_draft  # what was drawn is not lost


def test_an_empty_mask_is_refused(photos: tuple[Path, Path], tmp_path: Path) -> None:
    review = open_review(photos[0], tmp_path / "reviewed", photos[1])
    with pytest.raises(UserError, match="paint the object, or reject"):
        review.accept(review.photos[0], np.zeros(page_size(review.read_photo(review.photos[0]))[::-1], np.uint8))
    assert not list((tmp_path / "reviewed").rglob("*.png"))


def test_without_masks_a_network_finds_the_object_and_says_what_is_implausible(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    source = FolderSource(photos[0])
    samples = tuple(source.samples()[0])

    def find_nothing(image: NDArray[np.uint8]) -> Segmentation:
        return Segmentation(ObjectMask(np.zeros(image.shape[:2], np.uint8), "salience"), 0.0, 1.0)

    review = MaskReview(source, tmp_path / "reviewed", samples, find_object=find_nothing)
    state = review.read_mask(samples[0])
    assert (state.note, state.is_doubtful) == ("it covers 0.00% of the picture", True)


def test_the_doubtful_masks_of_a_run_come_first_with_their_reasons(photos: tuple[Path, Path], tmp_path: Path) -> None:
    images, masks = photos
    run = tmp_path / "run"
    arguments = ["run", "--images", str(images), "--masks", str(masks), "--model", "python:planted:honest"]
    (tmp_path / "recipe.yaml").write_text("edits: [{edit: control}]")
    done = CliRunner().invoke(commands, [*arguments, "--recipe", str(tmp_path / "recipe.yaml"), "--out", str(run)])
    assert done.exit_code == 3, done.output  # three photos cannot tell it from guessing
    last = sorted(sample.id for sample in FolderSource(images).samples()[0])[-1]
    verdicts = [
        replace(row, verdict="doubtful", reasons=("it is torn",)) for row in read_masks(run) if row.sample == last
    ]
    write_masks(run, verdicts)
    renew_checksums(run)
    review = open_review(run, tmp_path / "reviewed")
    assert review.photos[0].id == last
    assert review.read_mask(review.photos[0]).note == "it is torn"
    assert review.start == masks
