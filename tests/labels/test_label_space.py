"""Labels are names, never positions."""

from __future__ import annotations

import pytest

from counterfoil.errors import UserError
from counterfoil.labels.label_space import custom_label_space, imagenet1k, match_label_space


def test_imagenet_has_a_thousand_distinct_labels_in_the_order_of_its_columns() -> None:
    space = imagenet1k()
    assert len(set(space.labels)) == 1000
    assert list(space.labels) == sorted(space.labels)  # the columns follow the WordNet ids
    assert space.name_of("n02123045") == "tabby"


@pytest.mark.parametrize("text", ["n02123045", "tabby", "Tabby", "tabby "])
def test_a_folder_is_known_by_its_id_or_its_name(text: str) -> None:
    assert imagenet1k().resolve(text) == "n02123045"


def test_spelling_of_spaces_and_dashes_does_not_matter() -> None:
    assert imagenet1k().resolve("Siamese_cat") == imagenet1k().resolve("siamese-cat") == "n02123597"


def test_an_unknown_label_is_named_with_the_nearest_known_ones() -> None:
    with pytest.raises(UserError, match=r"got 'tabbi'; the nearest are 'tabby'"):
        imagenet1k().resolve("tabbi")


def test_all_unknown_labels_are_named_at_once_in_one_line() -> None:
    assert imagenet1k().resolve_all(["tabby", "n02123597"]) == {"tabby": "n02123045", "n02123597": "n02123597"}
    with pytest.raises(UserError) as refused:
        imagenet1k().resolve_all(["tabbi", "tabby", "Siamese kat", "xqzzv"])
    assert str(refused.value) == (
        "expected labels of imagenet1k, got 3 that are none of them: 'Siamese kat' (nearest 'siamese cat'),"
        " 'tabbi' (nearest 'tabby'), 'xqzzv'; rename the class folders, or regroup the classes where a command"
        " takes --classes FILE (run, build, evaluate)"
    )
    with pytest.raises(UserError, match=r"got 'tabbi'; the nearest are 'tabby'"):
        imagenet1k().resolve_all(["tabbi", "tabby"])


def test_a_name_that_two_classes_share_asks_for_the_id() -> None:
    with pytest.raises(UserError, match="n02012849, n03126707"):
        imagenet1k().resolve("crane")


def test_a_subset_of_imagenet_ids_speaks_imagenet_and_own_classes_do_not() -> None:
    assert match_label_space(["n02123045", "n02123597"]) is imagenet1k()
    assert match_label_space(["cat", "dog"]).labels == ("cat", "dog")
    assert custom_label_space("mine", ["cat", "dog"]).resolve("Dog") == "dog"
