"""Evaluation of finished pictures: configuration, loop with resume, tables.

    collection -> evaluate -> (tables) -> analyse -> report

Pictures go through `_outcome_of` in chunks on the engine's threads: read, shown to every model, the pixels dropped.
Finished chunks stand in the journal, so an evaluation that was killed goes on where it was; the tables are written from
the journal in the order of the collection, whatever the order of the work.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.errors import Unusable, UserError
from counterfoil.labels.label_space import LabelSpace, imagenet1k, space_named, space_of
from counterfoil.models.inference import Scoring, predict
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.vlm import record_usage
from counterfoil.report.page import PapersOf, no_papers
from counterfoil.run_config import environment, limit_per_class, ready_models
from counterfoil.run_result import Result
from counterfoil.runner import Outcome, Watch, WorkItems, from_entry, latest, resume_work
from counterfoil.store.collection import Collection, LabelledPictures, with_sample
from counterfoil.store.folder_lock import MAY_DIFFER, claim_folder
from counterfoil.store.journal import Journal
from counterfoil.store.prediction_tables import RenderedVariant, ResultTables
from counterfoil.study.thumbnail_candidates import ThumbnailCandidates
from counterfoil.types import Model, Picture, Provenance, Run, Sample, Skipped, StoredVariant, Variant


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The whole configuration of an evaluation."""

    collection: Collection
    models: tuple[str, ...]
    limit: int | None = None  # samples; each brings all of its pictures
    workers: int | None = None
    batch_size: int = 16
    scoring: Scoring | None = None  # the collection's own where none is given
    classes: str | None = None  # other classes than the collection's: a benchmark's by name, or a classes.json
    options: ModelOptions = field(default_factory=ModelOptions)
    address: str = ""  # where the collection was found
    command: str = ""

    def __post_init__(self) -> None:
        for name in ("limit", "workers", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"expected {name.replace('_', ' ')} of at least 1, got {value}")
        if not self.models:
            raise UserError("expected at least one model, got none; try --model embedded:efficientnet-lite0")
        if len(set(self.models)) < len(self.models):
            raise UserError(f"expected each model once, got {', '.join(self.models)}")

    @property
    def chosen_scoring(self) -> Scoring:
        """Whether columns of no class compete."""
        return self.scoring or self.collection.scoring


@dataclass(frozen=True)
class EvaluationPlan:
    """An evaluation whose models were loaded and whose labels were checked."""

    asked: EvaluationConfig
    classifiers: tuple[Model, ...]
    pictures: LabelledPictures  # labels as the models know them, every picture of some sample
    skipped: tuple[Skipped, ...]
    lost: tuple[str, ...] = ()  # a collection names no classes besides those of its pictures

    @property
    def models(self) -> tuple[str, ...]:
        """The models by the names that stand in the tables."""
        return tuple(classifier.name for classifier in self.classifiers)

    @cached_property
    def identities(self) -> dict[str, str]:
        """Of every model the hash of all that makes its answers."""
        return {model.name: model.identity for model in self.classifiers}

    @cached_property
    def run(self) -> Run:
        """The record of this evaluation."""
        collection = self.asked.collection
        scoring = self.asked.chosen_scoring
        return Run(
            command=self.asked.command, images=self.asked.address, masks=None, recipe="", recipe_digest="", seed=0,
            samples=len({stored.variant.sample_id for stored in self.pictures}),
            models=self.models,
            model_digests={model.name: model.digest for model in self.classifiers},
            preprocessing={model.name: model.preprocessing for model in self.classifiers},
            environment=environment(),
            scoring=scoring if self.asked.classes is None else f"{scoring}, classes of {self.asked.classes}",
            collection=collection.name, collection_digest=collection.digest,
            surrogates=dict(collection.surrogates), notes=tuple(collection.notes),
        )  # fmt: skip

    def picture(self, variant: Variant) -> Picture | None:
        """A picture of the collection once more; None where it cannot be read any longer."""
        try:
            image = self.asked.collection.read(self.pictures.by_id[variant.id])
        except Unusable:
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))


