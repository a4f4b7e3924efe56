"""Evaluation of finished pictures: configuration, resumable loop, tables.

    collection -> models -> (tables) -> statistics -> report

`run_evaluation` takes a configuration from start to end: prepare, claim the folder, process every chunk of pictures
that the journal lacks, write the tables, return the result. Chunks go through `CollectionWork.process` on the
engine's threads: read, shown to every model, the pixels dropped. The tables are written from the journal in the order
of the collection, independent of the order of work.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from counterfoil import __version__
from counterfoil.errors import Unusable, UserError
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import LabelSpace, imagenet1k, match_label_space
from counterfoil.models.inference import Scoring, predict
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.setup_trials import STAGES, TrialPhoto, check_setups
from counterfoil.models.vlm import record_usage
from counterfoil.progress import ItemProgress, show_stage
from counterfoil.report.content import PaperScorer, score_no_paper
from counterfoil.resumable_work import Image, Observer, Outcome, ResumableWork, finish_work, work_key
from counterfoil.run_config import (
    bind_models,
    check_counts,
    check_distinct,
    environment,
    join_addresses,
    limit_per_class,
    take_classes_in_turn,
)
from counterfoil.run_result import Result
from counterfoil.store.folder_lock import MAY_DIFFER, claim_folder
from counterfoil.store.journal import Journal
from counterfoil.store.picture_collection import Collection, LabelledPictures, ensure_sample
from counterfoil.store.prediction_tables import RenderedVariant, ResultTables, read_sanity
from counterfoil.study.thumbnails import ThumbnailCandidates
from counterfoil.types import Model, Picture, Provenance, Run, Sample, SanityRecord, Skipped, StoredVariant, Variant


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The whole configuration of an evaluation."""

    collection: Collection
    models: tuple[str, ...]
    limit: int | None = None  # number of samples, each with all of its pictures
    workers: int | None = None
    batch_size: int = 16
    scoring: Scoring | None = None  # the collection's default where none is given
    classes: str | None = None  # other classes than the collection's: a benchmark's by name, or a classes.json
    options: ModelOptions = field(default_factory=ModelOptions)
    address: str = ""  # where the collection was found
    command: str = ""

    def __post_init__(self) -> None:
        check_counts(limit=self.limit, workers=self.workers, batch_size=self.batch_size)
        if not self.models:
            raise UserError("expected at least one model, got none; try --model embedded:efficientnet-lite0")
        check_distinct(self.models)

    @property
    def chosen_scoring(self) -> Scoring:
        """Whether columns of other classes compete."""
        return self.scoring or self.collection.scoring


@dataclass(frozen=True)
class EvaluationPlan:
    """An evaluation whose models were loaded and whose labels were checked."""

    config: EvaluationConfig
    models: tuple[Model, ...]
    pictures: LabelledPictures  # with the models' labels; every picture belongs to a sample
    skipped: tuple[Skipped, ...]
    empty_classes: tuple[str, ...] = ()  # a collection names no classes besides those of its pictures
    sanity: Mapping[str, SanityRecord] = field(default_factory=dict)  # by model: other set-ups that were tried

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models' names as in the tables."""
        return tuple(model.name for model in self.models)

    @cached_property
    def identities(self) -> dict[str, str]:
        """For each model, the hash of all that its answers depend on."""
        return {model.name: model.identity for model in self.models}

    @cached_property
    def run(self) -> Run:
        """The record of this evaluation."""
        collection = self.config.collection
        scoring = self.config.chosen_scoring
        return Run(
            command=self.config.command, images=self.config.address, masks=None, recipe="", recipe_digest="", seed=0,
            samples=len({stored.variant.sample_id for stored in self.pictures}),
            models=self.model_names,
            model_digests={model.name: model.digest for model in self.models},
            preprocessing={model.name: model.preprocessing for model in self.models},
            environment=environment(),
            scoring=scoring if self.config.classes is None else f"{scoring}, classes of {self.config.classes}",
            collection=collection.name, collection_digest=collection.digest,
            surrogates=dict(collection.surrogates), notes=tuple(collection.notes),
            references=tuple(collection.references.items()),
            sanity=self.sanity,
        )  # fmt: skip

    def picture(self, variant: Variant) -> Picture | None:
        """A picture of the collection, read again; None where it can no longer be read."""
        try:
            image = self.config.collection.read(self.pictures.by_id[variant.id])
        except Unusable:
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))


