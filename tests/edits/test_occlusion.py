"""Hidden and cropped shares of the object against sums over its pixels."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from counterfoil.edits.geometry import Frame, frame_holding
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import PICTURES, blob_on_grass, edited, ellipse


def made(name: str, settings: dict[str, object], picture: Picture, seed: int = 0) -> Picture:
    return edited(edit_named(name, settings), picture, seed)


def area(alpha: np.typing.NDArray[np.uint8]) -> float:
    return float(alpha.astype(np.float64).sum())


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("picture", PICTURES)
def test_the_box_hides_the_share_of_the_object_within_half_a_percent(picture: str, share: float) -> None:
    given = PICTURES[picture]()
    for seed in range(4):
        visible = made("occlusion", {"share": share}, given, seed).alpha
        assert abs(1 - area(visible) / area(Subject(given).alpha) - share) < 0.005


def test_what_is_hidden_has_the_occluders_colour_and_what_is_not_is_as_photographed() -> None:
    given = blob_on_grass()
    edited = made("occlusion", {"share": 0.4, "colour": [10, 20, 30]}, given, 1)
    changed = (edited.image != given.image).any(axis=2)
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    box = edited.image[rows[1] : rows[-1], columns[1] : columns[-1]]
    assert (box == (10, 20, 30)).all()
    assert (edited.alpha[rows[1] : rows[-1], columns[1] : columns[-1]] == 0).all()


def test_a_textured_occluder_has_two_colours_and_a_random_one_follows_the_seed() -> None:
    given = blob_on_grass()
    woven = made("occlusion", {"share": 0.6, "texture": "chequered"}, given)
    hidden = (Subject(given).alpha == 255) & (woven.alpha == 0)
    assert woven.image[hidden].std(axis=0).max() > 20
    drawn = {tuple(_hidden_colour(given, seed)) for seed in range(3)}
    assert len(drawn) == 3


def _hidden_colour(given: Picture, seed: int) -> list[int]:
    edited = made("occlusion", {"share": 0.6, "colour": None}, given, seed)
    hidden = (Subject(given).alpha == 255) & (edited.alpha == 0)
    return [int(value) for value in np.median(edited.image[hidden], axis=0)]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_another_object_hides_the_share_and_what_it_does_not_hide_is_as_photographed(share: float) -> None:
    given, donor = blob_on_grass(), PICTURES["cup"]()
    for seed in range(2):
        made = edit_named("occlusion-object", {"share": share})(given, np.random.default_rng(seed), donor)
        assert abs(1 - area(made.alpha) / area(Subject(given).alpha) - share) < 0.03
        visible = made.alpha == 255
        np.testing.assert_array_equal(made.image[visible], given.image[visible])


def test_an_object_that_is_cut_by_its_photo_cannot_hide_another() -> None:
    image = blob_on_grass().image
    donor = Picture(image, ellipse(image.shape[:2], (80, 0), (40, 40)))
    with pytest.raises(Unusable, match="cut by the left of its photo"):
        edit_named("occlusion-object", {})(blob_on_grass(), np.random.default_rng(0), donor)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_crop_shows_the_share_of_the_object_that_was_asked_for(share: float) -> None:
    for picture in (PICTURES["cup"](), blob_on_grass()):
        alpha = Subject(picture).alpha
        height, width = alpha.shape
        frame = frame_holding(alpha, share, (width * 0.45, height * 0.5), Frame(0, 0, width, height))
        # Twenty parts to a pixel make an independent sum.
        fine = np.asarray(Image.fromarray(alpha).resize((width * 20, height * 20), Image.Resampling.NEAREST))
        left, top = round(frame.left * 20), round(frame.top * 20)
        part = fine[top : top + round(frame.height * 20), left : left + round(frame.width * 20)]
        assert abs(area(part) / area(fine) - share) < 0.005
        assert abs(frame.width / frame.height - width / height) < 1e-6


def test_the_crop_agrees_with_pillow() -> None:
    picture = blob_on_grass()
    alpha = Subject(picture).alpha
    rng = np.random.default_rng(0)
    place = np.flatnonzero(alpha > 127)[rng.integers((alpha > 127).sum())]
    around = (place % 200 + 0.5, place // 200 + 0.5)
    frame = frame_holding(alpha, 0.5, (float(around[0]), float(around[1])), Frame(0, 0, 200, 160))
    box = (frame.left, frame.top, frame.left + frame.width, frame.top + frame.height)
    expected = Image.fromarray(picture.image).resize((200, 160), Image.Resampling.BICUBIC, box=box)
    edited = made("crop", {"share": 0.5}, picture)
    assert np.abs(edited.image.astype(float) - np.asarray(expected)).mean() < 3
    visible = area(edited.alpha) * frame.width * frame.height / (200 * 160) / area(alpha)
    assert abs(visible - 0.5) < 0.01


def test_a_crop_that_would_show_a_few_pixels_is_refused() -> None:
    image = blob_on_grass().image
    with pytest.raises(Unusable, match="pixels of the photo, 16 are needed"):
        made("crop", {"share": 0.1}, Picture(image, ellipse(image.shape[:2], (80, 100), (9, 9))))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("occlusion", {"share": 0.0}),
        ("occlusion", {"share": 1.0}),
        ("occlusion", {"colour": [0, 0, 300]}),
        ("occlusion", {"texture": "brick-like"}),
        ("occlusion-object", {"share": 1.0}),
        ("crop", {"share": 1.2}),
    ],
)
def test_shares_and_colours_that_cannot_be_are_refused(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="expected"):
        edit_named(name, settings)
