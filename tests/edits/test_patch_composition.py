"""Copied pixels joined along seams: the solver against a direct solution, and what a fill keeps of its sources."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.fill import close_islands, fill_hole, fill_visible_hole
from counterfoil.edits.patch_composition import solve_poisson
from counterfoil.edits.patch_match import OpenPicture
from edit_pictures import texture

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


def disc(side: int = 160, radius: int = 40) -> Flags:
    rows, columns = np.mgrid[:side, :side]
    return np.asarray(np.hypot(rows - side / 2, columns - side / 2) < radius)


def test_the_solver_finds_the_field_of_a_direct_solution() -> None:
    hole = disc(40, 14)
    hole[18:22, 18:22] = False  # an island, at which the field is 0 too
    sums = np.zeros((40, 40, 3), np.float32)
    sums[hole] = np.random.default_rng(0).normal(0, 10, (np.count_nonzero(hole), 3))
    places = np.flatnonzero(hole)
    matrix = np.zeros((1600, 1600))
    matrix[places, places] = 4
    for step in (1, -1, 40, -40):
        matrix[places, places + step] = -1
    direct = np.linalg.solve(matrix[np.ix_(places, places)], sums.reshape(-1, 3)[places])
    error = np.abs(solve_poisson(sums, hole)[hole] - direct).max()
    assert error < 0.1 * np.abs(direct).max()


def test_a_visible_fill_is_as_sharp_as_its_surroundings_and_leaves_them() -> None:
    real, hole = texture("grass", 160), disc()
    quick, sharp = fill_hole(real, hole), fill_visible_hole(OpenPicture(real, hole))
    np.testing.assert_array_equal(sharp[~hole], real[~hole])
    truth, blurred, kept = (
        np.abs(np.diff(image.astype(float), axis=0))[hole[1:]].mean() for image in (real, quick, sharp)
    )
    assert kept > blurred
    assert 0.8 * truth < kept < 1.2 * truth
    np.testing.assert_array_equal(sharp, fill_visible_hole(OpenPicture(real, hole)))


def test_a_difference_of_light_is_spread_and_shows_no_edge() -> None:
    ramp = np.linspace(60, 190, 160).astype(np.uint8)[None, :, None].repeat(160, axis=0).repeat(3, axis=2)
    hole = disc()
    filled = fill_visible_hole(OpenPicture(np.where(hole[..., None], np.uint8(0), ramp), hole))
    steps = np.abs(np.diff(filled.astype(int), axis=1)).max(axis=2)
    assert steps.max() <= 6
    assert np.abs(filled.astype(int) - ramp).mean() < 6


def test_the_fill_follows_its_guide() -> None:
    sky, ground = np.full((160, 160, 3), (170, 200, 240), np.uint8), texture("gravel", 160)
    real = np.where(np.arange(160)[:, None, None] < 60, sky, ground // 2).astype(np.uint8)
    guide = np.where(np.arange(160)[:, None, None] < 100, sky, ground // 2).astype(np.uint8)
    hole = disc()
    plain, guided = (fill_visible_hole(OpenPicture(real, hole, each)) for each in (None, guide))
    middle = (slice(70, 90), slice(65, 95))
    assert guided[middle].mean() > plain[middle].mean() + 40


def test_a_narrow_island_in_the_hole_is_filled_and_a_wide_one_or_the_rest_is_not() -> None:
    hole = disc(200, 70)
    hole[90:96, 80:120] = False
    narrow = close_islands(hole)
    assert narrow[92, 100]
    hole[80:120, 80:120] = False
    assert not close_islands(hole)[100, 100]
    assert not narrow[5, 5]
