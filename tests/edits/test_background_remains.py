"""Background inside a mask: a rim, and grass between legs, leave the cut-out; what is the object's own stays."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from counterfoil.edits.background_remains import trim_remains
from counterfoil.edits.matting import soft_alpha
from counterfoil.edits.subject import Subject, Tools
from counterfoil.object_mask import UNKNOWN, as_mask, hard_object, mask_overlap
from counterfoil.types import Picture
from edit_pictures import Bytes, ellipse, texture

SHAPE = (160, 200)
REFINED = Tools(refine=True)


def draw(shape: Bytes, colour: tuple[int, int, int] = (150, 60, 40)) -> Bytes:
    """An object with some texture of its own, on grass that is seen through its soft edge."""
    grass = texture("grass", 200)[: SHAPE[0], : SHAPE[1]].astype(np.float32)
    rng = np.random.default_rng(0)
    own = np.clip(np.array(colour) + rng.normal(0, 8, (*SHAPE, 1)), 0, 255)
    share = cv2.GaussianBlur(shape, (0, 0), 0.7)[..., None] / 255
    green = grass * (0.55, 1.0, 0.35)
    return np.asarray(np.rint(green * (1 - share) + own * share), np.uint8)


def widen(mask: Bytes) -> Bytes:
    """A mask that is three pixels too wide."""
    return np.asarray(cv2.dilate(mask, np.ones((7, 7), np.uint8)), np.uint8)


def with_legs() -> Bytes:
    """A body on two legs."""
    shape = ellipse(SHAPE, (70, 100), (30, 55))
    shape[80:140, 60:74] = 255
    shape[80:140, 126:140] = 255
    return shape


def test_a_rim_of_background_in_a_mask_that_is_too_large_is_taken_out() -> None:
    true = ellipse(SHAPE, (80, 100), (40, 50))
    drawn = widen(true)
    image = draw(true)
    before = soft_alpha(image, as_mask(drawn))
    after = trim_remains(image, before)
    overlaps = [mask_overlap(hard_object(each), true > 0) for each in (before, after)]
    assert overlaps[1] > 0.96
    assert overlaps[1] > overlaps[0]


def test_grass_between_legs_that_the_author_left_open_is_taken_out() -> None:
    true, drawn = with_legs(), with_legs()
    between = np.zeros(SHAPE, bool)
    between[100:140, 76:124] = True
    drawn[between] = 255
    image = draw(true)
    kept = trim_remains(image, drawn, between)
    assert hard_object(kept)[between].mean() < 0.1
    assert hard_object(kept)[(true > 0) & ~between].mean() > 0.9


def test_nothing_of_an_object_coloured_like_its_background_is_taken() -> None:
    shape = ellipse(SHAPE, (80, 100), (40, 50))
    image = np.full((*SHAPE, 3), 120, np.uint8) + np.random.default_rng(1).integers(0, 20, (*SHAPE, 1), np.uint8)
    assert np.array_equal(hard_object(trim_remains(image, shape)), shape > 0)


@pytest.mark.parametrize("value", [255, 0])
def test_a_mask_of_everything_or_nothing_stays(value: int) -> None:
    alpha = np.full(SHAPE, value, np.uint8)
    assert np.array_equal(trim_remains(draw(with_legs()), alpha), alpha)


def test_a_large_picture_is_trimmed_as_its_small_copy() -> None:
    true = ellipse(SHAPE, (80, 100), (40, 50))
    drawn = widen(true)
    image = draw(true)
    large, large_mask = (np.asarray(cv2.resize(plane, (1000, 800)), np.uint8) for plane in (image, drawn))
    kept = np.asarray(cv2.resize(trim_remains(large, large_mask), SHAPE[::-1], interpolation=cv2.INTER_AREA), np.uint8)
    assert mask_overlap(hard_object(kept), true > 0) > 0.95


def test_a_graded_alpha_of_the_users_own_stays_as_it_is() -> None:
    graded = np.asarray(cv2.GaussianBlur(ellipse(SHAPE, (80, 100), (44, 54)), (0, 0), 6), np.uint8)
    picture = Picture(draw(ellipse(SHAPE, (80, 100), (40, 50))), graded)
    assert np.array_equal(Subject(picture, tools=REFINED).alpha, Subject(picture).alpha)


def test_a_cut_out_is_refined_only_where_that_is_asked_for() -> None:
    true = ellipse(SHAPE, (80, 100), (40, 50))
    drawn = widen(true)
    picture = Picture(draw(true), drawn)
    plain, refined = Subject(picture), Subject(picture, tools=REFINED)
    assert np.array_equal(plain.alpha, soft_alpha(picture.image, as_mask(drawn)))
    assert hard_object(refined.alpha).sum() < hard_object(plain.alpha).sum()
    assert np.array_equal(refined.hole, plain.hole)  # what is taken out of the object is still filled behind it


def test_the_unknown_band_of_a_trimap_says_where_remains_may_lie() -> None:
    true = with_legs()
    trimap = true.copy()
    trimap[100:140, 76:124] = UNKNOWN
    subject = Subject(Picture(draw(true), trimap), tools=REFINED)
    assert hard_object(subject.alpha)[105:135, 80:120].mean() < 0.1
