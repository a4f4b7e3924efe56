"""Alpha, colours, fill and placing against pictures whose truth is known."""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterfoil.edits.cutout import Cutout, cover, paste, place
from counterfoil.edits.fill import fill_background
from counterfoil.edits.matting import estimate_alpha, estimate_foreground
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from counterfoil.variant_renderer import SubjectCache
from edit_pictures import blob_on_grass, ellipse, texture

SHAPE = (160, 160)


def mixed(softness: float) -> tuple[Picture, NDArray[np.uint8], NDArray[np.uint8]]:
    """A picture mixed from known parts: (picture with true alpha, object colours, background)."""
    alpha = np.asarray(cv2.GaussianBlur(ellipse(SHAPE, (80, 80), (45, 35)), (0, 0), softness), np.uint8)
    background = texture("grass", 160)
    colours = np.full((*SHAPE, 3), (210, 70, 60), np.uint8) + texture("gravel", 160) // 8
    share = alpha[..., None] / 255
    return Picture(np.rint(colours * share + background * (1 - share)).astype(np.uint8), alpha), colours, background


def test_a_trimap_becomes_nearly_the_true_alpha() -> None:
    picture, _, _ = mixed(softness=4)
    wide = cv2.dilate(picture.alpha, np.ones((9, 9), np.uint8))
    trimap = np.where(picture.alpha == 255, 255, np.where(wide > 0, 128, 0)).astype(np.uint8)
    estimate = estimate_alpha(picture.image, trimap)
    unknown = trimap == 128
    error = np.abs(estimate[unknown].astype(float) - picture.alpha[unknown]).mean()
    assert error < 3
    np.testing.assert_array_equal(estimate[~unknown], trimap[~unknown])


def test_a_hard_mask_gets_an_edge_nearer_to_the_true_alpha() -> None:
    picture, _, _ = mixed(softness=1)
    hard = np.where(picture.alpha >= 128, 255, 0).astype(np.uint8)
    estimate = estimate_alpha(picture.image, hard)
    edge = (picture.alpha > 0) & (picture.alpha < 255)
    before, after = (np.abs(mask[edge].astype(float) - picture.alpha[edge]).mean() for mask in (hard, estimate))
    assert after < 0.7 * before


def test_an_alpha_that_is_graded_already_is_kept_but_for_traces() -> None:
    picture, _, _ = mixed(softness=4)
    faint = np.clip(picture.alpha, 3, 251).astype(np.uint8)
    estimate = estimate_alpha(picture.image, faint)
    graded = (faint >= 8) & (faint <= 247)
    np.testing.assert_array_equal(estimate[graded], faint[graded])
    assert set(np.unique(estimate[~graded])) == {0, 255}


@pytest.mark.parametrize("value", [1, 128, 200])
def test_a_mask_of_one_value_is_a_hard_mask_whichever_the_value(value: int) -> None:
    picture = blob_on_grass()
    mask = np.where(picture.alpha > 0, value, 0).astype(np.uint8)
    np.testing.assert_array_equal(estimate_alpha(picture.image, mask), estimate_alpha(picture.image, picture.alpha))


def test_an_unknown_collar_inside_the_object_belongs_to_the_object() -> None:
    picture, _, _ = mixed(softness=1)
    sure, wide = (ellipse(SHAPE, (80, 80), axes) for axes in ((41, 31), (49, 39)))
    trimap = np.where(sure > 0, 255, np.where(wide > 0, 128, 0)).astype(np.uint8)
    trimap[76:84, 60:100] = 128
    image = picture.image.copy()
    image[76:84, 60:100] = (20, 20, 200)
    assert (estimate_alpha(image, trimap)[76:84, 60:100] == 255).all()


