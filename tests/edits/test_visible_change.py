"""Edits that change nothing visible are refused with the reason; controls and real changes are not."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.edits.visible_change import check_change, measure_change
from counterfoil.errors import Unusable
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, ellipse


def grey_blob() -> Picture:
    """A grey object on a grey ground with a gradient, so slightly tinted that hue edits apply."""
    alpha = ellipse((160, 160), (80, 80), (40, 40))
    ramp = np.linspace(90, 150, 160)[None, :].repeat(160, 0)
    image = np.where(alpha[..., None] >= 128, 200, ramp[..., None]) + np.array([1.0, 0, -1])
    return Picture(image.astype(np.uint8), alpha)


def make(name: str, settings: dict[str, object], picture: Picture) -> tuple[Subject, Picture]:
    subject = Subject(picture)
    return subject, edit_named(name, settings).apply(subject, np.random.default_rng(0), Supplied())


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("background-hue", {"hue": "green"}), ("background-rainbow", {}), ("background-grayscale", {}),
        ("object-hue", {"shift": 90}), ("object-grayscale", {}), ("grayscale", {}), ("shadow", {"shadow": "off"}),
        ("background-complexity", {"factor": 0.9}), ("background-blur", {"kernel": 5, "sigma": 1}),
    ],
)  # fmt: skip
def test_an_edit_with_nothing_to_change_is_refused(name: str, settings: dict[str, object]) -> None:
    picture = grey_blob()
    with pytest.raises(Unusable):
        subject, made = make(name, settings, picture)
        check_change(edit_named(name, settings), subject, made)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("background-hue", {"hue": "red"}), ("background-grayscale", {}), ("object-hue", {"shift": 90}),
        ("shadow", {"shadow": "on"}), ("size", {"rate": 0.1}), ("jpeg", {"quality": 30}), ("background-plain", {}),
    ],
)  # fmt: skip
def test_an_edit_that_changes_something_passes(name: str, settings: dict[str, object]) -> None:
    subject, made = make(name, settings, blob_on_grass())
    check_change(edit_named(name, settings), subject, made)


def test_a_control_may_leave_the_picture_as_it_is() -> None:
    picture = blob_on_grass()
    check_change(edit_named("control", {}), Subject(picture), picture)
    with pytest.raises(
        Unusable, match=r"hardly changes the picture: 0.0% of the background by 8 levels or more and 6 units"
    ):
        check_change(edit_named("background-plain", {}), Subject(picture), picture)


def test_the_change_is_a_share_of_what_the_edit_is_about() -> None:
    before = Picture(np.zeros((10, 10, 3), np.uint8), np.pad(np.full((5, 10), 255, np.uint8), ((0, 5), (0, 0))))
    after = before.image.copy()
    after[:5, :5] = 30
    assert [measure_change(before, after, kind) for kind in ("background", "corruption", "colour")] == [0.5, 0.25, 0.5]
    assert measure_change(before, after * 0 + 7, "corruption") == 0.0  # seven levels are not counted
    assert measure_change(before, after * 0 + 8, "corruption") == 1.0
    assert measure_change(before, after * 0 + 8, "colour") == 0.0  # and eight are not seen on black


def test_a_change_of_levels_that_nobody_sees_is_refused_for_colours_and_counts_as_a_dose_for_corruptions() -> None:
    given = blob_on_grass()
    black = Picture(np.where(given.alpha[..., None] > 0, (0, 2, 12), given.image).astype(np.uint8), given.alpha)
    subject, made = make("object-grayscale", {}, black)
    with pytest.raises(Unusable, match=r"8 levels or more and 6 units of CIE Lab, 20\.0% is needed"):
        check_change(edit_named("object-grayscale", {}), subject, made)
