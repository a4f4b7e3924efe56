"""Edits written as functions, and recipes made of edits as objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterfoil as cf
from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.edit_selection import make_recipe
from counterfoil.edits.registry import EDITS, OURS, edit_named, name_of
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.sources.demo_photos import BUNDLES
from counterfoil.types import Picture


@cf.edit(attribute="background")
def salt(image: Any, mask: Any, rng: np.random.Generator, amount: float = 0.5) -> Any:
    """White dots on the background."""
    image[(rng.random(mask.shape) < amount) & (mask == 0)] = 255
    return image


def subject() -> Subject:
    image, mask = np.full((60, 80, 3), 90, np.uint8), np.zeros((60, 80), np.uint8)
    image[20:40, 25:55], mask[20:40, 25:55] = (200, 40, 40), 255
    return Subject(Picture(image, mask))


def test_a_function_is_an_edit_with_settings_level_and_name() -> None:
    assert (name_of(salt()), salt().attribute, salt().level, salt(amount=0.25).level) == (
        "salt", "background", "0.5", "0.25",
    )  # fmt: skip
    assert cf.check_edit(salt(), [subject()]) == 1
    assert EDITS["salt"] is salt


def test_the_function_gets_copies_and_its_seed() -> None:
    given = subject()
    before = given.picture.image.copy()
    first, again, other = (salt()(given.picture, np.random.default_rng(seed)).image for seed in (1, 1, 2))
    np.testing.assert_array_equal(given.picture.image, before)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_function_given_again_replaces_the_first_and_has_another_version() -> None:
    @cf.edit(attribute="light")
    def dim(image: Any, mask: Any, rng: Any) -> Any:
        return image // 2

    first = dim
    assert list(cf.variants(photos(), edits=[first]))

    @cf.edit(attribute="light")  # type: ignore[no-redef]
    def dim(image: Any, mask: Any, rng: Any) -> Any:
        return image // 4

    assert EDITS["dim"] is dim
    assert first.version != dim.version
    shown = {variant.edit: picture.image for variant, picture in cf.variants(photos(), edits=[dim])}
    np.testing.assert_array_equal(shown["dim"], subject().picture.image // 4)


def plain(image: Any, mask: Any, rng: Any) -> Any:
    return 255 - image


def wrong_shape(image: Any, mask: Any, rng: Any) -> Any:
    return image[:10]


def fails(image: Any, mask: Any, rng: Any) -> Any:
    raise RuntimeError("no colours left")


def three_values(image: Any, mask: Any, rng: Any) -> Any:
    return image, mask, 1


def shares_mask(image: Any, mask: Any, rng: Any) -> Any:
    return image, mask / np.nan


def listed_default(image: Any, mask: Any, rng: Any, shades: Any = [1, 2]) -> Any:  # noqa: B006
    return image


def returns_bool_mask(image: Any, mask: Any, rng: Any) -> Any:
    return 255 - image, mask > 0


def shaded(share: float) -> Callable[..., Any]:
    def shade(image: Any, mask: Any, rng: Any) -> Any:
        return (image * share).astype(np.uint8)

    return shade


DIVISOR = 3


def divide(image: Any) -> Any:
    return image // DIVISOR


def divided(image: Any, mask: Any, rng: Any) -> Any:
    return divide(image)


def photos() -> list[tuple[Any, str, Any]]:
    picture = subject().picture
    return [(picture.image, "box", picture.alpha)]


def test_a_plain_function_has_its_name_as_attribute() -> None:
    made = {variant.edit: (variant.attribute, picture) for variant, picture in cf.variants(photos(), edits=[plain])}
    attribute, picture = made["plain"]
    assert attribute == "plain"
    np.testing.assert_array_equal(picture.image, 255 - subject().picture.image)


@pytest.mark.parametrize(
    ("edits", "line"),
    [
        (["sise"], "expected the name of an edit or an attribute, got 'sise'; did you mean 'size'"),
        ([7], "expected edits as names"),
        ([], "expected at least one edit, got none"),
        ([lambda image, mask, rng: image], "expected a function with a name"),
        ([len], "expected a function"),
        ([wrong_shape], r"expected the edit 'wrong-shape' to return an image of shape \(60, 80, 3\)"),
        ([fails], "the edit 'fails' failed: RuntimeError: no colours left"),
        ([cf.edits.ObjectGrayscale, salt(amount="much")], "edit salt: setting amount"),
        ([three_values], r"expected the edit 'three-values' to return \(image, mask\), got 3 things"),
        ([shares_mask], "expected a mask of levels 0 to 255, or of true and false, from the edit 'shares-mask'"),
        ([listed_default], "expected a number, a text or a tuple as the default of the setting 'shades'"),
        ([shaded(0.5), shaded(0.2)], "expected a name for each edit, got two functions named 'shade'"),
    ],
)
def test_a_bad_edit_is_said_in_one_line(edits: Any, line: str) -> None:
    with pytest.raises(UserError, match=line):
        list(cf.variants(photos(), edits=edits))


def test_an_edit_given_twice_is_made_once() -> None:
    recipe = make_recipe(["colour", cf.edits.ObjectHue(), cf.edits.ObjectHue, "object-grayscale"])
    assert sorted(step.edit for step in recipe.edits) == ["control", "object-grayscale", "object-hue"]
    recipe = make_recipe([cf.edits.Size(0.08), "size"])
    levels = [edit_named(step.edit, each).level for step in recipe.edits for each in step.all_settings]
    assert sorted(levels) == sorted({*levels})


def ids_of(edit: Any) -> str:
    return [variant.id for variant, _ in cf.variants(photos(), edits=[edit])][-1]


def test_what_a_function_uses_from_around_it_is_part_of_its_pictures_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids_of(shaded(0.5)) == ids_of(shaded(0.5)) != ids_of(shaded(0.2))
    before = ids_of(divided)
    monkeypatch.setitem(divide.__globals__, "DIVISOR", 4)
    assert ids_of(divided) != before
    monkeypatch.undo()
    assert ids_of(divided) == before


def test_an_edit_class_of_before_stays_the_function_that_it_was() -> None:
    half = cf.edit(shaded(0.5))
    cf.edit(shaded(0.2))
    picture = [picture for _, picture in cf.variants(photos(), edits=[half()])][-1]
    np.testing.assert_array_equal(picture.image, (subject().picture.image * 0.5).astype(np.uint8))


def test_a_mask_of_true_and_false_counts_as_one_of_0_and_255() -> None:
    made = cf.edit(returns_bool_mask)()
    picture = made.apply(subject(), np.random.default_rng(0), Supplied())
    assert set(np.unique(picture.alpha).tolist()) == {0, 255}


def test_a_bad_setting_of_an_edit_is_a_user_error() -> None:
    with pytest.raises(UserError, match="edit ObjectBlur: expected settings of other types, got kernel='small'"):
        cf.edits.ObjectBlur("small")  # type: ignore[arg-type]


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(UserError, match="expected a new name for an edit, got 'size', which is taken"):
        cf.edit(plain, name="size")


def test_a_recipe_of_objects_has_the_control_and_what_edits_are_compared_with() -> None:
    recipe = make_recipe([cf.edits.Position(rate=0.05), cf.edits.Position(rate=0.05), "colour", salt])
    named = [(step.edit, step.settings.get("rate")) for step in recipe.edits]
    assert named == [
        ("control", None), ("size", 0.05), ("position", 0.05), ("object-hue", None), ("object-grayscale", None),
        ("salt", None),
    ]  # fmt: skip


def test_every_built_in_edit_is_a_name_of_the_namespace() -> None:
    assert sorted(kind.__name__ for kind in OURS.values()) == sorted(cf.edits.__all__) == dir(cf.edits)
    assert all(getattr(cf.edits, kind.__name__) is kind for kind in OURS.values())
    with pytest.raises(AttributeError, match="no attribute 'Sise'"):
        cf.edits.Sise  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("edit", [cf.edits.Size(0.1), cf.edits.BackgroundSwap()], ids=lambda edit: type(edit).__name__)
def test_a_notebook_shows_an_edit_as_photos_before_and_after_it(edit: cf.Edit, assets: Callable[[str], Path]) -> None:
    for bundle in BUNDLES:
        assets(bundle)
    page = edit._repr_html_()
    assert page.count("<img") == 4
    assert f"level {edit.level}" in page
    assert "refused" not in page


def test_without_demo_photos_a_notebook_shows_the_settings_and_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path))
    page = cf.edits.Size(0.1)._repr_html_()
    assert "Size(rate=0.1" in page
    assert "<img" not in page
    assert not list(tmp_path.iterdir())


def test_an_edit_that_refuses_a_photo_says_so_in_the_notebook() -> None:
    @cf.edit(attribute="background")
    def refuse(image: Any, mask: Any, rng: np.random.Generator) -> Any:
        raise cf.Unusable("not this one")

    assert refuse()._repr_html_().count("refused: not this one") == 2
