"""The window of a donor's photo: ground under the object's foot, the donor's own object hidden or outside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.edits.background import BackgroundSwap
from counterfoil.edits.combine import CombineDonor, Part
from counterfoil.edits.donor_scene import (
    OtherGround,
    SceneFit,
    SceneWindow,
    check_dry,
    check_scene,
    check_whole,
    classify_support,
    find_ground,
    fit_scene,
    show_scene,
)
from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.fill_choice import Fills
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import Bytes, ellipse, texture

SHAPE = (160, 200)
SWAP = BackgroundSwap(grounded=True)


def draw(background: Bytes, centre: tuple[int, int], axes: tuple[int, int] = (24, 20)) -> Picture:
    """A red ellipse before a background."""
    alpha = ellipse(SHAPE, centre, axes)
    return Picture(np.where(alpha[..., None] > 0, (200, 40, 40), background).astype(np.uint8), alpha)


def grass() -> Bytes:
    return texture("grass", 200)[: SHAPE[0], : SHAPE[1]]


def sky() -> Bytes:
    return np.full((*SHAPE, 3), (150, 180, 220), np.uint8)


def swap(subject: Subject, donor: Subject, edit: BackgroundSwap = SWAP) -> Picture:
    return edit.apply(subject, np.random.default_rng(0), Supplied(donors=[donor]))


def test_objects_stand_on_ground_below_the_picture_or_are_in_the_air() -> None:
    assert classify_support(Subject(draw(grass(), (80, 100)))) == "ground"
    assert classify_support(Subject(draw(sky(), (80, 100)))) == "air"
    assert classify_support(Subject(draw(sky(), (150, 100)))) == "below"


def test_a_photo_has_ground_where_its_object_stands_on_something_rough_that_is_no_water() -> None:
    ground = find_ground(Subject(draw(grass(), (80, 100))))
    assert ground is not None
    assert 0.5 < ground < 0.66  # the object's foot is at 0.65
    assert find_ground(Subject(draw(sky(), (80, 100)))) is None
    sea = grass()[..., ::-1] // 2 + np.array((0, 20, 100), np.uint8)
    assert find_ground(Subject(draw(sea, (80, 100)))) is None


def test_an_object_hides_the_hole_of_the_donor_and_stands_no_higher_than_its_object_did() -> None:
    subject = Subject(draw(grass(), (100, 70), (34, 30)))
    donor = Subject(draw(grass(), (80, 100), (16, 12)))
    fit = fit_scene(subject, donor)
    assert fit.visible == 0
    assert SceneFit.of(subject, donor, fit.window) == fit
    foot = fit.window.top + fit.window.height * 134 / 160
    assert foot >= float(find_ground(donor) or 1)


def test_the_foot_stays_below_the_horizon_of_the_donor() -> None:
    image = sky()
    image[90:] = grass()[90:] // 2
    donor = Subject(draw(image, (100, 150), (20, 20)))
    ground = find_ground(donor)
    assert ground == pytest.approx(90 / 160, abs=0.04)
    fit = fit_scene(Subject(draw(grass(), (80, 60))), donor)
    assert fit.window.top + fit.window.height * 104 / 160 >= float(ground or 1)
    high = Subject(draw(grass(), (22, 60), (16, 14)))
    with pytest.raises(Unusable, match="foot would not come to the donor's ground"):
        fit_scene(high, donor)


def test_standing_objects_refuse_donors_without_ground_and_flying_ones_those_with_ground() -> None:
    standing, flying = Subject(draw(grass(), (80, 100))), Subject(draw(sky(), (80, 100)))
    with pytest.raises(Unusable, match="no ground"):
        SWAP.check_fit(standing, flying)
    with pytest.raises(Unusable, match="in the air"):
        SWAP.check_fit(flying, standing)
    SWAP.check_fit(flying, Subject(draw(sky(), (50, 60))))
    with pytest.raises(Unusable, match="in the air"):
        SWAP.check_fit(flying, Subject(draw(sky() // 10, (50, 60))))  # a black studio
    BackgroundSwap().check_fit(standing, flying)  # as papers have it: any donor


def test_an_object_in_the_air_beside_a_wire_may_hang_on_it() -> None:
    judged = Tools(fills=Fills(find_salience=lambda image: np.zeros(image.shape[:2], np.float32), judged=True))
    wire = sky()
    wire[58:61] = 60
    check_whole(Subject(draw(sky(), (80, 100)), tools=judged))
    hanging = Subject(draw(wire, (86, 100)), tools=judged)
    with pytest.raises(Unusable, match="may hang or stand on"):
        check_whole(hanging)
    check_whole(Subject(draw(wire, (86, 100))))  # the papers' recipes ask nothing


def test_a_window_shows_one_kind_of_ground() -> None:
    ground = grass()
    ground[:, 110:] = np.clip(ground[:, 110:] * (2.0, 0.5, 0.5), 0, 255).astype(np.uint8)
    donor = Subject(draw(ground, (60, 60), (16, 12)))
    subject = Subject(draw(grass(), (90, 100)))
    others = OtherGround.of(donor, "ground")
    assert others.measure(SceneWindow(0.0, 0.0, 0.5, 1.0)) == 0
    assert others.measure(SceneWindow(0.6, 0.0, 0.4, 1.0)) == 1
    with pytest.raises(Unusable, match="other things are seen there"):
        fit_scene(subject, donor)


def test_a_frame_around_the_donor_is_not_shown() -> None:
    framed = grass()
    framed[:14], framed[-10:] = 255, 255
    donor = Subject(draw(framed, (80, 100)))
    subject = Subject(draw(grass(), (80, 100)))
    window = fit_scene(subject, donor).window
    assert window.top > 14 / 160
    assert window.top + window.height < 150 / 160
    assert not (show_scene(subject, donor, fit_scene(subject, donor)) == 255).all(axis=(1, 2)).any()


def test_the_chosen_window_is_a_setting_and_gives_the_same_picture() -> None:
    subject, donor = Subject(draw(grass(), (100, 70), (34, 34))), Subject(draw(grass()[::-1], (80, 100), (12, 10)))
    chosen = SWAP.resolve(subject, Supplied(donors=[donor])).edit
    assert isinstance(chosen, BackgroundSwap)
    assert chosen.window is not None
    assert chosen.level == SWAP.level
    assert chosen.resolve(subject, Supplied(donors=[donor])).edit == chosen
    first, second = swap(subject, donor), swap(subject, donor, chosen)
    np.testing.assert_array_equal(first.image, second.image)
    shown = chosen.find_shown_fill(subject, np.random.default_rng(0), Supplied(donors=[donor]))
    assert shown is None  # the object hides the hole
    other = replace(chosen, window=(0.0, 0.0, 1.0, 1.0))
    seen = other.find_shown_fill(subject, np.random.default_rng(0), Supplied(donors=[donor]))
    assert seen is not None
    assert 0 < seen.hole_share < 0.1


def test_a_window_without_the_hole_shows_the_photo_as_it_is() -> None:
    donor = Subject(draw(grass(), (80, 150)))
    subject = Subject(draw(grass(), (80, 100)))
    shown = show_scene(subject, donor, SceneFit(SceneWindow(0.0, 0.0, 0.5, 0.5), 0.0))
    assert shown.shape == (*SHAPE, 3)
    assert "_choose_fill" not in {work.__name__ for work in donor._results if hasattr(work, "__name__")}


def test_a_standing_object_casts_a_contact_shadow_on_the_new_ground() -> None:
    subject, donor = Subject(draw(grass(), (80, 100))), Subject(draw(grass()[:, ::-1], (80, 100)))
    picture, behind = swap(subject, donor), SWAP.behind(subject, Supplied(donors=[donor]))
    under = (slice(104, 110), slice(92, 108))
    assert picture.image[under].mean() < 0.97 * behind[under].mean()
    np.testing.assert_array_equal(picture.alpha, subject.cutout.alpha)


class Judge:
    """Finds a salient thing where the picture is red, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, image: Bytes) -> np.ndarray:
        self.asked += 1
        return ((image[..., 0] > 150) & (image[..., 1] < 80)).astype(np.float32)


