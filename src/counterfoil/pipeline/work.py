"""One photo's way: every variant made once, every model asked, the pixels dropped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.edit.plan import plan
from counterfoil.errors import Unsegmented, Unusable
from counterfoil.evaluate import answers, answers_again, asks_again
from counterfoil.pipeline.job import Prepared
from counterfoil.pipeline.worst import settled
from counterfoil.store import Made
from counterfoil.types import Answerer, Picture, Prediction, Sample, Skipped, Variant

Keep: TypeAlias = Callable[[Variant, Picture], None]


class Outcome(NamedTuple):
    """What became of one photo."""

    made: list[Made]
    predictions: dict[str, list[Prediction]]  # by model, in the order of `made`
    skipped: list[Skipped]


def key_of(prepared: Prepared, sample: Sample) -> str:
    """The content id of a photo's work: whatever changes its outcome changes the key."""
    variants, _ = plan(sample, prepared.steps, prepared.donors)
    asked = (*prepared.classifiers, *prepared.surrogates.values())
    models = [(model.name, model.digest, repr(model.preprocessing)) for model in asked]
    about = [__version__, sample.id, [variant.id for variant in variants], models]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def outcome_of(prepared: Prepared, sample: Sample, keep: Keep | None = None) -> Outcome:
    """Make, show to `keep`, and ask; what cannot be made is a counted row."""
    variants, skipped = plan(sample, prepared.steps, prepared.donors)
    try:
        prepared.studio.ready(sample.id)
    except Unusable as error:
        stage: Literal["source", "segment"] = "segment" if isinstance(error, Unsegmented) else "source"
        return Outcome([], {}, [Skipped(sample.id, stage, "", str(error))])
    made: list[Made] = []
    images: list[NDArray[np.uint8]] = []
    for planned in variants:
        try:
            variant = settled(prepared, sample, planned)
            picture = prepared.studio.make(variant)
        except Unusable as error:
            skipped.append(Skipped(sample.id, "edit", planned.edit, str(error)))
            continue
        if keep is not None:
            keep(variant, picture)
        made.append(_made(variant, picture))
        images.append(picture.image)
    asked = [row.variant for row in made]
    predictions = {model.name: answers(model, asked, images, prepared.job.batch_size) for model in prepared.classifiers}
    return Outcome(made, predictions, skipped)


def unsettled(prepared: Prepared, outcome: Outcome) -> bool:
    """Whether asking again may still get an answer that the network lost."""
    return any(asks_again(model, outcome.predictions.get(model.name, [])) for model in prepared.classifiers)


def outcome_again(prepared: Prepared, earlier: Outcome) -> Outcome:
    """The same photo, asked again only where an answer ended in an error; only those pictures are made again."""
    asked = [row.variant for row in earlier.made]
    predictions = dict(earlier.predictions)
    for model in prepared.classifiers:
        told = predictions.get(model.name, [])
        if isinstance(model, Answerer) and asks_again(model, told):
            again = answers_again(model, asked, told, lambda variant: prepared.studio.make(variant).image)
            predictions[model.name] = again
    return earlier._replace(predictions=predictions)


def pixel_digest(picture: Picture) -> str:
    """Hash of a picture's pixels, row by row."""
    return hashlib.sha256(picture.image.tobytes()).hexdigest()


def _made(variant: Variant, picture: Picture) -> Made:
    return Made(variant, pixel_digest(picture), 100 * float((picture.alpha >= 128).mean()))


def to_entry(outcome: Outcome) -> dict[str, Any]:
    """An outcome as a journal entry."""
    return {
        "made": [[asdict(row.variant), row.sha256, row.object_share] for row in outcome.made],
        "predictions": {
            model: [[p.ranked, p.scores, p.true_score, p.outcome, p.text] for p in rows]
            for model, rows in outcome.predictions.items()
        },
        "skipped": [asdict(row) for row in outcome.skipped],
    }


def from_entry(entry: dict[str, Any]) -> Outcome:
    """A journal entry as an outcome."""
    made = [Made(Variant(**variant), sha256, share) for variant, sha256, share in entry["made"]]
    predictions = {model: list(_predictions(made, rows)) for model, rows in entry["predictions"].items()}
    return Outcome(made, predictions, [Skipped(**row) for row in entry["skipped"]])


def _predictions(made: list[Made], rows: list[Any]) -> Iterator[Prediction]:
    for row, (ranked, scores, *rest) in zip(made, rows, strict=True):
        yield Prediction(row.variant.id, tuple(ranked), tuple(scores), *rest)
