"""Checks of the contracts of edits, models, sources and painters, for plug-in authors and our own tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import ComposedEdit, Edit, Needs, Supplied, adapt_old_edit
from counterfoil.edits.subject import Subject
from counterfoil.edits.visible_change import measure_change
from counterfoil.errors import Unusable, UserError, expect_kind, expect_members
from counterfoil.painters.painter_protocol import Painted, Painter, PaintRefused, PaintRequest
from counterfoil.types import Classifier, DonorRule, Model, Picture, Sample, Source, Variant

_NAMED = "a model has a name and a digest, an identity, a device and words for its scoring"
_CHANGES = "an edit visibly changes one of the pictures at least, by its `least_change`; a run refuses the others"
_PHOTOS_READ = 20  # a source may hold millions


class ContractError(AssertionError):
    """A promise of the contract that a plug-in breaks."""


def _require(kept: bool, promise: str) -> None:
    if not kept:
        raise ContractError(promise)


def check_edit(edit: Edit, pictures: Iterable[Picture | Subject]) -> int:
    """Run an edit over pictures as a run does and check what every edit promises.

    Donors are the other pictures; a surrogate that the edit asks for is replaced by a small model that rates
    brightness.

    Args:
        edit: The edit with its settings.
        pictures: Pictures to try it on, at least one; subjects keep their cut-outs for the next edit.

    Returns:
        The number of pictures to which the edit could be applied, and which it visibly changed.

    Raises:
        ContractError: The first promise that is broken, in one sentence.

    Examples:
        >>> from counterfoil import edits
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> check_edit(edits.ObjectGrayscale(), [Picture(image, mask)])
        1
    """
    edit = _as_edit(edit)
    expect_kind(pictures, Iterable, "pictures as a list")
    _check_declaration(edit)
    given = [each if isinstance(each, Subject) else Subject(each) for each in _expect_pictures(pictures)]
    others = [given[i + 1 :] + given[:i] or [subject] for i, subject in enumerate(given)]
    changes = [_check_subject(edit, subject, beside) for subject, beside in zip(given, others, strict=True)]
    applied = [change for change in changes if change is not None]
    _require(not applied or max(applied) >= edit.least_change, _CHANGES)
    return sum(change >= edit.least_change for change in applied)


def _expect_pictures(pictures: Iterable[Picture | Subject]) -> Iterator[Picture | Subject]:
    for each in pictures:
        expect_kind(each, (Picture, Subject), "pictures as counterfoil.Picture or counterfoil.Subject")
        yield each


def _expect_images(images: object) -> None:
    expect_kind(images, (Sequence, np.ndarray), "images as a list of arrays (height, width, 3)")
    assert isinstance(images, Sequence | np.ndarray)
    if isinstance(images, str | bytes) or not len(images) or not all(np.ndim(image) == 3 for image in images):
        raise UserError("expected images as a list of arrays (height, width, 3), got none, or arrays of another shape")


def _as_edit(edit: object) -> Edit:
    """The edit; one of the old form is adapted."""
    if not is_dataclass(edit) or isinstance(edit, type):
        raise ContractError("an edit is a dataclass: its fields are its settings")
    if isinstance(edit, Edit):
        return edit
    return adapt_old_edit(type(edit))(**{field.name: getattr(edit, field.name) for field in fields(edit)})


def _check_declaration(edit: Edit) -> None:
    """Check an edit's attributes, before it gets a picture."""
    _require(isinstance(edit.attribute, str) and bool(edit.attribute), "an edit names its attribute")
    _require(isinstance(edit.level, str) and bool(edit.level), "an edit names its level as text")
    _require(0 <= edit.least_change <= 1, "`least_change` is a share, 0 for an edit that may change nothing")
    settings = {field.name for field in fields(edit)}  # type: ignore[arg-type]
    _require(set(edit.places) <= settings, "`places` names settings of the edit")
    needs = edit.needs
    _require(isinstance(needs, Needs) and needs == edit.needs, "`needs` gives the same `Needs` every time")
    _require(needs.donor in (None, *get_args(DonorRule)), "a donor is of the 'other', 'same', 'next' or 'any' class")
    _require(needs.candidates >= 1, "an edit has at least one donor to choose from")
    _require(needs.candidates == 1 or needs.donor is not None, "an edit that chooses among donors names their class")
    chosen = edit.choose(0)
    _require(type(chosen) is type(edit) and chosen == edit.choose(0), "one seed makes one choice, an edit of one class")
    _require(chosen.level == edit.level, "a choice leaves the level as it is")
    for level in (edit.level, "", "a level of an old run"):
        words = edit.describe(level)
        _require(isinstance(words, str) and bool(words), "`describe` puts any level in words")


