"""Texture and material: the shape and the shading stay, the surface goes."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.edits.texture import (
    ROUNDNESS,
    TextureImage,
    choose_texture,
    estimate_surface,
    list_textures,
    tile_texture,
)
from counterfoil.edits.texture_patterns import PATTERNS, draw_pattern
from counterfoil.errors import UserError
from counterfoil.types import Picture
from edit_pictures import PICTURES, edited, ellipse, texture


def made(name: str, settings: dict[str, object], picture: Picture, seed: int = 0) -> Picture:
    return edited(edit_named(name, settings), picture, seed)


def ball() -> Picture:
    """A grey ball lit from above left on gravel, with a soft rim: its shading is known."""
    down, across = np.mgrid[:180, :180]
    x, y = (across - 90) / 60, (down - 90) / 60
    z = np.sqrt(np.clip(1 - x**2 - y**2, 0, 1))
    light = 60 + 170 * np.clip(-0.5 * x - 0.6 * y + 0.62 * z, 0, 1)
    alpha = np.asarray(cv2.GaussianBlur(ellipse((180, 180), (90, 90), (60, 60)), (0, 0), 1.5), np.uint8)
    share = alpha[..., None] / 255
    image = share * light[..., None] + (1 - share) * texture("gravel", 180)
    return Picture(np.rint(image).astype(np.uint8), alpha)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_drawn_texture_has_light_and_dark_and_no_seam(name: str) -> None:
    tile = draw_pattern(name)
    assert tile.shape == (512, 512)
    assert tile.min() >= 0
    assert tile.max() <= 1
    assert tile.std() > 0.1
    inner = max(np.abs(np.diff(tile, axis=0)).mean(axis=1).max(), np.abs(np.diff(tile, axis=1)).mean(axis=0).max())
    seams = (np.abs(tile[0] - tile[-1]).mean(), np.abs(tile[:, 0] - tile[:, -1]).mean())
    assert max(seams) <= inner + 0.01


def test_no_two_drawn_textures_are_alike() -> None:
    tiles = np.array([draw_pattern(name)[::4, ::4].ravel() for name in PATTERNS])
    likeness = np.abs(np.corrcoef(tiles))
    np.fill_diagonal(likeness, 0)
    assert likeness.max() < 0.95


def test_a_swatch_lies_flat_where_nothing_bends_it() -> None:
    tile = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    places = np.dstack(np.meshgrid(np.arange(200), np.arange(150))).astype(np.float32)
    np.testing.assert_array_equal(
        tile_texture(TextureImage(tile, True), places, 64), np.tile(tile, (3, 4, 1))[:150, :200]
    )


@pytest.mark.parametrize("name", ["striped", "marbled", "brick", "grass", "gravel"])
def test_a_textured_ball_keeps_its_shading(name: str) -> None:
    picture = ball()
    edited = made("texture", {"texture": name}, picture)
    inside = edited.alpha == 255
    # Over pieces larger than the pattern, light and dark must go together before and after.
    before, after = (
        cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32) * inside, (0, 0), 14)
        / np.maximum(cv2.GaussianBlur(inside.astype(np.float32), (0, 0), 14), 1e-3)
        for image in (picture.image, edited.image)
    )
    assert np.corrcoef(before[inside], after[inside])[0, 1] > 0.75
    assert np.abs(edited.image[inside].astype(int) - picture.image[inside]).mean() > 15


def test_a_flat_disc_is_inflated_to_half_a_ball_with_darker_edges_and_a_narrower_pattern_there() -> None:
    alpha = ellipse((180, 180), (90, 90), (60, 60))
    image = np.where(alpha[..., None] > 0, 150, texture("gravel", 180)).astype(np.uint8)
    surface = estimate_surface(Subject(Picture(image, alpha)))
    middle = surface.facing.shape[0] // 2
    for across in (-40, -20, 0, 20, 40):
        slope = ROUNDNESS * across / (60**2 - across**2) ** 0.5  # of a half ball
        facing = surface.facing[middle, middle + across, 0]
        assert abs(facing - slope / (1 + slope**2) ** 0.5) < 0.08
    assert surface.shading[middle, middle + 55] < 0.8 * surface.shading[middle, middle]
    steps = np.diff(surface.places[middle, :, 0])
    assert steps[middle + 45 : middle + 55].mean() > 1.15 * steps[middle - 5 : middle + 5].mean()


def shading_of(levels: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.float32]:
    alpha = ellipse((160, 160), (80, 80), (60, 60))
    image = np.dstack([levels] * 3)
    surface = estimate_surface(Subject(Picture(np.rint(image).astype(np.uint8), alpha)))
    shading = np.ones((160, 160), np.float32)
    shading[surface.window] = surface.shading
    return shading


def test_markings_are_weakened_and_the_form_of_a_dark_object_is_brought_out() -> None:
    down, across = np.mgrid[:160, :160]
    spots = np.where((down // 20 + across // 20) % 2, 240.0, 30.0)  # paint: eight times as light
    inside = ellipse((160, 160), (80, 80), (40, 40)) > 0
    lit, unlit = (np.median(shading_of(spots)[inside & (spots == level)]) for level in (240, 30))
    assert 1.1 < lit / unlit < 3
    faint = 24 + 8 * np.sin(across / 16)  # a black object: folds of a third of its light
    folds = shading_of(faint)[80, 50:110]
    flat = shading_of(np.full((160, 160), 24.0))[80, 50:110]
    assert np.ptp(folds / flat) > 0.3


def test_a_surface_that_the_photo_cuts_goes_on_beyond_its_border() -> None:
    alpha = np.zeros((120, 120), np.uint8)
    alpha[40:, 30:90] = 255
    image = np.where(alpha[..., None] > 0, 150, texture("gravel", 120)).astype(np.uint8)
    facing = estimate_surface(Subject(Picture(image, alpha))).facing
    middle = facing.shape[1] // 2
    assert facing[3, middle, 1] < -0.4, "the upper edge turns away"
    assert abs(facing[-2, middle, 1]) < 0.1, "the lower one is none"


def test_strength_goes_from_the_old_surface_to_the_new_one() -> None:
    picture = PICTURES["cup"]()
    none, half, full = (
        made("texture", {"texture": "grid", "strength": value}, picture).image.astype(int) for value in (0, 0.5, 1)
    )
    np.testing.assert_array_equal(none, picture.image)
    inside = picture.alpha == 255
    assert np.abs(half - (none + full) / 2)[inside].max() <= 1


def test_a_users_folder_lends_its_textures(tmp_path: Path) -> None:
    Image.new("RGB", (32, 32), (10, 200, 30)).save(tmp_path / "green.png")
    Image.new("RGB", (40, 20), (200, 20, 20)).save(tmp_path / "red.jpg", quality=100)
    (tmp_path / "notes.txt").write_text("no picture")
    assert list_textures(str(tmp_path)) == ("green", "red")
    picture = ball()
    edited = made("texture", {"texture": "green", "folder": str(tmp_path)}, picture)
    inside = edited.image[edited.alpha == 255].astype(int)
    assert (inside[:, 1] > 2 * inside[:, 0]).all()
    drawn = {
        tuple(choose_texture("random", str(tmp_path), np.random.default_rng(seed)).image[0, 0]) for seed in range(20)
    }
    assert len(drawn) == 2


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"texture": "stripped"}, "did you mean striped"),
        ({"folder": "no/such/folder"}, "expected a folder of textures"),
        ({"strength": 2}, "expected 0 to 1"),
    ],
)
def test_textures_that_are_not_there_are_refused_with_what_is(settings: dict[str, object], what: str) -> None:
    with pytest.raises(UserError, match=what):
        edit_named("texture", settings)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found none"):
        edit_named("texture", {"folder": str(tmp_path)})


def test_a_file_that_is_no_picture_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"broken\.png cannot be read"):
        made("texture", {"texture": "broken", "folder": str(tmp_path)}, ball())


@pytest.mark.parametrize("material", ["wood", "stone", "fabric"])
def test_a_matt_material_keeps_the_shading(material: str) -> None:
    picture = ball()
    edited = made("material", {"material": material}, picture)
    lit, shaded = edited.image[60:80, 60:80].mean(), edited.image[110:130, 110:130].mean()
    assert lit > 1.3 * shaded


def test_wood_is_brown_stone_is_grey_and_metal_has_the_widest_range_of_light() -> None:
    picture = ball()
    inside = picture.alpha == 255
    wood, stone, metal = (
        made("material", {"material": name}, picture).image[inside].astype(float) for name in ("wood", "stone", "metal")
    )
    assert (wood[:, 0] > wood[:, 2]).mean() > 0.99
    assert np.ptp(stone, axis=1).mean() < 12
    ranges = [np.subtract(*np.percentile(colours.mean(axis=1), (95, 5))) for colours in (wood, stone, metal)]
    assert ranges[2] == max(ranges)


def test_glass_shows_what_is_behind_it() -> None:
    picture = ball()
    background = np.zeros_like(picture.image)
    background[:, :90], background[:, 90:] = (230, 30, 30), (30, 30, 230)
    share = picture.alpha[..., None] / 255
    before = Picture(np.rint(share * picture.image + (1 - share) * background).astype(np.uint8), picture.alpha)
    edited = made("material", {"material": "glass"}, before)
    assert np.abs(Subject(before).background.astype(int) - background).mean() < 25
    left, right = edited.image[80:100, 45:65].mean(axis=(0, 1)), edited.image[80:100, 115:135].mean(axis=(0, 1))
    assert abs(left[0] - left[2]) > 40
    assert abs(right[0] - right[2]) > 40
