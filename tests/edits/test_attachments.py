"""Things attached to an object that its mask leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.edits.attachments import MOST_GAPS, MOST_MISSING, find_attachments, measure_missing
from counterfoil.edits.background import BackgroundSwap
from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.fill_choice import Fills
from counterfoil.edits.presence import ObjectRemoved
from counterfoil.edits.scene_edits import SceneSize
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable
from counterfoil.types import Picture


def planes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The salience of an object of 40 by 40 pixels, its mask and its hole."""
    hard = np.zeros((120, 160), bool)
    hard[40:80, 60:100] = True
    hole = np.zeros_like(hard)
    hole[37:83, 57:103] = True
    return hard.astype(np.float32), hard, hole


def test_what_stands_out_beside_the_object_and_touches_it_is_attached() -> None:
    salience, hard, hole = planes()
    salience[50:54, 100:110] = 1  # a hand: 28 pixels of it lie outside the hole
    salience[10:20, 10:20] = 1  # another thing, far away
    found = find_attachments(salience, hard, hole)
    assert found.share == pytest.approx(28 / 1600)
    assert found.reason == ""
    assert not found.region[10:20, 10:20].any()


def test_more_than_a_little_is_refused_with_its_share() -> None:
    salience, hard, hole = planes()
    salience[45:75, 100:113] = 1
    found = find_attachments(salience, hard, hole)
    assert found.reason == ("something that stands out as part of the object is not in its mask (19% of its area)")


def subject(reach: int, judged: bool) -> Subject:
    """A photo whose salience reaches so many pixels beyond the object's mask on the right."""
    salience, hard, _ = planes()
    salience[50:54, 100 : 100 + reach] = 1
    image = np.random.default_rng(0).integers(90, 110, (120, 160, 3)).astype(np.uint8)
    fills = Fills(find_salience=(lambda _: salience) if judged else None)
    return Subject(Picture(image, hard.astype(np.uint8) * 255), tools=replace(Tools(), fills=fills))


def test_a_small_attachment_leaves_with_the_object() -> None:
    with_hand, without = subject(11, judged=True), subject(0, judged=True)
    assert with_hand.hole[52, 108]
    assert not without.hole[52, 108]


def test_an_object_that_is_held_cannot_leave() -> None:
    with pytest.raises(Unusable, match="stands out as part of the object"):
        ObjectRemoved().apply(subject(60, judged=True), np.random.default_rng(0), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("edit", [BackgroundSwap(grounded=True), SceneSize(0.05)], ids=lambda edit: type(edit).__name__)
def test_an_object_that_is_held_is_put_into_no_other_scene(edit: Edit) -> None:
    with pytest.raises(Unusable, match="stands out as part of the object"):
        edit.check_subject(subject(60, judged=True))
    with pytest.raises(Unusable, match="stands out as part of the object"):
        edit.check_donor(subject(60, judged=True))  # the rest of its object would be seen
    edit.check_subject(subject(11, judged=True))


def test_without_a_judge_nothing_is_looked_for() -> None:
    held = subject(60, judged=False)
    assert held.attachments.share == 0
    ObjectRemoved().apply(held, np.random.default_rng(0), None)  # type: ignore[arg-type]


def test_what_stands_out_in_the_hole_and_not_in_the_mask_is_missing() -> None:
    salience, hard, hole = planes()
    assert measure_missing(salience, hard.astype(np.uint8) * 255, hole) == (0, 0)
    salience[10:20, 10:20] = 1  # another thing, far away
    assert measure_missing(salience, hard.astype(np.uint8) * 255, hole) == (0, 0)
    bitten = hard.copy()
    bitten[50:62, 80:100] = False  # the fingers of a hand
    share, gaps = measure_missing(salience, bitten.astype(np.uint8) * 255, hole)
    assert share > MOST_MISSING
    assert gaps > MOST_GAPS
    found = find_attachments(salience, bitten, hole)
    assert "close to the object" in found._replace(missing=share, gaps=gaps).reason
    assert "inside the object (0.5% of the picture)" in found._replace(gaps=0.005).reason
