"""Objects that the photo's border cuts: anchored to it, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.photo_border import find_cut_sides
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import ellipse, texture

HEIGHT, WIDTH = 120, 160


def cut_at(*sides: str) -> Subject:
    """A block that these borders cut."""
    alpha = np.zeros((HEIGHT, WIDTH), np.uint8)
    top, bottom = (0 if "top" in sides else 40), (HEIGHT if "bottom" in sides else 80)
    left, right = (0 if "left" in sides else 60), (WIDTH if "right" in sides else 100)
    alpha[top:bottom, left:right] = 255
    return Subject(Picture(texture("grass", 200)[:HEIGHT, :WIDTH], alpha))


def made(subject: Subject, name: str, **settings: object) -> NDArray[np.bool_]:
    picture = edit_named(name, settings).apply(subject, np.random.default_rng(3), Supplied())
    return np.asarray(picture.alpha > 127)


@pytest.mark.parametrize("sides", [(), ("bottom",), ("left", "top")])
def test_the_borders_that_cut_an_object_are_found(sides: tuple[str, ...]) -> None:
    assert set(cut_at(*sides).cut_sides) == set(sides)


def test_a_corner_that_touches_the_border_is_not_cut() -> None:
    hard = np.zeros((100, 100), bool)
    hard[60:100, 50:52] = True
    assert find_cut_sides(hard) == ()


@pytest.mark.parametrize("side", ["bottom", "left", "right"])
def test_a_cut_object_shrinks_towards_its_border(side: str) -> None:
    placed = made(cut_at(side), "size", rate=0.03)
    edge = {"bottom": placed[-1], "left": placed[:, 0], "right": placed[:, -1]}[side]
    assert edge.sum() >= 15
    assert abs(placed.mean() - 0.03) < 0.006


def test_a_grounded_object_shrinks_to_its_foot_at_the_border() -> None:
    placed = made(cut_at("left"), "size", rate=0.03, grounded=True)
    assert placed[:, 0].any()
    assert abs(int(np.flatnonzero(placed.any(axis=1))[-1]) - 79) <= 1


def test_a_corner_stays_in_its_corner() -> None:
    placed = made(cut_at("bottom", "left"), "size", rate=0.03)
    assert placed[-1, 0]


def test_a_cut_object_moves_along_its_border() -> None:
    placed = made(cut_at("bottom"), "position")
    assert placed[-1].sum() == 40
    assert not placed[:, 60:100].all(axis=1).any()  # it has moved


def test_a_cut_object_turns_with_its_cut_outside_or_not_at_all() -> None:
    placed = made(cut_at("bottom"), "direction", angle=10.0)
    columns = np.flatnonzero(placed.any(axis=0))
    middle = placed[:, columns[5] : columns[-5]]
    assert middle[-1].mean() > 0.8
    with pytest.raises(Unusable, match=r"border cuts the object \(bottom\): turning it by 80 degrees"):
        made(cut_at("bottom"), "direction", angle=80.0)


@pytest.mark.parametrize(
    ("sides", "edit", "settings"),
    [
        (("left", "right"), "size", {"rate": 0.03}),
        (("top",), "size", {"rate": 0.03}),
        (("bottom", "left"), "position", {}),
        (("bottom",), "position-grid", {}),
        (("bottom",), "flip", {"axis": "upside-down"}),
        (("left",), "flip", {"axis": "left-right"}),
        (("top",), "tilt", {}),
    ],
)
def test_an_edit_that_would_show_the_cut_is_refused(
    sides: tuple[str, ...], edit: str, settings: dict[str, object]
) -> None:
    with pytest.raises(Unusable, match="the photo's border cuts the object"):
        made(cut_at(*sides), edit, **settings)


@pytest.mark.parametrize(("settings", "doing"), [({}, "turning it"), ({"rate": 0.03}, "shrinking it")])
def test_an_object_that_hangs_from_the_upper_border_is_refused_for_what_is_done(
    settings: dict[str, object], doing: str
) -> None:
    with pytest.raises(Unusable, match=rf"\(top\): {doing} would show the cut"):
        made(cut_at("top"), "direction", angle=10.0, **settings)


def test_a_mirror_that_leaves_the_cut_at_its_border_is_made() -> None:
    assert made(cut_at("bottom"), "flip", axis="left-right")[-1].sum() == 40


def test_papers_move_cut_objects_like_others() -> None:
    cut = cut_at("bottom")
    free = Subject(cut.picture, tools=Tools(allow_cut=True))
    assert free.cut_sides == ()
    assert not made(free, "size", rate=0.02)[-1].any()


def test_a_line_along_the_border_is_no_cut_and_an_object_that_begins_there_is() -> None:
    hard = ellipse((200, 200), (100, 100), (40, 40)) > 0
    hard[0, 20:180] = True
    hard[20:180, :2] = True  # as in trimaps, which leave the outermost pixels open
    assert find_cut_sides(hard) == ()
    hard[150:, 60:140] = True
    assert find_cut_sides(hard) == ("bottom",)
