"""Lines that end at the rim of a filled hole."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.line_ends import measure_line_ends


def beams(broken: bool) -> tuple[np.ndarray, np.ndarray]:
    """A wall with three dark beams across it; behind a hole they go on or are gone."""
    image = np.full((256, 320, 3), 190, np.uint8)
    for row in (80, 120, 160):
        image[row : row + 10] = 60
    hole = np.zeros((256, 320), bool)
    hole[60:200, 110:210] = True
    if broken:
        image[hole] = 190
    return image, hole


def test_beams_that_go_on_do_not_end() -> None:
    assert measure_line_ends(*beams(broken=False)) == 0.0


def test_beams_that_are_gone_end_at_the_rim() -> None:
    assert measure_line_ends(*beams(broken=True)) > 0.1


def test_a_thin_leash_that_ends_is_found() -> None:
    image, hole = beams(broken=True)
    image[:] = 190
    image[128:132, 210:] = (200, 20, 20)
    assert measure_line_ends(image, hole) > 0.02


def test_lines_of_an_object_to_be_ignored_do_not_count() -> None:
    image, hole = beams(broken=True)
    ignore = np.zeros_like(hole)
    ignore[40:220, :108] = ignore[40:220, 212:] = True
    assert measure_line_ends(image, hole, ignore) == 0.0


def test_texture_that_ends_everywhere_is_no_fault_of_the_fill() -> None:
    noise = np.random.default_rng(3).integers(0, 256, (32, 40, 3)).astype(np.uint8)
    image = noise.repeat(8, axis=0).repeat(8, axis=1)  # short lines that end in the photo too
    hole = beams(broken=False)[1]
    assert measure_line_ends(image, hole) == pytest.approx(0, abs=0.1)
    assert measure_line_ends(image, hole) < measure_line_ends(*beams(broken=True))
