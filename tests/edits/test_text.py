"""The tag on the object and beside it: which word, where, and what stays."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.registry import edit_named
from counterfoil.edits.text import NEUTRAL, Text, name_label
from counterfoil.errors import Unusable, UserError
from counterfoil.types import EditLevel, Picture
from edit_pictures import blob_on_grass, ellipse, rocket, subject_of

SUPPLIED = Supplied(label="n03063599", seed=4, donor_labels=("n02123045",))


def chosen(word: str) -> str:
    resolution = edit_named("text", {"word": word}).resolve(subject_of(blob_on_grass()), SUPPLIED)
    assert isinstance(resolution.edit, Text)
    return resolution.edit.text


def test_the_word_is_that_of_the_donors_class_of_the_photos_or_of_none() -> None:
    assert (chosen("right"), chosen("other")) == ("coffee mug", "tabby")
    assert chosen("neutral") in NEUTRAL
    assert name_label("Wall_Clock") == "wall clock"


def test_words_are_compared_with_a_neutral_one_at_the_same_place() -> None:
    assert Text.reference("other on") == EditLevel("text", "neutral on")
    assert Text.reference("right beside") == EditLevel("text", "neutral beside")
    assert Text.reference("neutral on") is None
    assert [required.settings["word"] for required in Text(place="beside").required_edits] == ["neutral"]
    assert Text(word="neutral").required_edits == ()


def test_a_tag_beside_leaves_the_object_alone_and_one_on_it_leaves_the_background() -> None:
    subject = subject_of(blob_on_grass())
    for place, kept in (("beside", subject.alpha == 255), ("on", subject.alpha == 0)):
        made = edit_named("text", {"word": "right", "place": place}).apply(subject, np.random.default_rng(2), SUPPLIED)
        changed = (made.image != subject.picture.image).any(axis=2)
        assert changed.any()
        assert (changed & kept).sum() < 0.1 * changed.sum(), "a tag may reach a little over the outline"
        assert (made.image[changed] > 230).mean() > 0.3, "most of a tag is paper"


def test_another_word_gives_another_picture_of_the_same_tag() -> None:
    given = blob_on_grass()
    cup, cap = (
        edit_named("text", {"word": "given", "text": text})(given, np.random.default_rng(0)) for text in ("cup", "cap")
    )
    assert 0 < (cup.image != cap.image).any(axis=2).sum() < (cup.image != given.image).any(axis=2).sum() / 2


def test_what_cannot_be_written_or_read_is_refused_with_the_reason() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(Unusable, match="no letters for"):
        edit_named("text", {"word": "given", "text": "茶"})(blob_on_grass(), rng)
    with pytest.raises(Unusable, match="too narrow"):
        edit_named("text", {"word": "given", "text": "a long word indeed"})(rocket(), rng)
    with pytest.raises(Unusable, match="no label"):
        edit_named("text", {"word": "right"})(blob_on_grass(), rng)
    image = blob_on_grass().image
    wide = Picture(image, ellipse(image.shape[:2], (80, 100), (79, 99)))
    with pytest.raises(Unusable, match="no room beside"):
        edit_named("text", {"word": "given", "text": "a long word indeed", "place": "beside"})(wide, rng)
    with pytest.raises(UserError, match="expected the words"):
        edit_named("text", {"word": "given"})


def test_a_small_object_is_refused_rather_than_hidden_behind_its_tag() -> None:
    image = np.full((400, 400, 3), 90, np.uint8)
    small = Picture(image, ellipse((400, 400), (200, 200), (30, 30)))
    with pytest.raises(Unusable, match=r"would take \d+% of the object's area, at most 33% may be hidden"):
        edit_named("text", {"word": "given", "text": "kite"})(small, np.random.default_rng(0))
    asked = edit_named("text", {"word": "given", "text": "kite", "share": 1.0})(small, np.random.default_rng(0))
    assert (asked.image != image).any(), "who asks for a large tag gets it"


def test_letters_are_tall_enough_for_a_classifier_however_small_the_object() -> None:
    image = np.full((400, 400, 3), 90, np.uint8)
    small = Picture(image, ellipse((400, 400), (200, 200), (60, 60)))
    made = edit_named("text", {"word": "given", "text": "seven", "place": "beside", "share": 0.02})(
        small, np.random.default_rng(0)
    )
    dark_or_light = (np.abs(made.image.astype(int) - 90) > 60).any(axis=2)
    rows = np.flatnonzero(dark_or_light.any(axis=1))
    assert rows[-1] - rows[0] >= 400 / 26 * 1.7  # a line and its margins, in heights of a letter
    with pytest.raises(Unusable, match="too narrow"):
        edit_named("text", {"word": "given", "text": "seven"})(
            Picture(image, ellipse((400, 400), (200, 200), (12, 12))), np.random.default_rng(0)
        )
