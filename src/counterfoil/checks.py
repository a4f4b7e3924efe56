"""The contracts of edits and classifiers as functions that plug-in authors run, as we do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.types import AnyEdit, Classifier, DonorEdit, Picture


class ContractError(AssertionError):
    """What a plug-in promised and did not keep."""


def _require(kept: bool, promise: str) -> None:
    if not kept:
        raise ContractError(promise)


def check_edit(edit: AnyEdit, pictures: Iterable[Picture]) -> int:
    """Run an edit over pictures and check what every edit promises; gives back on how many it could apply."""
    _require(is_dataclass(edit), "an edit is a dataclass: its fields are its settings")
    _require(bool(edit.attribute), "an edit names its attribute")
    _require(isinstance(edit.level, str) and bool(edit.level), "an edit names its level as text")
    given = list(pictures)
    donors = given[1:] + given[:1]
    return sum(_check_picture(edit, picture, donor) for picture, donor in zip(given, donors, strict=True))


def _check_picture(edit: AnyEdit, picture: Picture, donor: Picture) -> bool:
    untouched = Picture(picture.image.copy(), picture.alpha.copy())
    try:
        first, second = (_applied(edit, picture, donor) for _ in range(2))
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


def _applied(edit: AnyEdit, picture: Picture, donor: Picture) -> Picture:
    rng = np.random.default_rng(0)
    return edit(picture, rng, donor) if isinstance(edit, DonorEdit) else edit(picture, rng)


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
