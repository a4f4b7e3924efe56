"""Shadows on the ground: cast where there is none, lightened where there is one."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from counterfoil.edits.registry import edit_named
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, edited, ellipse


def made(settings: dict[str, object], picture: Picture, seed: int = 0) -> Picture:
    return edited(edit_named("shadow", settings), picture, seed)


def on_sand(shadow: float) -> tuple[Picture, np.typing.NDArray[np.float64]]:
    """A red ball on a plain ground whose shadow is known: (picture, light on the ground)."""
    alpha = ellipse((200, 260), (100, 120), (50, 40))
    where = cv2.GaussianBlur(ellipse((200, 260), (150, 140), (12, 45)), (0, 0), 4) / 255.0
    light = np.asarray(1 - shadow * where, np.float64)
    rng = np.random.default_rng(0)
    ground = np.full((200, 260, 3), (190.0, 170.0, 130.0)) + rng.normal(0, 6, (200, 260, 1))
    image = np.where(alpha[..., None] > 0, (200.0, 40.0, 40.0), ground * light[..., None])
    return Picture(np.clip(np.rint(image), 0, 255).astype(np.uint8), alpha), light


def test_a_cast_shadow_darkens_the_ground_near_the_object_and_lightens_nothing() -> None:
    picture, _ = on_sand(0)
    edited = made({}, picture)
    change = edited.image.astype(int) - picture.image
    assert (change <= 0).all()
    darkened = np.abs(change).max(axis=2) > 20
    assert 0.01 < darkened.mean() < 0.2
    assert darkened[100:].sum() > 10 * darkened[:60].sum()  # on the ground, not about the head


def test_twice_the_strength_takes_twice_the_light() -> None:
    picture, _ = on_sand(0)
    weak, strong = (picture.image.astype(float) - made({"strength": value}, picture).image for value in (0.3, 0.6))
    clear = strong.max(axis=2) > 20
    assert np.abs(strong[clear] / weak[clear] - 2).mean() < 0.1


def test_the_light_may_come_from_either_side() -> None:
    picture, _ = on_sand(0)
    middles = []
    for seed in range(8):
        dark = (picture.image.astype(int) - made({}, picture, seed).image).sum(axis=2)
        middles.append(float((dark.sum(axis=0) * np.arange(260)).sum() / dark.sum()))
    assert min(middles) < 115
    assert max(middles) > 125


def test_taking_a_shadow_away_brings_the_ground_nearer_to_its_own_light() -> None:
    picture, light = on_sand(0.45)
    bright, _ = on_sand(0)
    edited = made({"shadow": "off"}, picture)
    shadow = (light < 0.8) & (cv2.dilate(picture.alpha, np.ones((9, 9), np.uint8)) == 0)
    before, after = (
        np.abs(image[shadow].mean(axis=0) - bright.image[shadow].mean(axis=0)).mean()
        for image in (picture.image, edited.image)
    )
    assert shadow.sum() > 300
    assert after < 0.4 * before


def test_where_no_shadow_lies_none_is_taken_away() -> None:
    picture, _ = on_sand(0)
    edited = made({"shadow": "off"}, picture)
    assert np.abs(edited.image.astype(int) - picture.image).mean() < 0.5


def test_a_shadow_that_nobody_would_see_is_refused() -> None:
    picture = blob_on_grass()
    alpha = ellipse(picture.alpha.shape, (5, 5), (5, 5))
    with pytest.raises(Unusable, match="the shadow of the object would darken"):
        made({}, Picture(picture.image, alpha))


def test_a_strength_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="expected more than 0"):
        edit_named("shadow", {"strength": 0})


def test_no_shadow_is_cast_in_the_air_or_mostly_on_something_else() -> None:
    picture, _ = on_sand(0)
    flying = np.where(picture.alpha[..., None] > 0, picture.image, (150, 180, 220)).astype(np.uint8)
    with pytest.raises(Unusable, match="in the air"):
        made({}, Picture(flying, picture.alpha))
    behind = picture.image.copy()
    behind[:148][picture.alpha[:148] == 0] = (60, 90, 140)  # a wall that begins just above the foot
    with pytest.raises(Unusable, match="something else than the object's ground"):
        made({}, Picture(behind, picture.alpha))
