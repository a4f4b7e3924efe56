"""One photo's way: every variant made once, every model asked, the pixels dropped."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.errors import Unsegmented, Unusable, UserError
from counterfoil.models.inference import Scoring, predict, predict_again, should_retry
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.vlm import record_usage
from counterfoil.painters.background_batches import ROWS, check_gpu
from counterfoil.progress import Extent, show_progress
from counterfoil.run_config import RunConfig, RunPlan, prepare
from counterfoil.run_result import Result
from counterfoil.sources.pixels import pixel_digest
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.folder_lock import claim_folder
from counterfoil.store.journal import Journal
from counterfoil.store.prediction_tables import RenderedVariant, ResultTables
from counterfoil.study.thumbnail_candidates import ThumbnailCandidates
from counterfoil.types import Engine, Item, Model, Picture, Prediction, Provenance, Sample, Skipped, Variant
from counterfoil.worker_pool import ForkedEngine, LocalEngine, cores

Keep: TypeAlias = Callable[[Variant, Picture], None]
ImageOf: TypeAlias = Callable[[Variant], NDArray[np.uint8]]
Watch: TypeAlias = Callable[
    [Sequence[RenderedVariant], Sequence[NDArray[np.uint8]], Mapping[str, Sequence[Prediction]]], None
]  # sees pictures together with every model's answers


class Outcome(NamedTuple):
    """What became of one photo."""

    made: list[RenderedVariant]
    predictions: dict[str, list[Prediction]]  # by model, in the order of `made`
    skipped: list[Skipped]


def work_key(prepared: RunPlan, sample: Sample) -> str:
    """The content id of a photo's work: whatever changes its outcome changes the key."""
    variants = prepared.plans.of(sample).variants
    lenders = [[lender.digest for lender in prepared.studio.candidates(variant)] for variant in variants]
    about = [__version__, sample.id, [variant.id for variant in variants], lenders, prepared.identities]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def process_photo(prepared: RunPlan, sample: Sample, keep: Keep | None = None, watch: Watch | None = None) -> Outcome:
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
            outcome.predictions[model.name] += predict(model, asked, images, prepared.job.batch_size)
        if watch is not None:
            watch(*latest(outcome, images))
    return outcome


def latest(
    outcome: Outcome, images: Sequence[NDArray[np.uint8]]
) -> tuple[Sequence[RenderedVariant], Sequence[NDArray[np.uint8]], Mapping[str, Sequence[Prediction]]]:
    """The last pictures of an outcome with the answers to them, as `Watch` takes them."""
    first = len(outcome.made) - len(images)
    return outcome.made[first:], images, {model: rows[first:] for model, rows in outcome.predictions.items()}


