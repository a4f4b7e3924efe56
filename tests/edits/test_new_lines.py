"""Lines that a fill invents, told from lines that the photo has everywhere."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.fill_quality import MOST, FilledHole, measure_fill
from counterfoil.edits.new_lines import measure_new_lines

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


def wall() -> Bytes:
    """An even wall with a little grain."""
    grain = np.random.default_rng(0).normal(0, 4, (200, 240, 1))
    return np.asarray(np.clip(np.array([180, 175, 160]) + grain, 0, 255), np.uint8)


def hole() -> Flags:
    plane = np.zeros((200, 240), bool)
    plane[50:150, 70:170] = True
    return plane


def with_rod(image: Bytes, column: int = 120) -> Bytes:
    drawn = np.ascontiguousarray(image)
    cv2.line(drawn, (column, 70), (column + 3, 130), (70, 70, 75), 2)
    return drawn


def test_a_rod_in_the_hole_is_a_new_line_and_an_even_fill_has_none() -> None:
    assert measure_new_lines(wall(), hole()) < 1.5
    assert measure_new_lines(with_rod(wall()), hole()) > MOST.new_lines


def test_a_rod_is_no_news_where_the_photo_is_full_of_them() -> None:
    fence = wall()
    for column in range(8, 240, 16):
        cv2.line(fence, (column, 0), (column, 199), (70, 70, 75), 2)
    assert measure_new_lines(fence, hole()) < 1.5


def test_lines_of_what_is_ignored_are_not_the_photos_own() -> None:
    beside = np.zeros((200, 240), bool)
    beside[:, 190:] = True
    striped = with_rod(wall())
    for column in range(194, 238, 8):
        cv2.line(striped, (column, 0), (column, 199), (70, 70, 75), 2)
    assert measure_new_lines(striped, hole(), beside) > MOST.new_lines > measure_new_lines(striped, hole())


def test_nothing_is_said_of_a_hole_that_is_too_small() -> None:
    small = np.zeros((200, 240), bool)
    small[90:100, 115:125] = True
    assert measure_new_lines(with_rod(wall()), small) == 0


def test_a_fill_with_an_invented_line_is_refused_with_the_reason() -> None:
    assert "shows a line" in measure_fill(FilledHole(with_rod(wall()), hole())).reason
    assert measure_fill(FilledHole(wall(), hole())).reason == ""
