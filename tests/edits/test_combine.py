"""Two edits at once, and the worst of several backgrounds."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.edits.background import BackgroundSwap, BackgroundWorst
from counterfoil.edits.cutout import cover
from counterfoil.edits.edit_protocol import Needs, Supplied
from counterfoil.edits.geometry import object_rate
from counterfoil.edits.registry import edit_named, settings_of
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Picture
from edit_pictures import blob_on_grass, cat, texture

RNG = np.random.default_rng
RED_AND_SMALL = [
    {"edit": "background-plain", "settings": {"colour": [255, 0, 0]}},
    {"edit": "size", "settings": {"rate": 0.05}},
]


def test_both_edits_are_seen() -> None:
    edit = edit_named("combine", {"edits": RED_AND_SMALL})
    made = edit(cat(), RNG(0))
    assert object_rate(made.alpha) == pytest.approx(0.05, abs=0.005)
    corner = made.image[:20, :20].reshape(-1, 3)
    np.testing.assert_array_equal(np.unique(corner, axis=0), [[255, 0, 0]])


def test_a_combination_is_the_second_edit_of_what_the_first_made() -> None:
    first, second = (edit_named(part["edit"], part["settings"]) for part in RED_AND_SMALL)  # type: ignore[arg-type]
    expected = second(first(cat(), RNG(0)), RNG(0))
    made = edit_named("combine", {"edits": RED_AND_SMALL})(cat(), RNG(0))
    np.testing.assert_array_equal(made.image, expected.image)


def test_a_combination_belongs_to_no_single_attribute_and_names_both_levels() -> None:
    edit = edit_named("combine", {"edits": RED_AND_SMALL})
    assert edit.attribute == "combination"
    assert edit.level == "background-plain #ff0000 + size 0.05"


def test_settings_rebuild_a_combination() -> None:
    edit = edit_named("combine-donor", {})
    again = edit_named("combine-donor", json.loads(json.dumps(settings_of(edit))))
    assert again == edit
    assert hash(again) == hash(edit)


def test_a_donor_goes_to_the_edit_that_takes_one() -> None:
    edit, donor = edit_named("combine-donor", {}), blob_on_grass((100, 100))
    assert edit.needs.donor == "other"
    small = edit_named("size", {"rate": 0.05})
    expected = small(BackgroundSwap()(cat(), RNG(0), donor), RNG(0))
    made = edit(cat(), RNG(0), donor)
    np.testing.assert_array_equal(made.alpha, expected.alpha)
    # Behind the small object is the donor's background itself, no fill of the hole that the large one left.
    behind = cover(Subject(donor).visible_background, made.alpha.shape)
    np.testing.assert_array_equal(made.image[made.alpha == 0], behind[made.alpha == 0])


@pytest.mark.parametrize(
    ("name", "edits", "reason"),
    [
        ("combine", [{"edit": "background-swap"}, {"edit": "size"}], "combine-donor"),
        ("combine-donor", [{"edit": "background-blur"}, {"edit": "size"}], "another photo's background"),
        ("combine-donor", [{"edit": "background-swap"}, {"edit": "background-additive"}], "one that does not"),
        ("combine", [{"edit": "combine"}, {"edit": "size"}], "two simple edits"),
        ("combine", [{"edit": "sise"}, {"edit": "direction"}], "no edit is named 'sise'"),
        ("combine", [{"edit": "size", "settings": {"ratio": 1}}, {"edit": "direction"}], "unknown setting 'ratio'"),
        ("combine", [{"edit": "size"}], "edits"),
    ],
)
def test_a_combination_that_cannot_be_is_refused(name: str, edits: list[object], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        edit_named(name, {"edits": edits})


class Corner:
    """A model that is the surer of "bright" the brighter the upper left corner is."""

    name, labels, preprocessing, digest = "corner", ("dark", "bright"), None, "corner"

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        bright = np.array([image[0, 0, 0] / 255 for image in images], np.float32)
        return np.stack([1 - bright, bright], axis=1)


def supplied(donors: Sequence[Picture]) -> Supplied:
    return Supplied(label="bright", donors=[Subject(donor) for donor in donors], load_surrogate=Corner)


def test_a_part_gets_its_donors_and_its_surrogate() -> None:
    donors = [Picture(np.full((50, 50, 3), gray, np.uint8), np.zeros((50, 50), np.uint8)) for gray in (200, 30, 120)]
    worst = {"edit": "background-worst", "settings": {"candidates": 3}}
    edit = edit_named("combine-donor", {"edits": [worst, RED_AND_SMALL[1]]})
    assert edit.needs == Needs(donor="other", candidates=3, surrogate="embedded:efficientnet-lite0")
    resolution = edit.resolve(Subject(cat()), supplied(donors))
    assert resolution == (edit, 1)


def test_a_part_in_a_scene_has_the_scene_that_it_has_alone() -> None:
    swap = edit_named("scene-swap", {})
    edit = edit_named("combine", {"edits": [{"edit": "scene-swap"}, {"edit": "object-grayscale"}]})
    assert edit.needs.scene
    chosen = edit.choose(7)
    parts = json.loads(json.dumps(settings_of(chosen)["edits"]))
    assert parts[0]["settings"] == settings_of(swap.choose(7))
    assert chosen.resolve(Subject(cat()), supplied([])).edit == chosen  # no photo has to lend anything
    made, alone = (each(cat(), RNG(0)) for each in (chosen, swap.choose(7)))
    assert (made.image[made.alpha == 0] == alone.image[made.alpha == 0]).all()
    # A choice that needs no scene stays where it was: with the picture.
    assert edit_named("combine", {"edits": RED_AND_SMALL}).choose(7) == edit_named("combine", {"edits": RED_AND_SMALL})


def test_a_combination_in_a_scene_is_refused_where_another_photo_would_have_to_lend_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("counterfoil.edits.scene_edits.can_draw_ground", lambda: False)
    with pytest.raises(UserError, match="'combine-donor' takes one that needs it"):
        edit_named("combine", {"edits": [{"edit": "scene-swap"}, {"edit": "object-grayscale"}]}).settle()


def test_two_surrogates_in_one_combination_are_refused() -> None:
    parts = [{"edit": "painted-adversarial", "settings": {"surrogate": f"onnx:{name}.onnx"}} for name in "ab"]
    with pytest.raises(UserError, match=r"one surrogate, got onnx:a\.onnx and onnx:b\.onnx"):
        edit_named("combine", {"edits": parts})


def test_the_worst_background_is_the_one_with_the_least_true_score() -> None:
    donors = [Picture(np.full((50, 50, 3), gray, np.uint8), np.zeros((50, 50), np.uint8)) for gray in (200, 30, 120)]
    edit = BackgroundWorst(candidates=3)
    place = edit.resolve(Subject(cat()), supplied(donors)).donor
    assert place == 1
    made = edit(cat(), RNG(0), donors[place])
    assert (made.image[made.alpha == 0] == 30).all()


def test_a_donor_without_background_is_passed_over() -> None:
    everything = Picture(texture("grass", 60), np.full((60, 60), 255, np.uint8))
    plain = Picture(np.full((50, 50, 3), 90, np.uint8), np.zeros((50, 50), np.uint8))
    edit = BackgroundWorst(candidates=2)
    assert edit.resolve(Subject(cat()), supplied([everything, plain])).donor == 1
    with pytest.raises(Unusable, match="none of 1 donors"):
        edit.resolve(Subject(cat()), supplied([everything]))


def test_one_candidate_is_no_choice() -> None:
    with pytest.raises(UserError, match="at least 2"):
        BackgroundWorst(candidates=1)
