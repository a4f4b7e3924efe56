"""Ground seen at a slant: laid without a seam, finer where it is further away, another view for another number."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from counterfoil.assets.cache import fetch_asset
from counterfoil.edits.ground_view import MATERIALS, SHIPPED, draw_ground, lay_plane
from edit_pictures import Bytes

SHAPE = (192, 256)


def roughness(part: Bytes) -> float:
    gray = cv2.cvtColor(part, cv2.COLOR_RGB2GRAY).astype(np.float32)
    return float(np.abs(gray - cv2.GaussianBlur(gray, (0, 0), 3)).mean())


@pytest.mark.parametrize("material", MATERIALS)
def test_a_number_is_a_view_and_another_number_another_one(material: str) -> None:
    first = draw_ground(material, 1, SHAPE)
    assert first.shape == (*SHAPE, 3)
    np.testing.assert_array_equal(first, draw_ground(material, 1, SHAPE))
    assert float(np.abs(first.astype(int) - draw_ground(material, 2, SHAPE)).mean()) > 4


@pytest.mark.parametrize("material", MATERIALS)
def test_a_plane_repeats_without_a_seam(material: str) -> None:
    plane = lay_plane(material).astype(np.int32)
    for axis in (0, 1):
        steps = np.abs(plane - np.roll(plane, 1, axis)).mean(axis=1 - axis)
        assert steps[0] < 1.5 * np.median(steps)  # from the last line to the first


def test_a_plane_is_laid_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, shipped = lay_plane("asphalt"), fetch_asset(SHIPPED)
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path))
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / shipped.name).symlink_to(shipped)
    times = []
    for _ in range(3):  # laid and kept; read; damaged and laid again
        lay_plane.cache_clear()
        np.testing.assert_array_equal(lay_plane("asphalt"), expected)
        (kept,) = (tmp_path / "grounds").glob("*.levels")
        times.append(kept.stat().st_mtime_ns)
        if len(times) == 2:
            kept.write_bytes(kept.read_bytes()[:1000])
    lay_plane.cache_clear()
    assert times[0] == times[1] < times[2]
    assert kept.stat().st_size == expected.size


def test_stones_are_smaller_where_the_ground_is_further_away() -> None:
    ground = draw_ground("gravel", 5, (384, 384))
    lengths = []
    for part in (ground[:96], ground[-96:]):
        gray = cv2.cvtColor(part, cv2.COLOR_RGB2GRAY).astype(np.float32)
        gray -= gray.mean()
        lengths.append(float((gray[:, 4:] * gray[:, :-4]).mean() / (gray**2).mean()))  # alike four pixels further
    assert lengths[0] < lengths[1]


def test_grounds_differ_in_colour_and_none_is_flat() -> None:
    means = {name: draw_ground(name, 0, SHAPE).reshape(-1, 3).mean(axis=0) for name in MATERIALS}
    red, green, blue = means["grass"]
    assert green > red > blue
    assert np.ptp(means["asphalt"]) < 12 < np.ptp(means["sand"])
    assert all(roughness(draw_ground(name, 0, SHAPE)) > 2 for name in MATERIALS)
