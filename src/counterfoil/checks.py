"""The contracts of edits and classifiers as functions that plug-in authors run, as we do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.base import Edit, Needs, Subject, Supplied
from counterfoil.edit.legacy import adapted
from counterfoil.errors import Unusable
from counterfoil.types import Classifier, DonorRule, Picture


class ContractError(AssertionError):
    """What a plug-in promised and did not keep."""


def _require(kept: bool, promise: str) -> None:
    if not kept:
        raise ContractError(promise)


def check_edit(edit: Edit, pictures: Iterable[Picture | Subject]) -> int:
    """Run an edit over pictures as the frame does and check what every edit promises.

    Donors are the other pictures; a surrogate that the edit asks for is stood in for by a small model that rates
    brightness.

    Args:
        edit: The edit with its settings.
        pictures: Pictures to try it on, at least one; subjects keep their cut-outs for the next edit.

    Returns:
        On how many pictures the edit could apply.

    Raises:
        ContractError: The first promise that is broken, in one sentence.
    """
    edit = _as_edit(edit)
    _check_declaration(edit)
    given = [each if isinstance(each, Subject) else Subject(each) for each in pictures]
    return sum(
        _check_subject(edit, subject, given[i + 1 :] + given[:i] or [subject]) for i, subject in enumerate(given)
    )


def _as_edit(edit: object) -> Edit:
    """The edit, one of the old form adapted."""
    if not is_dataclass(edit) or isinstance(edit, type):
        raise ContractError("an edit is a dataclass: its fields are its settings")
    if isinstance(edit, Edit):
        return edit
    return adapted(type(edit))(**{field.name: getattr(edit, field.name) for field in fields(edit)})


def _check_declaration(edit: Edit) -> None:
    """What an edit says of itself, before it gets a picture."""
    _require(isinstance(edit.attribute, str) and bool(edit.attribute), "an edit names its attribute")
    _require(isinstance(edit.level, str) and bool(edit.level), "an edit names its level as text")
    settings = {field.name for field in fields(edit)}  # type: ignore[arg-type]
    _require(set(edit.places) <= settings, "`places` names settings of the edit")
    needs = edit.needs
    _require(isinstance(needs, Needs) and needs == edit.needs, "`needs` gives the same `Needs` every time")
    _require(needs.donor in (None, *get_args(DonorRule)), "a donor is of the 'other', 'same' or 'next' class")
    _require(needs.candidates >= 1, "an edit has at least one donor to choose from")
    _require(needs.candidates == 1 or needs.donor is not None, "an edit that chooses among donors names their class")
    chosen = edit.choose(0)
    _require(type(chosen) is type(edit) and chosen == edit.choose(0), "one seed makes one choice, an edit of one class")
    _require(chosen.level == edit.level, "a choice leaves the level as it is")
    for level in (edit.level, "", "a level of an old run"):
        words = edit.describe(level)
        _require(isinstance(words, str) and bool(words), "`describe` puts any level in words")


def _check_subject(edit: Edit, subject: Subject, others: Sequence[Subject]) -> bool:
    picture = subject.picture
    untouched = Picture(picture.image.copy(), picture.alpha.copy())
    try:
        settled, supplied = _settled(edit.choose(0), subject, others)
        first, second = (settled.apply(subject, np.random.default_rng(0), supplied) for _ in range(2))
    except Unusable as error:
        _require(bool(str(error)), "an edit that cannot apply says why")
        return False
    _require(first.image.dtype == np.uint8 and first.alpha.dtype == np.uint8, "pixels and alpha are uint8")
    _require(first.image.ndim == 3 and first.image.shape[2] == 3, "an image is (height, width, 3)")
    _require(first.image.shape[:2] == first.alpha.shape, "image and alpha have one size")
    _require(first.image.shape == picture.image.shape, "an edit keeps the picture's size")
    _require(_same(picture, untouched), "an edit leaves the picture it was given as it was")
    _require(_same(first, second), "the same picture and the same seed give the same pixels")
    return True


def _settled(edit: Edit, subject: Subject, others: Sequence[Subject]) -> tuple[Edit, Supplied]:
    """The edit with its choice made, and what it then gets to work with."""
    needs, surrogate = edit.needs, _Brightness()
    donors = tuple(others[: needs.candidates]) if needs.donor is not None else ()
    load = None if needs.surrogate is None else lambda: surrogate
    supplied = Supplied(label=_BRIGHT, donors=donors, load_surrogate=load)
    resolution = edit.resolve(subject, supplied)
    _require(type(resolution.edit) is type(edit), "`resolve` gives an edit of the same class")
    _require(resolution.edit.level == edit.level, "a choice leaves the level as it is")
    _require(0 <= resolution.donor < max(1, len(donors)), "`resolve` chooses one of the supplied donors")
    left = replace(supplied, donors=donors[resolution.donor : resolution.donor + 1])
    again = resolution.edit.resolve(subject, left)
    _require(again.edit == resolution.edit, "a resolved edit has nothing left to choose")
    return resolution.edit, left


_BRIGHT = "bright"


class _Brightness:
    """A model that knows bright from dark."""

    name, labels, preprocessing, digest = "brightness", ("dark", _BRIGHT), None, "brightness"

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        bright = np.array([image.mean() / 255 for image in images], np.float32)
        return np.stack([1 - bright, bright], axis=1)


def _same(first: Picture, second: Picture) -> bool:
    return np.array_equal(first.image, second.image) and np.array_equal(first.alpha, second.alpha)


def check_classifier(classifier: Classifier, images: Sequence[NDArray[np.uint8]]) -> None:
    """Ask a classifier about images, together, alone and in reverse, and check what every classifier promises."""
    labels = list(classifier.labels)
    _require(len(labels) == len(set(labels)) > 1, "a classifier names each column, and no two alike")
    _require(bool(classifier.name) and bool(classifier.digest), "a classifier has a name and a digest")
    together = np.asarray(classifier(images))
    _require(together.shape == (len(images), len(labels)), "scores are (images, labels)")
    _require(bool(np.isfinite(together).all()), "scores are finite")
    _require(bool((together >= -1e-6).all()), "scores are probabilities: none is negative")
    _require(np.allclose(together.sum(axis=1), 1, atol=1e-3), "scores are probabilities: they sum to 1")
    alone = np.concatenate([classifier([image]) for image in images])
    _require(np.allclose(alone, together, atol=1e-4), "scores do not depend on the batch")
    backwards = np.asarray(classifier(list(reversed(images))))[::-1]
    _require(np.allclose(backwards, together, atol=1e-4), "scores do not depend on the order")