def test_a_leg_that_is_unknown_all_through_belongs_to_the_object() -> None:
    image = texture("grass", 160)
    body, leg = ellipse(SHAPE, (60, 80), (35, 35)) > 0, np.zeros(SHAPE, bool)
    leg[90:145, 76:84] = True
    image[body | leg] = (200, 80, 60)
    near = cv2.dilate((body | leg).astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    sure = cv2.erode((body | leg).astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    trimap = np.where(sure, 255, np.where(near, 128, 0)).astype(np.uint8)
    assert (trimap[100:140, 79:81] == 128).all()
    assert estimate_alpha(image, trimap)[100:138, 78:82].mean() > 190


def test_edge_colours_lose_the_old_background() -> None:
    picture, colours, _ = mixed(softness=3)
    estimate = estimate_foreground(picture.image, picture.alpha)
    edge = (picture.alpha > 60) & (picture.alpha < 200)
    raw, cleaned = (np.abs(image[edge].astype(float) - colours[edge]).mean() for image in (picture.image, estimate))
    assert cleaned < 0.4 * raw
    opaque = picture.alpha == 255
    np.testing.assert_array_equal(estimate[opaque], picture.image[opaque])


def test_an_object_on_a_new_background_shows_no_halo_of_the_old_one() -> None:
    picture, colours, _ = mixed(softness=2)
    plain = np.full_like(picture.image, (30, 40, 220))
    share = picture.alpha[..., None] / 255
    truth = colours * share + plain * (1 - share)
    difference = paste(Subject(picture).cutout, plain) - truth
    assert np.abs(difference).max(axis=2)[picture.alpha < 255].mean() < 1
    assert np.abs(difference).max() < 30


@pytest.mark.parametrize("name", ["grass", "gravel", "brick"])
def test_the_fill_keeps_the_texture_that_inpainting_smears(name: str) -> None:
    real = texture(name)
    alpha = ellipse(real.shape[:2], (100, 95), (45, 40))
    image = np.where(alpha[..., None] > 0, np.uint8(0), real)
    filled = fill_background(image, alpha)
    telea = cv2.inpaint(image, cv2.dilate(alpha, np.ones((9, 9), np.uint8)), 5, cv2.INPAINT_TELEA)
    inside = ellipse(real.shape[:2], (100, 95), (40, 35)) > 0
    truth, ours, theirs = (_detail(picture)[inside].mean() for picture in (real, filled, np.asarray(telea, np.uint8)))
    assert abs(ours / truth - 1) < 0.35
    assert abs(theirs / truth - 1) > 0.5
    assert abs(filled[inside].mean() - real[inside].mean()) < 12


def _detail(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    gray = image.astype(np.float64).mean(axis=2)
    down, across = np.gradient(gray)
    return np.asarray(np.hypot(down, across), np.float64)


def test_no_colour_of_the_object_is_left_in_the_fill() -> None:
    picture = blob_on_grass()
    filled = Subject(picture).background.astype(int)
    assert (filled[..., 0] - filled[..., 1] < 40).all()  # the object is orange, the grass green
    outside = cv2.dilate(picture.alpha, np.ones((13, 13), np.uint8)) == 0
    np.testing.assert_array_equal(filled[outside], picture.image[outside])


def test_a_gradient_goes_on_behind_the_object() -> None:
    ramp = np.broadcast_to(np.linspace(20, 230, 160)[None, :, None], (160, 160, 3)).astype(np.uint8)
    alpha = ellipse(SHAPE, (80, 80), (40, 40))
    filled = fill_background(np.where(alpha[..., None] > 0, np.uint8(255), ramp), alpha)
    assert np.abs(filled.astype(int) - ramp).mean(axis=(0, 2)).max() < 20


def test_a_picture_with_a_sliver_of_background_is_refused() -> None:
    alpha = np.full(SHAPE, 255, np.uint8)
    alpha[:, :4] = 0
    with pytest.raises(Unusable, match="as background"):
        fill_background(texture("grass", 160), alpha)


def test_placing_without_moving_is_pasting() -> None:
    picture, _, _ = mixed(softness=2)
    cut, plain = Subject(picture).cutout, np.full_like(picture.image, 90)
    placed = place(cut, np.array([[1.0, 0, 0], [0, 1, 0]]), plain)
    np.testing.assert_array_equal(placed.alpha, cut.alpha)
    assert np.abs(placed.image.astype(int) - paste(cut, plain)).max() <= 1


def test_a_shrunk_object_is_averaged_not_skipped_over() -> None:
    checks = np.where((np.indices((120, 120)).sum(axis=0) % 2)[..., None], 255, 0).astype(np.uint8).repeat(3, axis=2)
    alpha = np.zeros((120, 120), np.uint8)
    alpha[10:110, 10:110] = 255
    placed = place(Cutout(checks, alpha, 0.5), np.array([[0.2, 0, 48], [0, 0.2, 48]]), np.zeros_like(checks))
    inside = placed.alpha == 255
    assert inside.sum() > 250
    assert np.abs(placed.image[inside].astype(float) - 127.5).max() < 30
    assert abs(placed.alpha.sum() / 255 - 400) < 8  # 100 x 100 pixels at a fifth of the size


def linear_samples(layer: NDArray[np.float64], across: Any, down: Any) -> NDArray[np.float64]:
    """The layer between its pixels, zero beyond them, in f64."""
    padded = np.pad(layer, ((2, 2), (2, 2), (0, 0)))
    left, top = (
        np.clip(np.floor(places).astype(int), -2, end)
        for places, end in ((across, layer.shape[1]), (down, layer.shape[0]))
    )
    right, lower = np.clip(across - left, 0, 1)[..., None], np.clip(down - top, 0, 1)[..., None]
    rows = [padded[top + row, left + 2] * (1 - right) + padded[top + row, left + 3] * right for row in (2, 3)]
    return np.asarray(rows[0] * (1 - lower) + rows[1] * lower)


@pytest.mark.parametrize(("scale", "times"), [(0.8, 2), (0.4, 3)])
def test_a_smaller_object_is_the_mean_of_linear_samples_weighted_by_alpha(scale: float, times: int) -> None:
    picture, colours, background = mixed(softness=2)
    matrix = np.asarray(cv2.getRotationMatrix2D((70.0, 60.0), 20, scale), np.float64)
    placed = place(Cutout(colours, picture.alpha, 0.5), matrix, background)
    layer = np.dstack([colours * (picture.alpha[..., None] / 255), picture.alpha])
    down, across = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float64)
    back, steps = cv2.invertAffineTransform(matrix), (np.arange(times) + 0.5) / times - 0.5
    moved = np.mean([
        linear_samples(layer, *(row[0] * (across + x) + row[1] * (down + y) + row[2] for row in back))
        for x in steps for y in steps
    ], axis=0)  # fmt: skip
    expected = moved[..., :3] + background * (1 - moved[..., 3:] / 255)
    assert np.abs(placed.alpha - moved[..., 3]).max() < 0.6  # rounded to a level
    assert np.abs(placed.image - expected).max() < 1.2


def test_cover_agrees_with_pillow() -> None:
    image = np.ascontiguousarray(texture("gravel", 300)[:, :240])
    ours = cover(image, (100, 120))
    theirs = np.asarray(Image.fromarray(image).reduce(2))[25:125]
    assert ours.shape == (100, 120, 3)
    assert np.abs(ours.astype(int) - theirs).max() <= 1


def test_what_a_subject_works_out_is_worked_out_once_by_many_threads() -> None:
    calls: list[Subject] = []

    def work(subject: Subject) -> int:
        calls.append(subject)
        return int(subject.picture.image.sum())

    subject, start = Subject(blob_on_grass()), Barrier(6)

    def ask(_: int) -> int:
        start.wait()
        return subject.once(work)

    with ThreadPoolExecutor(6) as pool:
        answers = set(pool.map(ask, range(6)))
    assert answers == {int(subject.picture.image.sum())}
    assert calls == [subject]


def test_a_reason_is_remembered_and_raised_afresh_and_a_bug_is_not() -> None:
    divisors = iter([0, 2])

    def bug(_: Subject) -> int:
        return 10 // next(divisors)

    subject = Subject(Picture(blob_on_grass().image, np.zeros(blob_on_grass().alpha.shape, np.uint8)))
    reasons = []
    for _ in range(2):
        with pytest.raises(Unusable, match="the object covers 0") as caught:
            subject.check_object()
        reasons.append(caught.value)
    assert reasons[0] is not reasons[1]
    with pytest.raises(ZeroDivisionError):
        subject.once(bug)
    assert subject.once(bug) == 5


def test_the_planes_that_a_subject_works_out_count_as_its_memory() -> None:
    picture = blob_on_grass()
    subject = Subject(picture)
    pixels = picture.image.nbytes + picture.alpha.nbytes
    assert subject.nbytes == pixels
    assert subject.at_full_size is subject
    cut = subject.cutout
    assert subject.nbytes == pixels + cut.image.nbytes + cut.alpha.nbytes
    small = Subject(picture, Picture(picture.image[::2, ::2].copy(), picture.alpha[::2, ::2].copy()))
    before = small.nbytes
    assert small.at_full_size.cutout.image.shape == picture.image.shape
    assert small.nbytes == before + cut.image.nbytes + cut.alpha.nbytes


def test_a_filled_hole_and_its_masks_count_as_memory_of_the_subject() -> None:
    picture = blob_on_grass()
    subject = Subject(picture)
    hole, avoid = np.zeros(picture.alpha.shape, bool), np.zeros(picture.alpha.shape, bool)
    hole[4:10, 4:10], avoid[20:24, 20:24] = True, True
    before = subject.nbytes
    fill = subject.fill_elsewhere(hole, avoid)
    assert subject.nbytes - before >= fill.image.nbytes + hole.nbytes + avoid.nbytes


def test_photos_that_grow_in_the_cache_stay_within_its_bound_though_none_is_added() -> None:
    picture = blob_on_grass()
    subjects = {f"{number}": Subject(picture._replace(image=picture.image.copy())) for number in range(8)}
    bound = sum(subject.nbytes for subject in subjects.values()) + 1
    cache = SubjectCache(bound)
    for name, subject in subjects.items():
        cache.add(name, subject)
    for name, subject in subjects.items():
        if cache.get(name) is not None:
            _ = subject.cutout, subject.background
            cache.settle()
        held = [subject for name, subject in subjects.items() if cache.get(name) is not None]
        assert sum(subject.nbytes for subject in held) <= bound
    assert cache.get("7") is not None


def test_a_refusal_that_is_kept_holds_no_pictures() -> None:
    pictures: list[weakref.ref[NDArray[np.uint8]]] = []

    def refuse(_: Subject) -> None:
        large = np.zeros((4, 4), np.uint8)
        pictures.append(weakref.ref(large))
        raise Unusable("in the way")

    subject = Subject(blob_on_grass())
    with pytest.raises(Unusable, match="in the way"):
        subject.once(refuse)
    assert pictures[0]() is None