def _check_subject(edit: Edit, subject: Subject, others: Sequence[Subject]) -> float | None:
    """The visible change, see `Edit.least_change`; None where the edit cannot apply."""
    picture = subject.picture
    untouched = Picture(picture.image.copy(), picture.alpha.copy())
    try:
        settled, supplied = _settled(edit.choose(0), subject, others)
        first, second = (settled.apply(subject, np.random.default_rng(0), supplied) for _ in range(2))
        composed = _draw_composed(settled, subject, supplied) or first
    except Unusable as error:
        _require(bool(str(error)), "an edit that cannot apply says why")
        return None
    _require(first.image.dtype == np.uint8 and first.alpha.dtype == np.uint8, "pixels and alpha are uint8")
    _require(first.image.ndim == 3 and first.image.shape[2] == 3, "an image is (height, width, 3)")
    _require(first.image.shape[:2] == first.alpha.shape, "image and alpha have one size")
    _require(first.image.shape == picture.image.shape, "an edit keeps the picture's size")
    _require(_same(picture, untouched), "an edit leaves the picture it was given as it was")
    _require(_same(first, second), "the same picture and the same seed give the same pixels")
    _require(_same(first, composed), "what `compose` returns is the picture that `apply` makes")
    return measure_change(picture, first.image, edit.attribute)


def _draw_composed(edit: Edit, subject: Subject, supplied: Supplied) -> Picture | None:
    """The picture as data, drawn; None where `apply` and `compose` are each made of the other."""
    if type(edit).compose is Edit.compose or type(edit).apply is ComposedEdit.apply:
        return None
    return edit.compose(subject, np.random.default_rng(0), supplied).draw()


def _settled(edit: Edit, subject: Subject, others: Sequence[Subject]) -> tuple[Edit, Supplied]:
    """The edit with its choices made, and what it is then supplied with."""
    needs, surrogate = edit.needs, _Brightness()
    donors = tuple(others[: needs.candidates]) if needs.donor is not None else ()
    load = None if needs.surrogate is None else lambda: surrogate
    supplied = Supplied(label=_BRIGHT, donors=donors, donor_labels=[_DARK] * len(donors), load_surrogate=load)
    resolution = edit.resolve(subject, supplied)
    _require(type(resolution.edit) is type(edit), "`resolve` gives an edit of the same class")
    _require(
        resolution.edit.level.startswith(edit.level), "a choice may only add to the level, such as how it was made"
    )
    _require(0 <= resolution.donor < max(1, len(donors)), "`resolve` chooses one of the supplied donors")
    left = replace(
        supplied, donors=donors[resolution.donor : resolution.donor + 1], donor_labels=[_DARK][: len(donors)]
    )
    again = resolution.edit.resolve(subject, left)
    _require(again.edit == resolution.edit, "a resolved edit has nothing left to choose")
    return resolution.edit, left


_BRIGHT, _DARK = "bright", "dark"


class _Brightness:
    """A model that tells bright from dark."""

    name, labels, preprocessing, digest = "brightness", (_DARK, _BRIGHT), None, "brightness"

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        bright = np.array([image.mean() / 255 for image in images], np.float32)
        return np.stack([1 - bright, bright], axis=1)


def _same(first: Picture, second: Picture) -> bool:
    return np.array_equal(first.image, second.image) and np.array_equal(first.alpha, second.alpha)


