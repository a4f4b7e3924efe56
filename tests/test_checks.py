"""The contract checks must catch what breaks the contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.checks import ContractError, check_classifier, check_edit
from counterfoil.errors import Unusable
from counterfoil.types import Attribute, Picture, Preprocessing

PICTURE = Picture(
    np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8),
    np.pad(np.full((20, 20), 255, np.uint8), ((10, 10), (15, 15))),
)
Change = Callable[[Picture, np.random.Generator], Picture]


@dataclass(frozen=True)
class Any_:
    """An edit made of any function."""

    attribute: ClassVar[Attribute] = "background"
    change: Change
    level: str = "some"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        return self.change(picture, rng)


def in_place(picture: Picture, rng: np.random.Generator) -> Picture:
    picture.image[0, 0] += 1
    return picture


def unusable(picture: Picture, rng: np.random.Generator) -> Picture:
    raise Unusable("the object is too round")


BAD: dict[str, Change] = {
    "keeps the picture's size": lambda picture, rng: Picture(picture.image[1:], picture.alpha[1:]),
    "uint8": lambda picture, rng: Picture(picture.image.astype(np.float32), picture.alpha),
    "one size": lambda picture, rng: Picture(picture.image, picture.alpha[1:]),
    "as it was": in_place,
    "the same pixels": lambda picture, rng: Picture(
        np.random.default_rng().integers(0, 256, picture.image.shape, np.uint8), picture.alpha
    ),
}


@pytest.mark.parametrize("promise", BAD)
def test_an_edit_that_breaks_a_promise_is_caught(promise: str) -> None:
    with pytest.raises(ContractError, match=promise):
        check_edit(Any_(BAD[promise]), [PICTURE])


def test_an_edit_that_keeps_its_promises_passes_and_counts_where_it_applies() -> None:
    assert check_edit(Any_(lambda picture, rng: Picture(255 - picture.image, picture.alpha)), [PICTURE, PICTURE]) == 2
    assert check_edit(Any_(unusable), [PICTURE]) == 0


def test_an_edit_without_a_level_is_caught() -> None:
    with pytest.raises(ContractError, match="level"):
        check_edit(Any_(lambda picture, rng: picture, level=""), [PICTURE])


@dataclass(frozen=True)
class Scores:
    """A classifier made of any function."""

    answer: Callable[[Sequence[NDArray[np.uint8]]], NDArray[np.float64]]
    labels: tuple[str, ...] = ("dark", "bright")
    name: str = "python:test:scores"
    digest: str = "0"
    preprocessing: Preprocessing | None = None

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return self.answer(images).astype(np.float32)


def brightness(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    bright = np.array([image.mean() / 255 for image in images])
    return np.stack([1 - bright, bright], axis=1)


IMAGES = [np.full((8, 8, 3), level, np.uint8) for level in (10, 100, 200)]


def test_a_classifier_that_keeps_its_promises_passes() -> None:
    check_classifier(Scores(brightness), IMAGES)


@pytest.mark.parametrize(
    ("promise", "classifier"),
    [
        ("no two alike", Scores(brightness, labels=("dark", "dark"))),
        ("images, labels", Scores(brightness, labels=("dark", "grey", "bright"))),
        ("sum to 1", Scores(lambda images: 2 * brightness(images))),
        ("none is negative", Scores(lambda images: brightness(images) * 3 - 1)),
        ("finite", Scores(lambda images: brightness(images) * np.nan)),
        ("depend on the batch", Scores(lambda images: np.roll(brightness(images), len(images) // 2, 1))),
        ("depend on the order", Scores(lambda images: brightness(sorted(images, key=np.mean)))),
        ("a name and a digest", replace(Scores(brightness), digest="")),
    ],
)
def test_a_classifier_that_breaks_a_promise_is_caught(promise: str, classifier: Scores) -> None:
    with pytest.raises(ContractError, match=promise):
        check_classifier(classifier, IMAGES)
