"""Backgrounds against straightforward implementations."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from skimage.filters import gaussian

from counterfoil.edits.background import BackgroundSwap
from counterfoil.edits.cutout import cover
from counterfoil.edits.fill_choice import Fills
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, cat, ellipse, rocket, texture

RNG = np.random.default_rng


def test_a_plain_background_has_one_colour_outside_the_object() -> None:
    picture = blob_on_grass()
    edited = edit_named("background-plain", {"colour": [10, 200, 30]})(picture, RNG(0))
    np.testing.assert_array_equal(np.unique(edited.image[edited.alpha == 0], axis=0), [[10, 200, 30]])


def test_a_plain_colour_comes_from_the_seed() -> None:
    edit = edit_named("background-plain", {})
    first, again, other = (edit(blob_on_grass(), RNG(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.image, again.image)
    assert (first.image[0, 0] != other.image[0, 0]).any()


def test_a_soft_edge_is_the_mixture_that_alpha_says() -> None:
    picture = cat()
    cut = Subject(picture).cutout
    edited = edit_named("background-plain", {"colour": [255, 0, 0]})(picture, RNG(0))
    share = cut.alpha[..., None] / 255
    expected = cut.image * share + np.array([255, 0, 0]) * (1 - share)
    assert np.abs(edited.image - expected).max() <= 0.51


@pytest.mark.parametrize(("kernel", "sigma"), [(15, 3.0), (31, 6.0), (5, 1.0)])
def test_blur_is_a_gaussian_of_the_background(kernel: int, sigma: float) -> None:
    picture = blob_on_grass()
    edited = edit_named("background-blur", {"kernel": kernel, "sigma": sigma})(picture, RNG(0))
    expected = gaussian(
        picture.image.astype(float), sigma, mode="mirror", truncate=(kernel // 2 + 0.1) / sigma, channel_axis=2
    )
    far = cv2.dilate(picture.alpha, np.ones((kernel + 14, kernel + 14), np.uint8)) == 0
    assert np.abs(edited.image - expected)[far].max() <= 1


def test_blur_spreads_no_colour_of_the_object() -> None:
    alpha = ellipse((120, 120), (60, 60), (30, 30))
    image = np.where(alpha[..., None] > 0, (255, 0, 0), (20, 40, 200)).astype(np.uint8)
    edited = edit_named("background-blur", {})(Picture(image, alpha), RNG(0))
    np.testing.assert_array_equal(np.unique(edited.image[edited.alpha == 0], axis=0), [[20, 40, 200]])


def test_the_faithful_blur_is_the_released_one() -> None:
    picture = blob_on_grass()
    edited = edit_named("background-blur", {"faithful": True})(picture, RNG(0))
    expected = cv2.GaussianBlur(picture.image, (15, 15), 3)
    expected[picture.alpha >= 128] = picture.image[picture.alpha >= 128]
    np.testing.assert_array_equal(edited.image, expected)


def test_a_swap_shows_the_donors_background_without_the_donors_object() -> None:
    picture, donor = cat(), blob_on_grass((100, 100))
    edit = BackgroundSwap()
    assert edit.needs.donor == "other"
    edited = edit(picture, RNG(0), donor)
    lent = cover(Subject(donor).visible_background, (150, 225))
    outside = edited.alpha == 0
    np.testing.assert_array_equal(edited.image[outside], lent[outside])
    assert edited.image[outside][:, 0].astype(int).mean() < edited.image[outside][:, 1].mean()  # grass, not orange


def test_a_donor_without_any_object_lends_itself_whole() -> None:
    picture, donor = cat(), Picture(texture("gravel", 150)[:, :150], np.zeros((150, 150), np.uint8))
    edited = BackgroundSwap()(picture, RNG(0), donor)
    np.testing.assert_array_equal(edited.image[edited.alpha == 0], cover(donor.image, (150, 225))[edited.alpha == 0])


def test_a_donor_that_is_all_object_is_named_as_the_reason() -> None:
    donor = Picture(texture("grass", 100), np.full((100, 100), 255, np.uint8))
    with pytest.raises(Unusable, match="the donor has no background to lend"):
        BackgroundSwap()(cat(), RNG(0), donor)


def test_a_removed_object_leaves_no_alpha() -> None:
    picture = blob_on_grass()
    edited = edit_named("object-removed", {})(picture, RNG(0))
    assert not edited.alpha.any()
    np.testing.assert_array_equal(edited.image, Subject(picture).visible_background)


@pytest.mark.parametrize(
    ("name", "settings", "level"),
    [
        ("control", {}, "none"),
        ("background-swap", {"donors": "same"}, "same"),
        ("background-plain", {"colour": [255, 0, 16]}, "#ff0010"),
        ("background-plain", {}, "random"),
        ("background-blur", {}, "15/3"),
        ("object-removed", {}, "removed"),
        ("size", {"rate": 0.1}, "0.1"),
        ("size", {}, "full"),
        ("position", {}, "random"),
        ("position", {"rate": 0.05}, "random@0.05"),
        ("direction", {}, "-45..45"),
        ("direction", {"angle": 30, "rate": 0.05}, "30@0.05"),
    ],
)
def test_levels_read_as_they_stand_in_the_tables(name: str, settings: dict[str, object], level: str) -> None:
    assert edit_named(name, settings).level == level


@pytest.mark.parametrize("settings", [{"kernel": 4}, {"kernel": 0}, {"sigma": 0.0}])
def test_a_blur_that_is_none_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="expected"):
        edit_named("background-blur", settings)


def test_a_blended_swap_darkens_the_object_before_a_dark_background_which_gets_its_contact_shadow() -> None:
    picture, donor = cat(), rocket()
    dark = Picture((donor.image // 4).astype(np.uint8), donor.alpha)
    plain, blended = (BackgroundSwap(blend=blend)(picture, RNG(0), dark) for blend in (False, True))
    inside, outside = plain.alpha == 255, plain.alpha == 0
    assert blended.image[inside].mean() < 0.9 * plain.image[inside].mean()
    assert (blended.image[outside] <= plain.image[outside]).all()
    assert (blended.image[outside] != plain.image[outside]).mean() < 0.02
    assert BackgroundSwap(blend=True).level == "other, blended"


def test_a_background_with_another_object_is_not_lent() -> None:
    def find_red(image: np.typing.NDArray[np.uint8]) -> np.typing.NDArray[np.float32]:
        return ((image[..., 0] > 200) & (image[..., 1] < 50)).astype(np.float32)

    photo = blob_on_grass()
    with_ball = Picture(photo.image.copy(), photo.alpha)
    with_ball.image[10:34, 150:180] = (250, 10, 10)
    tools = Tools(fills=Fills(find_salience=find_red))
    BackgroundSwap().check_donor(Subject(photo, tools=tools))
    with pytest.raises(Unusable, match=r"shows another object, on 2\.\d% of the picture"):
        BackgroundSwap().check_donor(Subject(with_ball, tools=tools))
    BackgroundSwap().check_donor(Subject(with_ball))  # where fills are not judged, as in the papers' recipes