def check_classifier(classifier: Classifier, images: Sequence[NDArray[np.uint8]]) -> None:
    """Run a classifier on images together, alone and in reverse, and check what every classifier promises.

    Args:
        classifier: A callable with `labels`.
        images: RGB arrays to show it.

    Returns:
        Nothing, where every promise is kept.

    Raises:
        ContractError: The first promise that is broken, in one sentence.

    Examples:
        >>> from counterfoil import wrap_model
        >>> shade = wrap_model(lambda images: [[0.3, 0.7]] * len(images), labels=["dark", "bright"])
        >>> check_classifier(shade, [np.zeros((8, 8, 3), np.uint8)] * 2)
    """
    expect_members(classifier, ("labels", "__call__"), "a classifier with labels")
    _expect_images(images)
    labels = list(classifier.labels)
    _require(len(labels) == len(set(labels)) > 1, "a classifier names each column, and no two alike")
    together = np.asarray(classifier(images))
    _require(together.shape == (len(images), len(labels)), "scores are (images, labels)")
    _require(bool(np.isfinite(together).all()), "scores are finite")
    _require(bool((together >= -1e-6).all()), "scores are probabilities: none is negative")
    _require(np.allclose(together.sum(axis=1), 1, atol=1e-3), "scores are probabilities: they sum to 1")
    alone = np.concatenate([classifier([image]) for image in images])
    _require(np.allclose(alone, together, atol=1e-4), "scores do not depend on the batch")
    backwards = np.asarray(classifier(list(reversed(images))))[::-1]
    _require(np.allclose(backwards, together, atol=1e-4), "scores do not depend on the order")


def check_model(model: Model, images: Sequence[NDArray[np.uint8]]) -> None:
    """Check what a run needs of a model: scores, predictions and attributes.

    Args:
        model: The model, as `load_model` or `wrap_model` gives it.
        images: RGB arrays to show it.

    Returns:
        Nothing, where every promise is kept.

    Raises:
        ContractError: The first promise that is broken, in one sentence.

    Examples:
        >>> from counterfoil import wrap_model
        >>> shade = wrap_model(lambda images: [[0.3, 0.7]] * len(images), labels=["dark", "bright"])
        >>> check_model(shade, [np.zeros((8, 8, 3), np.uint8)] * 2)
    """
    expect_members(model, ("gives_scores", "predict", "labels", "identity"), "a model, as wrap_model makes one")
    _expect_images(images)
    if model.gives_scores:
        check_classifier(model, images)
    said = (model.name, model.digest, model.identity, model.device, model.scoring)
    _require(all(isinstance(text, str) and text for text in said), _NAMED)
    _require(model.identity == model.identity, "a model has one identity, however often it is asked")
    _require(isinstance(model.note, str) and isinstance(model.prepared_by, str), "a note is text, which may be empty")
    _require(isinstance(model.retryable, bool), "a model says whether errors may be asked again")
    _require(set(model.labels[:2]) <= set(model.among(model.labels[:2]).labels), "`among` keeps the labels it is given")
    variants = [_original(number, model.labels[0]) for number in range(len(images))]
    predictions = model.predict(variants, images)
    ids = [prediction.variant_id for prediction in predictions]
    _require(ids == [variant.id for variant in variants], "predictions come one per variant, in order")
    for prediction in predictions:
        known = prediction.outcome != "scored" or set(prediction.ranked) <= set(model.labels)
        _require(known, "predictions rank labels of the model")
        _require(len(prediction.ranked) == len(prediction.scores), "every ranked label has its score")
        scored = bool(prediction.ranked) == (prediction.outcome == "scored")
        _require(scored, "a prediction ranks labels where its outcome is 'scored', and only there")


def _original(number: int, label: str) -> Variant:
    return Variant(
        id=f"v{number}", sample_id=f"s{number}", label=label, attribute="original", edit="original", level="none",
        settings="{}", seed=0,
    )  # fmt: skip