def prepare_evaluation(config: EvaluationConfig) -> EvaluationPlan:
    """Load the models and check the collection; raises `UserError` for wrong input."""
    collection = config.collection
    stored_variants = collection.pictures
    if not stored_variants:
        raise UserError(f"expected pictures in {collection.name}, got none; {len(collection.skipped)} were left out")
    given = load_label_space(config.classes) if config.classes else collection.space
    options = replace(config.options, classes=given)
    with show_stage(f"loading {join_addresses(config.models)}"):
        loaded = tuple(load_model(address, options=options) for address in config.models)
    space = given or match_label_space(loaded[0].labels)
    label_of = space.resolve_all(stored.variant.label for stored in stored_variants)
    labels = _competing(given, sorted(set(label_of.values())))
    bound = bind_models(loaded, space, labels, config.chosen_scoring)
    models = tuple(collection.adapt(model) for model in bound)
    labelled = LabelledPictures(stored_variants, _chosen(stored_variants, config.limit), label_of)
    return EvaluationPlan(config, models, labelled, tuple(collection.skipped))


def _competing(space: LabelSpace | None, present: Sequence[str]) -> Sequence[str]:
    """The classes that compete: all of a benchmark's own; of ImageNet's thousand only those that occur."""
    if space is None or space.name == imagenet1k().name:
        return present
    return space.labels


def _chosen(stored_variants: Sequence[StoredVariant], limit: int | None) -> Sequence[int]:
    """The indices of the pictures of the first samples, taken from the classes in turn; in the collection's order."""
    if limit is None:
        return range(len(stored_variants))
    samples = {sample.id: sample for sample in map(sample_of, map(ensure_sample, stored_variants))}
    wanted = {sample.id for sample in limit_per_class(list(samples.values()), limit)}
    return [place for place, stored in enumerate(stored_variants) if ensure_sample(stored).variant.sample_id in wanted]


def sample_of(stored: StoredVariant) -> Sample:
    """The photo of a picture, as the manifest describes it."""
    variant = stored.variant
    about = stored.photos[0] if stored.photos else Provenance()
    return Sample(str(variant.sample_id), variant.label, stored.file, None, stored.sample_digest, *about)


Chunk: TypeAlias = Sequence[StoredVariant]

_CHUNK = 32  # pictures per item, independent of the batch size, so that a resumed run may change that
# the digest identifies the pictures, independent of their folder
_LATER = frozenset({"images", "collection", "surrogates", "notes", "references"})


def run_evaluation(
    config: EvaluationConfig,
    out: Path | None,
    on_prepared: Callable[[EvaluationPlan], None] | None = None,
    papers: PaperScorer = score_no_paper,
    *,
    thumbnails: bool = True,
) -> Result:
    """One evaluation from start to end.

    Args:
        config: What to evaluate.
        out: Folder for the tables; temporary where none is given.
        on_prepared: Called with the plan before the work begins.
        papers: Returns the tables of the collection's paper, for the report.
        thumbnails: Whether to keep the thumbnails that a report may show; else they are read again.
    """
    plan = try_other_setups(prepare_evaluation(config), out)
    if on_prepared is not None:
        on_prepared(plan)
    temporary = tempfile.TemporaryDirectory(prefix="counterfoil-") if out is None else None
    folder = out if out is not None else Path(temporary.name)  # type: ignore[union-attr]
    candidates = ThumbnailCandidates(plan.model_names) if thumbnails else None
    work = CollectionWork(plan, observe=candidates.add if candidates is not None else None)
    skipped = _process_pictures(work, folder)
    return Result(plan, folder, tuple(skipped), temporary, papers, candidates)


def try_other_setups(plan: EvaluationPlan, folder: Path | None) -> EvaluationPlan:
    """The plan with what other set-ups of its models give on a few unedited pictures; kept where they are known."""
    earlier = read_sanity(folder, plan.identities)
    unedited = {sample_of(stored).id: stored for stored in plan.pictures if stored.variant.attribute == "original"}
    samples = take_classes_in_turn([sample_of(stored) for stored in unedited.values()])[: STAGES[-1]]
    read = plan.config.collection.read
    photos = [TrialPhoto(sample.label, partial(read, unedited[sample.id])) for sample in samples]
    models = [model for model in plan.models if model.name not in earlier]
    with show_stage("checking how the models are set up"):
        return replace(plan, sanity={**earlier, **check_setups(models, photos)})