def prepare_evaluation(asked: EvaluationConfig) -> EvaluationPlan:
    """Load the models and look through the collection; everything that can be wrong is said here."""
    collection = asked.collection
    pictures = collection.pictures
    if not pictures:
        raise UserError(f"expected pictures in {collection.name}, got none; {len(collection.skipped)} were left out")
    given = space_named(asked.classes) if asked.classes else collection.space
    options = replace(asked.options, classes=given)
    classifiers = tuple(load_model(address, options=options) for address in asked.models)
    space = given or space_of(classifiers[0].labels)
    label_of = {label: space.resolve(label) for label in {stored.variant.label for stored in pictures}}
    labels = _competing(given, sorted(set(label_of.values())))
    ready = ready_models(classifiers, space, labels, asked.chosen_scoring)
    ready = tuple(collection.adapt(model) for model in ready)
    labelled = LabelledPictures(pictures, _chosen(pictures, asked.limit), label_of)
    return EvaluationPlan(asked, ready, labelled, tuple(collection.skipped))


def _competing(space: LabelSpace | None, present: Sequence[str]) -> Sequence[str]:
    """A benchmark's own classes all compete, with pictures here or not; of ImageNet's thousand those that occur."""
    if space is None or space.name == imagenet1k().name:
        return present
    return space.labels


def _chosen(pictures: Sequence[StoredVariant], limit: int | None) -> Sequence[int]:
    """The places of all pictures of the first samples of every class in turn, in the order of the collection."""
    if limit is None:
        return range(len(pictures))
    samples = {sample.id: sample for sample in map(sample_of, map(with_sample, pictures))}
    wanted = {sample.id for sample in limit_per_class(list(samples.values()), limit)}
    return [place for place, stored in enumerate(pictures) if with_sample(stored).variant.sample_id in wanted]


def sample_of(stored: StoredVariant) -> Sample:
    """What the manifest says of the photo behind a picture."""
    variant = stored.variant
    about = stored.photos[0] if stored.photos else Provenance()
    return Sample(str(variant.sample_id), variant.label, stored.file, None, stored.sample_digest, *about)


Chunk: TypeAlias = Sequence[StoredVariant]

_CHUNK = 32  # pictures in a piece of work, whatever the batch size, so that another one finds what is finished
# the digest says what the pictures are, wherever they lie and whatever the folder is called
_LATER = frozenset({"images", "collection", "surrogates", "notes"})


def run_evaluation(
    asked: EvaluationConfig,
    out: Path | None,
    before: Callable[[EvaluationPlan], None] | None = None,
    papers: PapersOf = no_papers,
    *,
    thumbnails: bool = True,
) -> Result:
    """One evaluation from start to end; `before` sees what was loaded, `papers` gives tables for the report.

    `thumbnails` says whether to keep those that a report may show; without them they are read again.
    """
    prepared = prepare_evaluation(asked)
    if before is not None:
        before(prepared)
    holder = tempfile.TemporaryDirectory(prefix="counterfoil-") if out is None else None
    folder = out if out is not None else Path(holder.name)  # type: ignore[union-attr]
    candidates = ThumbnailCandidates(prepared.models, prepared.run.samples) if thumbnails else None
    skipped = _work_through(prepared, folder, candidates.add if candidates is not None else None)
    return Result(prepared, folder, tuple(skipped), holder, papers, candidates)


def _work_through(prepared: EvaluationPlan, folder: Path, watch: Watch | None) -> list[Skipped]:
    """Ask what is not asked yet and write the tables; gives back what was skipped."""
    record = {"limit": prepared.asked.limit, "identities": prepared.identities, **asdict(prepared.run)}
    claim_folder(folder, record, MAY_DIFFER | _LATER)
    chunks = _chunks(prepared)
    with Journal(folder / "work" / "journal.jsonl") as journal:
        try:
            resume_work(_pieces(prepared, chunks, watch), journal, prepared.asked.workers)
        finally:
            record_usage(folder, prepared.classifiers)  # what was asked was paid for, however the run ends
        return _tables(prepared, chunks, journal, folder)


