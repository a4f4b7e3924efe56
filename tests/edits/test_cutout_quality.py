"""What would show that an object was cut out: grass before it, a thing before it, an end where something hid it."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from counterfoil.edits.background import BackgroundSwap
from counterfoil.edits.cutout_quality import measure_cutout
from counterfoil.edits.direction import Direction
from counterfoil.edits.donor_scene import is_in_water
from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.grass import hide_in_grass, stands_in_grass
from counterfoil.edits.position import Position
from counterfoil.edits.scene_edits import SceneSize, SceneSwap
from counterfoil.edits.size import Size
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable
from counterfoil.object_mask import hard_object
from counterfoil.types import Picture
from edit_pictures import Bytes, ellipse, texture

SHAPE = (240, 300)
REFINED = Tools(refine=True)
GREEN = (0.55, 1.0, 0.35)


def grass() -> Bytes:
    return np.asarray(np.rint(texture("grass", 300)[: SHAPE[0], : SHAPE[1]] * GREEN), np.uint8)


def gravel() -> Bytes:
    return np.repeat(texture("gravel", 300)[: SHAPE[0], : SHAPE[1], 1:2], 3, axis=2)


def animal(ground: Bytes) -> Picture:
    """A brown object with a round outline."""
    alpha = ellipse(SHAPE, (120, 150), (60, 70))
    rng = np.random.default_rng(0)
    own = np.clip(np.array((150, 80, 50)) + rng.normal(0, 6, (*SHAPE, 1)), 0, 255)
    return Picture(np.where(alpha[..., None] > 0, own, ground).astype(np.uint8), alpha)


def behind_a_box() -> Picture:
    """The same, its lower half hidden by a box that is as wide as the picture."""
    picture = animal(gravel())
    image, alpha = picture.image.copy(), picture.alpha.copy()
    image[140:] = (200, 190, 60)
    alpha[140:] = 0
    return Picture(image, alpha)


def with_blades() -> Picture:
    """The same on grass, of which blades stand before it inside its mask."""
    picture = animal(grass())
    image = picture.image.copy()
    for column in range(100, 200, 10):
        image[120:180, column : column + 3] = grass()[120:180, column : column + 3]
    return picture._replace(image=image)


def with_a_scarf() -> Picture:
    """The same with a red scarf that its mask leaves out."""
    picture = animal(gravel())
    image, alpha = picture.image.copy(), picture.alpha.copy()
    image[110:116, 100:200], alpha[110:116, 100:200] = (220, 20, 40), 0
    return Picture(image, alpha)


FAULTY = {
    "grass or leaves before the object are part of its mask": with_blades,
    "something before the object leaves a gap in it": with_a_scarf,
    "something seems to hide the lower part of the object": behind_a_box,
}
MOVING = (SceneSwap(ground="grass"), SceneSize(ground="grass"), Size(0.05, grounded=True), Position(grounded=True),
          Direction(grounded=True), BackgroundSwap(grounded=True))  # fmt: skip


@pytest.mark.parametrize("reason", FAULTY)
def test_each_fault_is_told_by_its_reason(reason: str) -> None:
    assert measure_cutout(Subject(FAULTY[reason](), tools=REFINED)).reason.startswith(reason)


@pytest.mark.parametrize("ground", [grass, gravel])
def test_a_whole_object_has_no_fault(ground: Callable[[], Bytes]) -> None:
    assert measure_cutout(Subject(animal(ground()), tools=REFINED)).reason == ""


def test_a_green_object_on_grass_is_not_taken_for_grass() -> None:
    picture = animal(grass())
    own = np.where(picture.alpha[..., None] > 0, (70, 130, 40), picture.image).astype(np.uint8)
    assert measure_cutout(Subject(picture._replace(image=own), tools=REFINED)).green == 0


def test_gaps_that_show_the_background_are_no_fault() -> None:
    picture = animal(gravel())
    image, alpha = picture.image.copy(), picture.alpha.copy()
    image[110:116, 100:200], alpha[110:116, 100:200] = gravel()[110:116, 100:200], 0
    assert measure_cutout(Subject(Picture(image, alpha), tools=REFINED)).reason == ""


@pytest.mark.parametrize("edit", MOVING, ids=lambda edit: type(edit).__name__)
def test_edits_that_show_the_object_elsewhere_refuse_it_where_cut_outs_are_refined(edit: Edit) -> None:
    with pytest.raises(Unusable, match="grass or leaves"):
        edit.check_subject(Subject(with_blades(), tools=REFINED))
    edit.check_subject(Subject(with_blades()))


def test_the_measures_are_those_of_a_larger_copy() -> None:
    picture = behind_a_box()
    image, alpha = (np.asarray(cv2.resize(plane, (1500, 1200)), np.uint8) for plane in picture)
    hard = np.where(hard_object(alpha), 255, 0).astype(np.uint8)
    large = measure_cutout(Subject(Picture(image, hard), tools=REFINED))
    assert large.reason.startswith("something seems to hide")


def test_an_object_in_grass_stands_on_grass_whatever_ground_was_drawn() -> None:
    in_grass, on_gravel = (Subject(animal(ground()), tools=REFINED) for ground in (grass, gravel))
    assert stands_in_grass(in_grass)
    assert not stands_in_grass(on_gravel)
    drawn = SceneSwap(ground="sand", view=7)
    supplied = Supplied(donors=[])
    assert drawn.resolve(in_grass, supplied).edit == SceneSwap(ground="grass", view=7)
    assert drawn.resolve(on_gravel, supplied).edit == drawn
    assert drawn.resolve(Subject(animal(grass())), supplied).edit == drawn  # cut-outs are not refined
    asked = SceneSwap(ground="sand")  # by the user, who asked for no view of it
    assert asked.resolve(in_grass, supplied).edit == asked


def test_blades_hide_the_foot_alone_and_are_the_same_each_time() -> None:
    alpha = animal(grass()).alpha
    hidden = hide_in_grass(alpha, 3)
    assert np.array_equal(hidden, hide_in_grass(alpha, 3))
    assert not np.array_equal(hidden, hide_in_grass(alpha, 4))
    changed = np.flatnonzero((hidden != alpha).any(axis=1))
    assert changed.min() > 155  # the object ends at row 180
    assert 0.9 < hard_object(hidden).sum() / hard_object(alpha).sum() < 1


def test_an_object_that_the_lower_border_cuts_stands_in_no_blades() -> None:
    alpha = np.zeros(SHAPE, np.uint8)
    alpha[100:, 100:200] = 255
    assert np.array_equal(hide_in_grass(alpha, 3), alpha)


def test_size_and_place_show_the_blades_of_the_scene() -> None:
    photo = Subject(animal(grass()), tools=REFINED)
    edits = SceneSwap(ground="grass", view=7), SceneSize(0.05, ground="grass", view=7)
    rng = np.random.default_rng(0)
    swapped, small = (edit.apply(photo, rng, Supplied(donors=[])) for edit in edits)
    assert hard_object(swapped.alpha).sum() < hard_object(photo.alpha).sum()
    assert hard_object(small.alpha).mean() == pytest.approx(0.05, abs=0.006)


def rippled(grey: bool = True) -> Picture:
    """The same animal in water whose light changes from row to row."""
    rows = np.arange(SHAPE[0])[:, None] + 3 * np.sin(np.arange(SHAPE[1]) / 25)[None]
    levels = 110 + 60 * np.sin(rows / 2.5)
    water = np.repeat(levels[..., None], 3, axis=2) * ((1, 1, 1) if grey else (1, 0.55, 0.35))
    return animal(np.asarray(np.rint(water), np.uint8))


def test_an_object_in_grey_ripples_is_taken_to_be_in_water_where_cut_outs_are_refined() -> None:
    assert is_in_water(Subject(rippled(), tools=REFINED))
    assert not is_in_water(Subject(rippled()))
    with pytest.raises(Unusable, match="may be in water"):
        SceneSwap(ground="sand").check_subject(Subject(rippled(), tools=REFINED))


def test_boards_and_gravel_are_no_water() -> None:
    assert not is_in_water(Subject(rippled(grey=False), tools=REFINED))
    assert not is_in_water(Subject(animal(gravel()), tools=REFINED))