class CollectionWork(ResumableWork[Chunk]):
    """The pictures of a collection in chunks; `observe` is called with pictures and their answers."""

    stage, unit = "asking models", "pictures"

    def __init__(self, plan: EvaluationPlan, observe: Observer | None = None) -> None:
        self.plan, self.models, self._observe = plan, plan.models, observe
        chunks = (plan.pictures[start : start + _CHUNK] for start in range(0, len(plan.pictures), _CHUNK))
        self.items = {self._key(chunk): chunk for chunk in chunks}

    def _key(self, chunk: Chunk) -> str:
        pictures = [[stored.variant.id, stored.variant.label] for stored in chunk]
        return work_key(__version__, self.plan.run.collection_digest, self.plan.identities, pictures)

    def process(self, item: Chunk, progress: ItemProgress) -> Outcome:
        """Read the pictures and run every model, batch by batch; unreadable pictures are listed as skipped."""
        outcome = Outcome([], {model.name: [] for model in self.models}, [])
        batch_size = self.plan.config.batch_size
        for start in range(0, len(item), batch_size):  # the pixels of one batch at a time
            pictures = self._read(item[start : start + batch_size], outcome.skipped)
            variants, images = [stored.variant for stored, _ in pictures], [image for _, image in pictures]
            outcome.rendered.extend(_measure(stored, image) for stored, image in pictures)
            for model in self.models:
                outcome.predictions[model.name] += predict(model, variants, images, batch_size) if images else []
                progress.add(len(images) / len(self.models))
            if self._observe is not None:
                outcome.show_last(images, self._observe)
        return outcome

    def _read(self, chunk: Chunk, skipped: list[Skipped]) -> list[tuple[StoredVariant, Image]]:
        """The pictures that can be read; the others are added to `skipped`."""
        pictures = []
        for stored in chunk:
            try:
                pictures.append((stored, self.plan.config.collection.read(stored)))
            except Unusable as error:
                variant = stored.variant
                skipped.append(Skipped(str(variant.sample_id), "evaluate", variant.edit, str(error)))
        return pictures

    def image_of(self, variant: Variant) -> Image:
        """The picture read again."""
        try:
            return self.plan.config.collection.read(self.plan.pictures.by_id[variant.id])
        except Unusable as error:
            raise UserError(
                f"expected every picture that was answered before to be there still, but {error}"
            ) from error

    def size_of(self, item: Chunk) -> int:
        """The number of pictures in a chunk."""
        return len(item)

    def is_outdated(self, item: Chunk, outcome: Outcome) -> bool:
        """Whether a picture that could not be read can be read now, as after a disk was missing."""
        answered = {rendered.variant.id for rendered in outcome.rendered}
        return bool(self._read([stored for stored in item if stored.variant.id not in answered], []))


def _process_pictures(work: CollectionWork, folder: Path) -> list[Skipped]:
    """Claim the folder, process what is missing there, write the tables; returns what was skipped."""
    plan = work.plan
    record = {"limit": plan.config.limit, "identities": plan.identities, **asdict(plan.run)}
    claim_folder(folder, record, MAY_DIFFER | _LATER)
    with Journal(folder / "work" / "journal.jsonl") as journal:
        try:
            finish_work(work, journal, plan.config.workers)
        finally:
            record_usage(folder, plan.models)  # recorded however the run ends: questions to an endpoint cost money
        with show_stage("writing the tables"):
            return _write_tables(work, journal, folder)


def _write_tables(work: CollectionWork, journal: Journal, folder: Path) -> list[Skipped]:
    """Write the tables in the order of the collection; returns everything that was skipped."""
    skipped = list(work.plan.skipped)
    with ResultTables(folder, work.plan.model_names, None) as tables:
        for key, chunk in work.items.items():
            outcome = Outcome.from_entry(journal.entry(key))
            skipped += outcome.skipped
            by_id = {stored.variant.id: stored for stored in chunk}
            for place, rendered in enumerate(outcome.rendered):
                stored = by_id[rendered.variant.id]
                tables.add_variant(sample_of(stored), rendered, *stored.photos[1:])
                for model, predictions in outcome.predictions.items():
                    tables.add_prediction(model, rendered, predictions[place])
    return skipped


def _measure(stored: StoredVariant, image: Image) -> RenderedVariant:
    """The variant with the hash of the pixels that the models saw; `read` has compared it where one is given."""
    digest = stored.sha256 or hashlib.sha256(image.tobytes()).hexdigest()
    return RenderedVariant(stored.variant, digest, stored.object_share)