def check_source(source: Source) -> int:
    """List a source, read its first photos and check what every source promises.

    Args:
        source: The source.

    Returns:
        How many of its first photos could be read.

    Raises:
        ContractError: The first promise that is broken, in one sentence.

    Examples:
        >>> from counterfoil.sources.source_loaders import as_source
        >>> check_source(as_source([(np.zeros((8, 8, 3), np.uint8), "dark")]))
        1
    """
    expect_members(source, ("images", "samples", "read"), "a source")
    _require(bool(str(source.images)), "a source names the address of its photos")
    samples, skipped = source.samples()
    _require((list(samples), list(skipped)) == tuple(map(list, source.samples())), "samples come in a fixed order")
    _require(len({sample.id for sample in samples}) == len(samples), "every sample has an id of its own")
    for sample in samples:
        _require(bool(sample.id and sample.label and sample.digest), "a sample has an id, a label and a digest")
    _require(all(row.sample_id and row.reason for row in skipped), "what is left out has a name and a reason")
    named = set(source.labels)
    _require(not named or {sample.label for sample in samples} <= named, "`labels` has every label of the samples")
    return sum(_check_sample(source, sample) for sample in samples[:_PHOTOS_READ])


def _check_sample(source: Source, sample: Sample) -> bool:
    try:
        (image, mask), (again, mask_again) = source.read(sample), source.read(sample)
    except Unusable as error:
        _require(bool(str(error)), "a photo that cannot be used says why")
        return False
    _require(
        image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3, "a photo is uint8, (height, width, 3)"
    )
    _require((mask is None) == (sample.mask is None), "a sample names its mask where it has one")
    _require(mask is None or mask.dtype == np.uint8, "a mask is uint8")
    _require(mask is None or mask.shape == image.shape[:2], "photo and mask have one size")
    same = np.array_equal(image, again) and (mask is None or np.array_equal(mask, np.asarray(mask_again)))
    _require(same, "a photo read twice is the same")
    return True


def check_painter(painter: Painter, requests: Sequence[PaintRequest]) -> int:
    """Paint requests together and alone, and check what every painter promises.

    Args:
        painter: The painter.
        requests: Requests to try it on.

    Returns:
        How many were painted; the others were refused with a reason.

    Raises:
        ContractError: The first promise that is broken, in one sentence.

    Examples:
        >>> from counterfoil.painters.painter_loaders import load_painter
        >>> check_painter(load_painter("python:my_package:make_painter"), [])  # doctest: +SKIP
        0
    """
    expect_members(painter, ("name", "settings", "environment", "paint"), "a painter")
    expect_kind(requests, Sequence, "requests as a list")
    _require(bool(painter.name), "a painter has a name")
    try:
        json.dumps([dict(painter.settings), dict(painter.environment)], allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ContractError(f"settings and environment are ready for JSON: {error}") from error
    for request in requests:
        painter.check_prompt(request.prompt)
    together = painter.paint(requests)
    _require(len(together) == len(requests), "a painter gives one picture or refusal per request")
    for request, painted in zip(requests, together, strict=True):
        _check_painted(request, painted)
    alone = [painter.paint([request])[0] for request in requests]
    same = all(_same_painted(first, second) for first, second in zip(together, alone, strict=True))
    _require(same, "the picture of a request does not depend on the requests beside it")
    return sum(not isinstance(painted, PaintRefused) for painted in together)


def _check_painted(request: PaintRequest, painted: Painted) -> None:
    if isinstance(painted, PaintRefused):
        _require(bool(painted.reason), "a refusal says why")
        return
    _require(isinstance(painted, np.ndarray) and painted.dtype == np.uint8, "a picture is an array of uint8")
    _require(painted.ndim == 3 and painted.shape[2] == 3 and painted.size > 0, "a picture is (height, width, 3)")
    around = request.around
    _require(around is None or painted.shape == around.image.shape, "a background has the size of its photo")


def _same_painted(first: Painted, second: Painted) -> bool:
    if isinstance(first, PaintRefused) or isinstance(second, PaintRefused):
        return isinstance(first, PaintRefused) and isinstance(second, PaintRefused)
    return np.array_equal(first, second)
