"""The one type of masks: origin, hard object, soft alpha; and that no edit has a threshold of its own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import counterfoil.edits
from counterfoil.edits.matting import soft_alpha
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.object_mask import ObjectMask, as_mask, hard_object, mask_overlap
from counterfoil.types import Picture
from edit_pictures import blob_on_grass

EDITS = Path(counterfoil.edits.__file__).parent
OWN_THRESHOLD = re.compile(r"(alpha|mask)[\w\[\].]*\)*\s*(>|>=|<|<=|==|!=)\s*\d")


def faint(picture: Picture) -> Picture:
    """The picture with a salience map's haze: a tenth of certainty far from the object."""
    return Picture(picture.image, np.where(picture.alpha >= 128, 230, 25).astype(np.uint8))


@pytest.mark.parametrize("name", ["background-blur", "object-blur"])
def test_a_faithful_blur_takes_only_the_object_as_object(name: str) -> None:
    hard = blob_on_grass()
    hard = Picture(hard.image, np.where(hard.alpha >= 128, 255, 0).astype(np.uint8))
    edit = edit_named(name, {"faithful": True})
    wanted, got = (edit(picture, np.random.default_rng(0)).image for picture in (hard, faint(hard)))
    np.testing.assert_array_equal(got, wanted)


def test_a_salience_map_is_hardened_before_its_edge_is_estimated() -> None:
    picture = faint(blob_on_grass())
    alpha = soft_alpha(picture.image, ObjectMask(picture.alpha, "salience"))
    assert (alpha[:5] == 0).all()
    assert alpha.max() == 255
    assert mask_overlap(hard_object(alpha), hard_object(picture.alpha)) > 0.9


def test_a_mask_of_one_value_marks_the_object_with_it() -> None:
    assert as_mask(np.array([[0, 1, 1]], np.uint8)).values.tolist() == [[0, 255, 255]]
    assert as_mask(np.array([[0, 128, 255]], np.uint8)).values.tolist() == [[0, 128, 255]]


def test_edits_that_need_a_doubtful_mask_are_refused_and_others_are_not() -> None:
    subject = Subject(blob_on_grass(), doubt="two networks disagree")
    subject.at_full_size  # noqa: B018 - the same doubt at full size
    with pytest.raises(Unusable, match="the mask is doubtful: two networks disagree"):
        subject.cutout  # noqa: B018
    with pytest.raises(Unusable, match="doubtful"):
        subject.hard_object  # noqa: B018
    assert subject.picture.image.shape == subject.photo.image.shape


def test_no_edit_compares_alpha_with_a_number_of_its_own() -> None:
    files = [path for path in EDITS.rglob("*.py") if path.name != "matting.py"]  # matting makes the soft alpha
    lines = [f"{path.name}: {line}" for path in files for line in path.read_text("utf-8").splitlines()]
    assert len(lines) > 1000
    assert [line for line in lines if OWN_THRESHOLD.search(line)] == []
    assert OWN_THRESHOLD.search("np.where((mask > 0)[..., None], image, blurred)")
