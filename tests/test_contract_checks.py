"""The contract checks must catch what breaks the contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.contract_checks import (
    ContractError,
    check_classifier,
    check_edit,
    check_model,
    check_painter,
    check_source,
)
from counterfoil.edits.composition import Composition
from counterfoil.edits.edit_protocol import Edit, Needs, Resolution, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.models.model_protocol import ModelBase
from counterfoil.painters.painter_protocol import PainterBase, PaintRefused, PaintRequest
from counterfoil.types import Attribute, Picture, Prediction, Preprocessing, Sample, Skipped, SourceBase, Variant

PICTURE = Picture(
    np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8),
    np.pad(np.full((20, 20), 255, np.uint8), ((10, 10), (15, 15))),
)
Change = Callable[[Picture, np.random.Generator], Picture]


@dataclass(frozen=True)
class Any_(Edit):
    """An edit made of any function."""

    attribute: ClassVar[Attribute] = "background"
    change: Change
    level: str = "some"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        return self.change(subject.picture, rng)


@dataclass(frozen=True)
class OldForm:
    """An edit as they were written before there was a base class."""

    attribute: ClassVar[Attribute] = "background"
    level: str = "some"

    def __call__(self, picture: Picture, rng: np.random.Generator) -> Picture:
        return Picture(255 - picture.image, picture.alpha)


def in_place(picture: Picture, rng: np.random.Generator) -> Picture:
    picture.image[0, 0] += 1
    return picture


def unusable(picture: Picture, rng: np.random.Generator) -> Picture:
    raise Unusable("the object is too round")


BAD: dict[str, Change] = {
    "visibly changes": lambda picture, rng: Picture(picture.image // 2 * 2, picture.alpha),  # by one level of 255
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


@dataclass(frozen=True)
class ComposedOtherwise(Any_):
    """An edit whose picture as data is another one."""

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        return Composition.of(subject.picture)


def test_an_edit_that_composes_another_picture_than_it_makes_is_caught() -> None:
    with pytest.raises(ContractError, match="what `compose` returns is the picture that `apply` makes"):
        check_edit(ComposedOtherwise(lambda picture, rng: Picture(255 - picture.image, picture.alpha)), [PICTURE])


def test_an_edit_without_a_level_is_caught() -> None:
    with pytest.raises(ContractError, match="level"):
        check_edit(Any_(lambda picture, rng: picture, level=""), [PICTURE])


def test_an_edit_of_the_old_form_is_checked_too_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="derive it from counterfoil.Edit"):
        assert check_edit(OldForm(), [PICTURE]) == 1  # type: ignore[arg-type]


@dataclass(frozen=True)
class Chooser(Edit):
    """An edit that asks for donors and a surrogate, and may go wrong in one way."""

    attribute: ClassVar[Attribute] = "an attribute of its own"
    fault: str = ""
    darkest: int | None = None

    @property
    def places(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("folder",) if self.fault == "places" else ()

    @property
    def level(self) -> str:
        return f"level {self.darkest}" if self.fault == "level" else "darkest"

    @property
    def needs(self) -> Needs:
        if self.fault == "class":
            return Needs(candidates=2, surrogate="python:nobody:loads_this")
        rule: Any = "nearest" if self.fault == "rule" else "other"
        return Needs(donor=rule, candidates=2, surrogate="python:nobody:loads_this")

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        scores = supplied.true_scores([donor.picture.image for donor in supplied.donors])
        chosen = int(np.argmin(scores))
        if self.darkest is not None and self.fault != "again":
            return Resolution(self)
        number = 0 if self.darkest is None else self.darkest + 1
        return Resolution(replace(self, darkest=number), 7 if self.fault == "donor" else chosen)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        assert len(supplied.donors) == 1
        return subject.on_background(np.full_like(subject.picture.image, round(supplied.donor.picture.image.mean())))

    @classmethod
    def describe(cls, level: str) -> str:
        return f"a background {level or 'of some kind'}"


def test_an_edit_that_chooses_gets_donors_and_a_surrogate_and_then_the_chosen_donor() -> None:
    assert check_edit(Chooser(), [PICTURE, PICTURE, PICTURE]) == 3


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ("places", "`places` names settings"),
        ("rule", "a donor is of the 'other', 'same', 'next' or 'any' class"),
        ("class", "names their class"),
        ("level", "may only add to the level"),
        ("donor", "one of the supplied donors"),
        ("again", "nothing left to choose"),
    ],
)
def test_an_edit_that_chooses_wrongly_is_caught(fault: str, promise: str) -> None:
    with pytest.raises(ContractError, match=promise):
        check_edit(Chooser(fault), [PICTURE, PICTURE])


@dataclass(frozen=True)
class Wordless(Chooser):
    """An edit whose words fail for a level that it does not know."""

    @classmethod
    def describe(cls, level: str) -> str:
        return level


def test_an_edit_without_words_for_a_level_is_caught() -> None:
    with pytest.raises(ContractError, match="any level in words"):
        check_edit(Wordless(), [PICTURE])


@dataclass(frozen=True)
class Scores(ModelBase):
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
    ],
)
def test_a_classifier_that_breaks_a_promise_is_caught(promise: str, classifier: Scores) -> None:
    with pytest.raises(ContractError, match=promise):
        check_classifier(classifier, IMAGES)


def test_a_model_that_keeps_its_promises_passes() -> None:
    check_model(Scores(brightness), IMAGES)


class Unordered(Scores):
    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        return super().predict(variants, images)[::-1]


class Inventive(Scores):
    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        return [Prediction(variant.id, ("green",), (1.0,), 0.0) for variant in variants]


class Empty(Scores):
    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        return [Prediction(variant.id, (), (), 0.0) for variant in variants]


class Forgetful(Scores):
    def among(self, labels: Sequence[str]) -> Scores:
        return replace(self, labels=("bright",))


class Drifting(Scores):
    times: ClassVar[list[int]] = []

    @property
    def identity(self) -> str:
        self.times.append(0)
        return f"asked {len(self.times)} times"


@pytest.mark.parametrize(
    ("promise", "model"),
    [
        ("sum to 1", Scores(lambda images: 2 * brightness(images))),
        ("a name and a digest", Scores(brightness, digest="")),
        ("one per variant, in order", Unordered(brightness)),
        ("labels of the model", Inventive(brightness)),
        ("only there", Empty(brightness)),
        ("keeps the labels", Forgetful(brightness)),
        ("one identity", Drifting(brightness)),
    ],
)
def test_a_model_that_breaks_a_promise_is_caught(promise: str, model: Scores) -> None:
    with pytest.raises(ContractError, match=promise):
        check_model(model, IMAGES)


SAMPLE = Sample(id="dark/one", label="dark", image="one", mask="one", digest="digest")
PHOTO, MASK = np.full((8, 9, 3), 7, np.uint8), np.full((8, 9), 255, np.uint8)


def noise() -> NDArray[np.uint8]:
    return np.random.default_rng().integers(0, 256, (8, 9, 3), np.uint8)


@dataclass(frozen=True)
class Shelf(SourceBase):
    """A source made of lists and a function."""

    listed: tuple[Sample, ...] = (SAMPLE, replace(SAMPLE, id="dark/two"))
    photo: Callable[[], Any] = lambda: (PHOTO, MASK)
    images: str = "shelf:"
    left_out: tuple[Skipped, ...] = ()
    labels: tuple[str, ...] = ()
    shuffled: bool = False

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        order = np.random.default_rng().permutation(len(self.listed)) if self.shuffled else range(len(self.listed))
        return [self.listed[place] for place in order], self.left_out

    def read(self, sample: Sample) -> Any:
        return self.photo()


def damaged() -> Any:
    raise Unusable("the file is damaged")


def test_a_source_that_keeps_its_promises_passes_and_counts_what_it_could_read() -> None:
    assert check_source(Shelf()) == 2
    assert check_source(Shelf(photo=damaged)) == 0
    assert check_source(Shelf((replace(SAMPLE, mask=None),), lambda: (PHOTO, None), labels=("dark", "lost"))) == 1


@pytest.mark.parametrize(
    ("promise", "source"),
    [
        ("address", Shelf(images="")),
        ("fixed order", Shelf(tuple(replace(SAMPLE, id=str(n)) for n in range(30)), shuffled=True)),
        ("an id of its own", Shelf((SAMPLE, SAMPLE))),
        ("a label and a digest", Shelf((replace(SAMPLE, label=""),))),
        ("a name and a reason", Shelf(left_out=(Skipped("dark/three", "source", "", ""),))),
        ("every label", Shelf(labels=("bright",))),
        ("uint8, .height", Shelf(photo=lambda: (PHOTO[:, :, 0], MASK))),
        ("names its mask", Shelf(photo=lambda: (PHOTO, None))),
        ("a mask is uint8", Shelf(photo=lambda: (PHOTO, MASK > 0))),
        ("one size", Shelf(photo=lambda: (PHOTO, MASK[1:]))),
        ("read twice", Shelf(photo=lambda: (noise(), MASK))),
    ],
)
def test_a_source_that_breaks_a_promise_is_caught(promise: str, source: Shelf) -> None:
    with pytest.raises(ContractError, match=promise):
        check_source(source)


def by_seed(requests: Sequence[PaintRequest]) -> list[Any]:
    return [np.full((8, 9, 3), request.seed, np.uint8) for request in requests]


@dataclass(frozen=True)
class AnyPainter(PainterBase):
    """A painter made of any function."""

    work: Callable[[Sequence[PaintRequest]], list[Any]] = by_seed
    name: str = "any:"
    settings: Any = field(default_factory=dict)

    def paint(self, requests: Sequence[PaintRequest]) -> list[Any]:
        return self.work(requests)


REQUESTS = [
    PaintRequest("a cat", "", 1),
    PaintRequest("a dog", "", 2),
    PaintRequest("a hat", "", 3, Picture(PHOTO, MASK)),
]


def test_a_painter_that_keeps_its_promises_passes_and_counts_what_it_painted() -> None:
    assert check_painter(AnyPainter(), REQUESTS) == 3
    assert check_painter(AnyPainter(lambda requests: [PaintRefused("no paint") for _ in requests]), REQUESTS) == 0


@pytest.mark.parametrize(
    ("promise", "painter"),
    [
        ("a name", AnyPainter(name="")),
        ("ready for JSON", AnyPainter(settings={"side": {1}})),
        ("one picture or refusal per request", AnyPainter(lambda requests: by_seed(requests)[1:])),
        ("says why", AnyPainter(lambda requests: [PaintRefused("") for _ in requests])),
        ("array of uint8", AnyPainter(lambda requests: [0.5 * image for image in by_seed(requests)])),
        ("height, width, 3", AnyPainter(lambda requests: [image[:, :, 0] for image in by_seed(requests)])),
        ("size of its photo", AnyPainter(lambda requests: [image[1:] for image in by_seed(requests)])),
        ("requests beside it", AnyPainter(lambda requests: [image + len(requests) for image in by_seed(requests)])),
    ],
)
def test_a_painter_that_breaks_a_promise_is_caught(promise: str, painter: AnyPainter) -> None:
    with pytest.raises(ContractError, match=promise):
        check_painter(painter, REQUESTS)