def _pictures(
    prepared: RunPlan, sample: Sample, variants: Sequence[Variant], skipped: list[Skipped]
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


def has_lost_answers(classifiers: Sequence[Model], outcome: Outcome) -> bool:
    """Whether asking again may still get an answer that the network lost."""
    return any(should_retry(model, outcome.predictions.get(model.name, [])) for model in classifiers)


def retry_photo(classifiers: Sequence[Model], earlier: Outcome, image_of: ImageOf) -> Outcome:
    """The same work, asked again only where an answer ended in an error; only those pictures are made again."""
    asked = [row.variant for row in earlier.made]
    predictions = dict(earlier.predictions)
    for model in classifiers:
        told = predictions.get(model.name, [])
        if should_retry(model, told):
            predictions[model.name] = predict_again(model, asked, told, image_of)
    return earlier._replace(predictions=predictions)


def _made(variant: Variant, picture: Picture) -> RenderedVariant:
    covered = picture.alpha >= 128
    return RenderedVariant(variant, pixel_digest(picture), 100 * float(covered.mean()), *_centre(covered))


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
    made = [RenderedVariant(Variant(**variant), *measured) for variant, *measured in entry["made"]]
    predictions = {model: list(_predictions(made, rows)) for model, rows in entry["predictions"].items()}
    return Outcome(made, predictions, [Skipped(**row) for row in entry["skipped"]])


def _predictions(made: list[RenderedVariant], rows: list[Any]) -> Iterator[Prediction]:
    for row, (ranked, scores, *rest) in zip(made, rows, strict=True):
        yield Prediction(row.variant.id, tuple(ranked), tuple(scores), *rest)


@dataclass(frozen=True, kw_only=True)
class WorkItems(Generic[Item]):
    """What is to be done, and how."""

    items: Mapping[str, Item]  # by the content id of their work
    do: Callable[[Item], Outcome]
    image_of: ImageOf  # makes a picture once more, where an answer to it was lost
    classifiers: Sequence[Model]
    unit: str  # what progress counts
    stale: Callable[[Item, Outcome], bool] | None = None  # whether a finished piece is to be done again
    size: Callable[[Item], int] = lambda item: 1  # units in a piece
    paints_on_gpu: bool = False  # whether making the pictures takes a GPU


def resume_work(pieces: WorkItems[Item], journal: Journal, workers: int | None) -> None:
    """Do what the journal does not hold yet, and ask again where an answer was lost on the network."""
    stale = _stale(pieces, journal)
    lost = {key: outcome for key, outcome in _lost(pieces, journal).items() if key not in stale}
    missing = [key for key in pieces.items if key not in journal or key in stale or key in lost]

    def work(key: str) -> tuple[str, dict[str, object]]:
        if key in lost:
            return key, to_entry(retry_photo(pieces.classifiers, lost[key], pieces.image_of))
        return key, to_entry(pieces.do(pieces.items[key]))

    results = _engine(pieces, workers).map(work, missing)
    sizes = {key: pieces.size(item) for key, item in pieces.items.items()}
    total = sum(sizes.values())
    extent = Extent(total - sum(sizes[key] for key in missing), total, pieces.unit)
    for key, entry in show_progress(results, extent, lambda result: sizes[result[0]]):
        journal.add(key, entry)


def _engine(pieces: WorkItems[Item], workers: int | None) -> Engine:
    """Threads; processes where a GPU does the networks' part, since many decoding threads wait for Python's lock."""
    if pieces.paints_on_gpu:  # which a forked process cannot use; threads share its batches, two of which keep it busy
        return LocalEngine(workers or min(4 * cores(), 2 * ROWS))
    on_gpu = [model.device.startswith("cuda") for model in pieces.classifiers]
    if on_gpu and all(on_gpu):
        return ForkedEngine(workers or 2 * cores())
    return LocalEngine(workers or cores())


def _lost(pieces: WorkItems[Item], journal: Journal) -> dict[str, Outcome]:
    """The finished pieces some of whose answers were lost on the network; a rerun asks for those alone."""
    if not any(model.retryable for model in pieces.classifiers):
        return {}
    return {key: outcome for key, outcome in _known(pieces, journal) if has_lost_answers(pieces.classifiers, outcome)}


def _stale(pieces: WorkItems[Item], journal: Journal) -> set[str]:
    """The finished pieces that would come out otherwise by now."""
    changed = pieces.stale
    if changed is None:
        return set()
    return {key for key, outcome in _known(pieces, journal) if changed(pieces.items[key], outcome)}


def _known(pieces: WorkItems[Item], journal: Journal) -> Iterator[tuple[str, Outcome]]:
    """What is finished."""
    return ((key, from_entry(journal.entry(key))) for key in pieces.items if key in journal)


def run(
    images: str | Path,
    models: Sequence[str],
    *,
    masks: str | Path | None = None,
    recipe: str = "attributes",
    out: str | Path | None = None,
    limit: int | None = None,
    workers: int | None = None,
    batch_size: int = 16,
    seed: int = 0,
    scoring: Scoring = "all",
    classes: str | None = None,
    options: ModelOptions | None = None,
) -> Result:
    """Edit every photo, ask every model, and say what each attribute costs; resumes where `out` holds a killed run."""
    job = RunConfig(
        source=open_source(images, masks),
        models=tuple(models),
        recipe=recipe,
        limit=limit,
        workers=workers,
        batch_size=batch_size,
        seed=seed,
        options=options or ModelOptions(),
        classes=classes,
        scoring=scoring,
        command=f"counterfoil.run(images={str(images)!r}, models={list(models)!r}, recipe={recipe!r})",
    )
    return run_config(job, Path(out) if out is not None else None)


def run_config(job: RunConfig, out: Path | None, before: Callable[[RunPlan], None] | None = None) -> Result:
    """The whole way of one job; `before` sees what was loaded, before the work begins."""
    if not job.models:
        raise UserError("expected at least one model, got none; try --model embedded:efficientnet-lite0")
    prepared = prepare(job)
    if before is not None:
        before(prepared)
    holder = tempfile.TemporaryDirectory(prefix="counterfoil-") if out is None else None
    folder = out if out is not None else Path(holder.name)  # type: ignore[union-attr]
    candidates = ThumbnailCandidates(prepared.models, len(prepared.samples))
    skipped = process_photos(prepared, folder, watch=candidates.add)
    return Result(prepared, folder, tuple(skipped), holder, _candidates=candidates)


def process_photos(
    prepared: RunPlan, folder: Path, keep: Keep | None = None, watch: Watch | None = None
) -> list[Skipped]:
    """Do what is not done yet and write the tables; gives back what was skipped.

    `keep` sees every picture that is made, `watch` sees it together with the answers.
    """
    if _paints_on_gpu(prepared):
        check_gpu()
    claim_folder(folder, {"limit": prepared.job.limit, "identities": prepared.identities, **asdict(prepared.run)})
    photos = {work_key(prepared, sample): sample for sample in prepared.samples}
    with Journal(folder / "work" / "journal.jsonl") as journal:
        try:
            resume_work(_pieces(prepared, photos, keep, watch), journal, prepared.job.workers)
        finally:
            record_usage(folder, prepared.classifiers)  # what was asked was paid for, however the run ends
        return _tables(prepared, photos, journal, folder)


def _pieces(
    prepared: RunPlan, photos: Mapping[str, Sample], keep: Keep | None, watch: Watch | None
) -> WorkItems[Sample]:
    """The work, photo by photo."""
    return WorkItems(
        items=photos,
        do=lambda sample: process_photo(prepared, sample, keep, watch),
        image_of=lambda variant: prepared.studio.make(variant).image,
        classifiers=prepared.classifiers,
        unit=" photos",
        paints_on_gpu=_paints_on_gpu(prepared),
    )


def _paints_on_gpu(prepared: RunPlan) -> bool:
    return any(step.edit.needs.gpu for step in prepared.steps)


def _donor(prepared: RunPlan, variant: Variant) -> Provenance:
    """Origin and licence of the photo that lent its background; empty where none did."""
    return prepared.studio.samples[variant.donor_id].provenance if variant.donor_id else Provenance()


def _tables(prepared: RunPlan, photos: Mapping[str, Sample], journal: Journal, folder: Path) -> list[Skipped]:
    """Write the tables in the order of the photos; gives back what was skipped on the whole way."""
    skipped = list(prepared.skipped)
    with ResultTables(folder, prepared.models, prepared.recipe.working_size) as tables:
        for key, sample in photos.items():
            outcome = from_entry(journal.entry(key))
            skipped += outcome.skipped
            for place, made in enumerate(outcome.made):
                tables.add_variant(sample, made, _donor(prepared, made.variant))
                for model, predictions in outcome.predictions.items():
                    tables.add_prediction(model, made, predictions[place])
    return skipped
