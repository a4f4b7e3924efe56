"""Size, position and direction in a part of another photo where nothing of that photo's object is seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.ground_view import draw_ground
from counterfoil.edits.open_scene import check_open_scene, find_open_scene
from counterfoil.edits.registry import edit_named, own_ground_of, settings_of
from counterfoil.edits.scene_edits import PHOTO, InScene, SceneDirection, ScenePosition, SceneSize, SceneSwap
from counterfoil.edits.subject import Subject
from counterfoil.edits.variant_plan import PlannedEdit, plan_variants
from counterfoil.errors import Unusable, UserError
from counterfoil.object_mask import hard_object
from counterfoil.segmentation import make_segmenter
from counterfoil.sources.source_loaders import open_source
from counterfoil.types import EditLevel, Picture, Variant
from counterfoil.variant_renderer import Renderer
from edit_pictures import Bytes, ellipse, texture

SHAPE = (160, 200)
EDITS: tuple[InScene, ...] = (SceneSwap(), SceneSize(0.05), ScenePosition(0.05), SceneDirection(rate=0.05))
MARK = (250, 0, 250)  # of objects that lend their scenes


def draw(alpha: Bytes, colour: tuple[int, int, int] = (200, 40, 40)) -> Picture:
    """An object of one colour on grass."""
    grass = texture("grass", 200)[: alpha.shape[0], : alpha.shape[1]]
    return Picture(np.where(alpha[..., None] > 0, colour, grass).astype(np.uint8), alpha)


def subject() -> Subject:
    return Subject(draw(ellipse(SHAPE, (90, 100), (30, 26))))


def lender(centre: tuple[int, int] = (24, 170)) -> Subject:
    """A photo whose object is in a corner, at the height where it stands on grass."""
    return Subject(draw(ellipse(SHAPE, centre, (14, 12)), MARK))


def make(edit: InScene, photo: Subject, donor: Subject, seed: int = 0) -> Picture:
    return edit.apply(photo, np.random.default_rng(seed), Supplied(donors=[donor]))


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: type(edit).__name__)
def test_nothing_of_the_lending_photos_object_is_seen_and_no_hole_is_filled(edit: InScene) -> None:
    photo, donor = subject(), lender()
    made = make(edit, photo, donor)
    near = np.abs(made.image.astype(int) - MARK).sum(axis=2) < 60
    assert not near.any()
    assert not edit.shows_fill
    assert edit.find_shown_fill(photo, np.random.default_rng(0), Supplied(donors=[donor])) is None


def test_an_edit_differs_from_its_reference_only_where_the_object_and_its_shadow_are() -> None:
    photo, donor = subject(), lender()
    before, small = make(SceneSwap(), photo, donor), make(SceneSize(0.05), photo, donor)
    assert hard_object(small.alpha).mean() == pytest.approx(0.05, abs=0.005)
    beside = (before.alpha == 0) & (small.alpha == 0)
    beside[100:] = False  # where the shadow falls, whose faintest part reaches further
    assert np.abs(before.image[beside].astype(int) - small.image[beside]).max() <= 2


def test_the_part_of_the_photo_is_a_setting_that_makes_the_picture_again() -> None:
    photo, donor = subject(), lender()
    supplied = Supplied(donors=[donor])
    for edit in (replace(each, ground=PHOTO) for each in EDITS):  # type: ignore[type-var]
        chosen = edit.resolve(photo, supplied).edit
        assert isinstance(chosen, InScene)
        assert chosen.window is not None
        assert chosen.resolve(photo, supplied).edit == chosen
        again = edit_named("scene-size" if isinstance(chosen, SceneSize) else "scene-swap", {"window": chosen.window})
        assert settings_of(again)["window"] == list(chosen.window)
        assert np.array_equal(make(edit, photo, donor).image, make(chosen, photo, donor).image)


def test_the_foot_stands_where_the_lending_photo_has_ground() -> None:
    photo, donor = subject(), lender((70, 30))
    window = find_open_scene(photo, donor)
    assert window.top + window.height * 120 / 160 >= 84 / 160 - 0.02  # the lending object's foot
    assert window.left > 0.15  # beside it


def test_a_photo_whose_object_is_everywhere_lends_no_scene() -> None:
    full = Subject(draw(ellipse(SHAPE, (80, 100), (60, 76))))
    with pytest.raises(Unusable, match="without its object"):
        check_open_scene(full)
    check_open_scene(lender())


def test_a_cut_by_the_border_is_refused_in_a_scene_as_on_the_own_background() -> None:
    wide = Subject(draw(ellipse(SHAPE, (90, 100), (30, 140))))
    assert make(SceneSwap(), wide, lender()).image.shape == (*SHAPE, 3)
    with pytest.raises(Unusable, match="left and right"):
        make(SceneSize(0.05), wide, lender())


def test_the_reference_is_the_object_in_the_same_scene_at_the_same_size() -> None:
    scene = EditLevel("scene-swap", "random")
    assert SceneSize.reference("0.05") == ScenePosition.reference("random") == scene
    assert ScenePosition.reference("random@0.05") == EditLevel("scene-size", "0.05")
    assert SceneDirection.reference("-45..45@0.05") == EditLevel("scene-size", "0.05")
    assert [own_ground_of("scene-size", "0.05"), own_ground_of("scene-direction", "-45..45@0.05")] == [
        EditLevel("size", "0.05"), EditLevel("direction", "-45..45@0.05"),
    ]  # fmt: skip
    assert own_ground_of("scene-swap", "random") is own_ground_of("size", "0.05") is None


@pytest.fixture
def renderer(tmp_path: Path) -> Renderer:
    """Seven photos: of three the object is everywhere, of the others it is in a corner."""
    for number in range(7):
        alpha = ellipse(SHAPE, (90, 100), (70, 90)) if number < 3 else ellipse(SHAPE, (30, 30), (16, 12 + number))
        picture = draw(alpha, (40 * number, 40, 90))
        for kind, pixels in (("images", picture.image), ("masks", picture.alpha)):
            folder = tmp_path / kind / f"class-{number}"
            folder.mkdir(parents=True)
            Image.fromarray(pixels).save(folder / "0.png")
    source = open_source(str(tmp_path / "images"), str(tmp_path / "masks"))
    samples = {sample.id: sample for sample in source.samples()[0]}
    return Renderer(source=source, samples=samples, working_size=None, segmenter=make_segmenter(list(samples.values())))


def plan(renderer: Renderer, name: str, run_seed: int = 0, ground: str = PHOTO) -> list[Variant]:
    steps = [PlannedEdit(replace(edit, ground=ground), 1, None, run_seed) for edit in EDITS]  # type: ignore[type-var]
    return plan_variants(renderer.samples[name], steps, renderer.donors).variants[1:]


def test_called_without_a_run_an_edit_chooses_a_ground_by_itself() -> None:
    photo = subject()
    alone = SceneSwap().apply(photo, np.random.default_rng(0), Supplied())
    chosen = SceneSwap().choose(Supplied().seed)
    np.testing.assert_array_equal(alone.image, chosen.apply(photo, np.random.default_rng(0), Supplied()).image)


def test_all_edits_of_a_photo_have_one_scene_and_other_photos_may_have_others(renderer: Renderer) -> None:
    scenes = {}
    for name in renderer.samples:
        chosen = [renderer.resolve(variant) for variant in plan(renderer, name)]
        used = {(own.donor_id, json.dumps(json.loads(own.settings)["window"])) for own in chosen}
        assert len(used) == 1
        scenes[name] = used.pop()
        assert scenes[name][0] != name
        assert int(str(scenes[name][0])[len("class-")]) >= 3  # the others show their object everywhere
        assert len({own.id for own in chosen}) == len(EDITS)
    assert len(set(scenes.values())) > 1


def test_a_scene_is_found_in_a_set_of_one_class(renderer: Renderer) -> None:
    samples = {name: replace(sample, label="one") for name, sample in renderer.samples.items()}
    alone = replace(renderer, samples=samples)
    (first, *_) = plan(alone, next(iter(samples)))
    assert alone.resolve(first).donor_id is not None


def test_a_scene_is_open_ground_whatever_other_photos_there_are(renderer: Renderer) -> None:
    name, *others = renderer.samples
    fewer = replace(renderer, samples={each: renderer.samples[each] for each in (name, others[0])})
    for some in (renderer, fewer):
        variants = plan(some, name, ground="")
        assert {variant.donor_id for variant in variants} == {None}
        assert len({(json.loads(each.settings)["ground"], json.loads(each.settings)["view"]) for each in variants}) == 1
    assert [each.id for each in plan(fewer, name, ground="")] == [each.id for each in plan(renderer, name, ground="")]
    assert plan(renderer, name, 1, "")[0].settings != plan(renderer, name, 0, "")[0].settings


def test_old_settings_and_those_that_name_a_photo_take_its_scene() -> None:
    photo, donor = subject(), lender()
    left, top, width, height = find_open_scene(photo, donor)
    window = (left, top, width, height)
    old, named = SceneSwap(window), SceneSwap(window, ground=PHOTO)
    assert old.choose(7) == old
    np.testing.assert_array_equal(make(old, photo, donor).image, make(named, photo, donor).image)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: type(edit).__name__)
def test_on_open_ground_an_edit_differs_from_its_reference_only_at_the_object(edit: InScene) -> None:
    photo = subject()
    settings = {"ground": "gravel", "view": 3}
    chosen, swap = replace(edit, **settings), SceneSwap(**settings)  # type: ignore[type-var, arg-type]
    first, there = (each.apply(photo, np.random.default_rng(0), Supplied()) for each in (chosen, swap))
    scene = draw_ground("gravel", 3, SHAPE)
    away = cv2.dilate(((first.alpha > 0) | (there.alpha > 0)).astype(np.uint8), np.ones((61, 61))) == 0
    assert away.any()
    np.testing.assert_array_equal(first.image[away], there.image[away])
    np.testing.assert_array_equal(first.image[away], scene[away])


def test_what_is_in_the_air_or_in_water_has_no_place_on_open_ground() -> None:
    alpha = ellipse(SHAPE, (60, 100), (20, 26))
    sky = np.full((*SHAPE, 3), (176, 196, 205), np.uint8)
    for image, reason in ((sky, "in the air"), (_blue(texture("grass", 200)[: SHAPE[0]]), "in water")):
        photo = Subject(Picture(np.where(alpha[..., None] > 0, 90, image).astype(np.uint8), alpha))
        with pytest.raises(Unusable, match=reason):
            SceneSize(0.05, ground="sand").check_subject(photo)
        SceneSize(0.05, ground=PHOTO).check_subject(photo)


def _blue(image: Bytes) -> Bytes:
    tinted = image.mean(axis=2, keepdims=True) * (0.5, 0.9, 1.6)
    return np.asarray(np.clip(tinted, 0, 255), np.uint8)


def test_an_object_that_two_borders_cut_keeps_its_size_and_place_on_open_ground() -> None:
    corner = Subject(draw(ellipse(SHAPE, (150, 190), (40, 40))))
    SceneSwap(ground="sand").check_subject(corner)
    with pytest.raises(Unusable, match="cuts the object"):
        SceneSize(0.05, ground="sand").check_subject(corner)


def test_a_ground_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(UserError, match="expected grass, gravel, sand, earth, asphalt or photo, got 'moss'"):
        SceneSwap(ground="moss")


def test_what_stood_before_a_coloured_cloth_is_not_tinted_on_open_ground() -> None:
    alpha = ellipse(SHAPE, (90, 100), (30, 26))
    cloth = np.where(alpha[..., None] > 0, 150, (200, 40, 80)) + np.random.default_rng(0).integers(-20, 21, (*SHAPE, 1))
    made = SceneSwap(ground="gravel").apply(
        Subject(Picture(cloth.astype(np.uint8), alpha)), np.random.default_rng(0), Supplied()
    )
    red, green, blue = made.image[90, 90:110].mean(axis=0)
    assert max(red, green, blue) - min(red, green, blue) < 2