def test_other_objects_of_the_donor_are_refused_where_they_are_seen_and_not_where_the_object_hides_them() -> None:
    cluttered = grass()
    cluttered[20:50, 20:60] = (220, 30, 30)
    judge = Judge()
    tools = Tools(fills=Fills(find_salience=judge))
    donor = Subject(draw(cluttered, (90, 150), (20, 12)), tools=tools)
    small, large = Subject(draw(grass(), (110, 100), (20, 20))), Subject(draw(grass(), (70, 95), (66, 92)))
    with pytest.raises(Unusable, match="another object"):
        check_scene(small, donor)
    check_scene(large, donor)
    assert judge.asked == 3  # two scenes, and the photo of the donor for what is attached to its object


def test_a_combination_that_shrinks_the_object_judges_all_of_the_window() -> None:
    flat = sky()
    flat[:80] = (20, 20, 20)
    flat[40:] = grass()[40:]
    judged = Tools(fills=Fills(judged=True))
    large = Subject(draw(grass(), (80, 100), (60, 70)))
    donor = Subject(draw(flat, (80, 100), (40, 50)), tools=judged)
    shrunk = CombineDonor((Part("background-swap", {"grounded": True}), Part("size", {"rate": 0.05})))
    SWAP.check_fit(large, donor)
    with pytest.raises(Unusable, match="fill"):
        shrunk.check_fit(large, donor)


def judged(picture: Picture) -> Subject:
    return Subject(picture, tools=Tools(fills=Fills(judged=True)))


def test_a_scene_of_another_scale_is_refused_where_fills_are_judged() -> None:
    large, small = draw(grass(), (100, 70), (40, 36)), draw(grass(), (80, 100), (14, 12))
    with pytest.raises(Unusable, match="the scales differ"):
        check_scene(judged(large), judged(small))
    check_scene(Subject(large), Subject(small))
    check_scene(judged(large), judged(draw(grass(), (80, 100), (20, 16))))


def test_what_is_in_water_is_not_put_on_land_and_what_the_border_cuts_not_before_water() -> None:
    sea = grass()[..., ::-1] // 2 + np.array((0, 20, 100), np.uint8)
    swimming = judged(draw(sea, (80, 100)))
    with pytest.raises(Unusable, match="may be in water"):
        check_dry(swimming)
    check_dry(judged(draw(grass(), (80, 100))))
    check_dry(judged(draw(sky(), (80, 100))))  # in the air
    with pytest.raises(Unusable, match="shows water"):
        check_scene(judged(draw(grass(), (150, 100))), swimming)
