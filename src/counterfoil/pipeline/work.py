"""One photo's way: every variant made once, every model asked, the pixels dropped."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.errors import Unsegmented, Unusable
from counterfoil.evaluate import answers, answers_again, asks_again
from counterfoil.pipeline.job import Prepared
from counterfoil.store import Made
from counterfoil.types import Model, Picture, Prediction, Sample, Skipped, Variant

Keep: TypeAlias = Callable[[Variant, Picture], None]
ImageOf: TypeAlias = Callable[[Variant], NDArray[np.uint8]]
Watch: TypeAlias = Callable[
    [Sequence[Made], Sequence[NDArray[np.uint8]], Mapping[str, Sequence[Prediction]]], None
]  # sees pictures together with every model's answers


class Outcome(NamedTuple):
    """What became of one photo."""

    made: list[Made]
    predictions: dict[str, list[Prediction]]  # by model, in the order of `made`
    skipped: list[Skipped]


def key_of(prepared: Prepared, sample: Sample) -> str:
    """The content id of a photo's work: whatever changes its outcome changes the key."""
    variants = prepared.plans.of(sample).variants
    lenders = [[lender.digest for lender in prepared.studio.candidates(variant)] for variant in variants]
    about = [__version__, sample.id, [variant.id for variant in variants], lenders, prepared.identities]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def outcome_of(prepared: Prepared, sample: Sample, keep: Keep | None = None, watch: Watch | None = None) -> Outcome:
    """Make, show to `keep`, ask, and show to `watch`; what cannot be made is a counted row."""
    variants, planned_skips = prepared.plans.take(sample)
    skipped = list(planned_skips)
    try:
        prepared.studio.subject(sample.id)
    except Unusable as error:
        stage: Literal["source", "segment"] = "segment" if isinstance(error, Unsegmented) else "source"
        return Outcome([], {}, [Skipped(sample.id, stage, "", str(error))])
    outcome = Outcome([], {model.name: [] for model in prepared.classifiers}, skipped)
    for start in range(0, len(variants), prepared.job.batch_size):  # the pixels of one batch at a time
        pictures = _pictures(prepared, sample, variants[start : start + prepared.job.batch_size], skipped)
        for variant, picture in pictures:
            if keep is not None:
                keep(variant, picture)
            outcome.made.append(_made(variant, picture))
        asked, images = [variant for variant, _ in pictures], [picture.image for _, picture in pictures]
        for model in prepared.classifiers:
            outcome.predictions[model.name] += answers(model, asked, images, prepared.job.batch_size)
        if watch is not None:
            watch(*latest(outcome, images))
    return outcome


def latest(
    outcome: Outcome, images: Sequence[NDArray[np.uint8]]
) -> tuple[Sequence[Made], Sequence[NDArray[np.uint8]], Mapping[str, Sequence[Prediction]]]:
    """The last pictures of an outcome with the answers to them, as `Watch` takes them."""
    first = len(outcome.made) - len(images)
    return outcome.made[first:], images, {model: rows[first:] for model, rows in outcome.predictions.items()}


def _pictures(
    prepared: Prepared, sample: Sample, variants: Sequence[Variant], skipped: list[Skipped]
) -> list[tuple[Variant, Picture]]:
    """The variants that can be made; the others are added to what was skipped."""
    made = []
    for planned in variants:
        try:
            variant = prepared.studio.resolve(planned)
            made.append((variant, prepared.studio.make(variant)))
        except Unusable as error:
            skipped.append(Skipped(sample.id, "edit", planned.edit, str(error)))
    return made


def unsettled(classifiers: Sequence[Model], outcome: Outcome) -> bool:
    """Whether asking again may still get an answer that the network lost."""
    return any(asks_again(model, outcome.predictions.get(model.name, [])) for model in classifiers)


def outcome_again(classifiers: Sequence[Model], earlier: Outcome, image_of: ImageOf) -> Outcome:
    """The same work, asked again only where an answer ended in an error; only those pictures are made again."""
    asked = [row.variant for row in earlier.made]
    predictions = dict(earlier.predictions)
    for model in classifiers:
        told = predictions.get(model.name, [])
        if asks_again(model, told):
            predictions[model.name] = answers_again(model, asked, told, image_of)
    return earlier._replace(predictions=predictions)


def pixel_digest(picture: Picture) -> str:
    """Hash of a picture's pixels, row by row."""
    return hashlib.sha256(picture.image.tobytes()).hexdigest()


def _made(variant: Variant, picture: Picture) -> Made:
    covered = picture.alpha >= 128
    return Made(variant, pixel_digest(picture), 100 * float(covered.mean()), *_centre(covered))


def _centre(covered: NDArray[np.bool_]) -> tuple[float, float]:
    """Where the object's centre lies, as shares of the picture from the left and from the top; NaN without object."""
    down, across = covered.sum(axis=1), covered.sum(axis=0)
    if not across.any():
        return math.nan, math.nan
    x, y = (float((counts @ (np.arange(len(counts)) + 0.5)) / counts.sum() / len(counts)) for counts in (across, down))
    return x, y


def to_entry(outcome: Outcome) -> dict[str, Any]:
    """An outcome as a journal entry."""
    return {
        "made": [
            [asdict(row.variant), row.sha256, row.object_share, row.centre_x, row.centre_y] for row in outcome.made
        ],
        "predictions": {
            model: [[p.ranked, p.scores, p.true_score, p.outcome, p.text] for p in rows]
            for model, rows in outcome.predictions.items()
        },
        "skipped": [asdict(row) for row in outcome.skipped],
    }


def from_entry(entry: dict[str, Any]) -> Outcome:
    """A journal entry as an outcome."""
    made = [Made(Variant(**variant), *measured) for variant, *measured in entry["made"]]
    predictions = {model: list(_predictions(made, rows)) for model, rows in entry["predictions"].items()}
    return Outcome(made, predictions, [Skipped(**row) for row in entry["skipped"]])


def _predictions(made: list[Made], rows: list[Any]) -> Iterator[Prediction]:
    for row, (ranked, scores, *rest) in zip(made, rows, strict=True):
        yield Prediction(row.variant.id, tuple(ranked), tuple(scores), *rest)