def _chunks(prepared: EvaluationPlan) -> dict[str, Chunk]:
    """Pictures that are asked together, by the content id of the work: whatever changes its outcome changes the id."""
    parts = (prepared.pictures[start : start + _CHUNK] for start in range(0, len(prepared.pictures), _CHUNK))
    about = [__version__, prepared.run.collection_digest, prepared.identities]
    return {_digest([*about, [[e.variant.id, e.variant.label] for e in part]]): part for part in parts}


def _digest(about: object) -> str:
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _pieces(prepared: EvaluationPlan, chunks: dict[str, Chunk], watch: Watch | None) -> WorkItems[Chunk]:
    return WorkItems(
        items=chunks,
        do=lambda chunk: _outcome_of(prepared, chunk, watch),
        image_of=lambda variant: _again(prepared, variant),
        classifiers=prepared.classifiers,
        unit=" pictures",
        stale=lambda chunk, outcome: _readable_by_now(prepared, chunk, outcome),
        size=len,
    )


def _readable_by_now(prepared: EvaluationPlan, chunk: Chunk, outcome: Outcome) -> bool:
    """Whether a picture that could not be read is there again: a disk that was away must not cost it for good."""
    made = {made.variant.id for made in outcome.made}
    return bool(_readable(prepared, [stored for stored in chunk if stored.variant.id not in made], []))


def _again(prepared: EvaluationPlan, variant: Variant) -> NDArray[np.uint8]:
    """A picture whose answer was lost, for asking once more."""
    try:
        return prepared.asked.collection.read(prepared.pictures.by_id[variant.id])
    except Unusable as error:
        raise UserError(f"expected every picture that was answered before to be there still, but {error}") from error


def _outcome_of(prepared: EvaluationPlan, chunk: Chunk, watch: Watch | None) -> Outcome:
    """Read and ask; what cannot be read is a counted row."""
    outcome = Outcome([], {model.name: [] for model in prepared.classifiers}, [])
    batch_size = prepared.asked.batch_size
    for start in range(0, len(chunk), batch_size):  # the pixels of one batch at a time
        read = _readable(prepared, chunk[start : start + batch_size], outcome.skipped)
        asked, images = [stored.variant for stored, _ in read], [image for _, image in read]
        outcome.made.extend(_made(stored, image) for stored, image in read)
        for model in prepared.classifiers:
            outcome.predictions[model.name] += predict(model, asked, images, batch_size) if images else []
        if watch is not None:
            watch(*latest(outcome, images))
    return outcome


def _readable(
    prepared: EvaluationPlan, chunk: Chunk, skipped: list[Skipped]
) -> list[tuple[StoredVariant, NDArray[np.uint8]]]:
    """The pictures that can be read; the others are added to what was skipped."""
    read = []
    for stored in chunk:
        try:
            read.append((stored, prepared.asked.collection.read(stored)))
        except Unusable as error:
            variant = stored.variant
            skipped.append(Skipped(str(variant.sample_id), "evaluate", variant.edit, str(error)))
    return read


def _made(stored: StoredVariant, image: NDArray[np.uint8]) -> RenderedVariant:
    """The hash is of the pixels that the models saw; where the collection names one, `read` has compared it."""
    pixels = stored.sha256 or hashlib.sha256(image.tobytes()).hexdigest()
    return RenderedVariant(stored.variant, pixels, stored.object_share)


def _tables(prepared: EvaluationPlan, chunks: dict[str, Chunk], journal: Journal, folder: Path) -> list[Skipped]:
    """Write the tables in the order of the collection; gives back what was skipped on the whole way."""
    skipped = list(prepared.skipped)
    with ResultTables(folder, prepared.models, None) as tables:
        for key, chunk in chunks.items():
            outcome = from_entry(journal.entry(key))
            skipped += outcome.skipped
            shown = {stored.variant.id: stored for stored in chunk}
            for place, made in enumerate(outcome.made):
                stored = shown[made.variant.id]
                tables.add_variant(sample_of(stored), made, *stored.photos[1:])
                for model, predictions in outcome.predictions.items():
                    tables.add_prediction(model, made, predictions[place])
    return skipped
