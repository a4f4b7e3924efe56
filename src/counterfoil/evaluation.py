"""Evaluation of finished pictures: configuration, resumable loop, tables.

    collection -> models -> (tables) -> statistics -> report

`run_evaluation` takes a configuration from start to end: prepare, claim the folder, make every part that is missing,
write the tables, return the result. Chunks of pictures go through `CollectionWork.process` on the engine's workers:
read, shown to every model, the pixels dropped. The tables are written from the parts in the order of the collection,
independent of the order of work.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np

from counterfoil import __version__
from counterfoil.errors import Unusable, UserError, expect_choice
from counterfoil.execution import Execution
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import LabelSpace, imagenet1k, match_label_space
from counterfoil.models.inference import Scoring, predict
from counterfoil.models.model_loaders import load_models
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.preprocessing import share_inputs
from counterfoil.models.setup_trials import STAGES, TrialPhoto, check_setups
from counterfoil.models.vlm import record_usage
from counterfoil.pieces import (
    Image,
    ItemRequest,
    Outcome,
    PictureOrigin,
    PieceWork,
    finish_work,
    refuse_missing,
)
from counterfoil.progress import show_stage
from counterfoil.report.content import PaperScorer, score_no_paper
from counterfoil.run_config import (
    Binding,
    check_counts,
    check_distinct,
    check_settings,
    environment,
    group_bound_models,
    join_addresses,
    limit_per_class,
    load_bound_models,
    take_classes_in_turn,
)
from counterfoil.run_result import Result
from counterfoil.store.folder_lock import MAY_DIFFER, MAY_GROW, claim_folder, hold_folder, wait_for_lock
from counterfoil.store.merged_tables import MergedTables, write_merged_tables
from counterfoil.store.parts import PartStore, part_name
from counterfoil.store.picture_collection import Collection, LabelledPictures, ensure_sample
from counterfoil.store.piece_plan import PiecePlan, check_same_plan, choose_size, publish_plan, read_plan
from counterfoil.store.prediction_tables import RenderedVariant, read_sanity
from counterfoil.store.result_cache import NO_CACHE, ResultCache
from counterfoil.study.thumbnails import ThumbnailCandidates
from counterfoil.types import Model, Picture, Provenance, Run, Sample, SanityRecord, Skipped, StoredVariant, Variant
from counterfoil.worker_pool import cores


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The whole configuration of an evaluation."""

    collection: Collection
    models: tuple[str | Model, ...]  # addresses, or models themselves
    limit: int | None = None  # number of samples, each with all of its pictures
    workers: int | None = None
    batch_size: int = 16
    scoring: Scoring | None = None  # the collection's default where none is given
    classes: str | None = None  # other classes than the collection's: a benchmark's by name, or a classes.json
    options: ModelOptions = field(default_factory=ModelOptions)
    address: str = ""  # where the collection was found
    execution: Execution = field(default_factory=Execution)  # who works on the pieces
    command: str = ""

    def __post_init__(self) -> None:
        check_counts(limit=self.limit, workers=self.workers)
        check_settings(batch_size=self.batch_size, seed=0, options=self.options, classes=self.classes)
        expect_choice(self.scoring, ("all", "subset", None), "scoring")
        if not self.models:
            raise UserError("expected at least one model, got none; try --model embedded:efficientnet-lite0")
        check_distinct(self.models)

    @property
    def chosen_scoring(self) -> Scoring:
        """Whether columns of other classes compete."""
        return self.scoring or self.collection.scoring


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    """An evaluation whose models were loaded and whose labels were checked."""

    config: EvaluationConfig
    models: tuple[Model, ...]
    pictures: LabelledPictures  # with the models' labels; every picture belongs to a sample
    skipped: tuple[Skipped, ...]
    empty_classes: tuple[str, ...] = ()  # a collection names no classes besides those of its pictures
    results: ResultCache = NO_CACHE  # finished pictures are shown as they are, and models always asked
    sanity: Mapping[str, SanityRecord] = field(default_factory=dict)  # by model: other set-ups that were tried
    mixed: tuple[str, ...] = ()  # a note where machines of several kinds made the parts

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: vars(self)[item.name] for item in fields(self)}  # what was loaded on demand does not travel

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
            surrogates=dict(collection.surrogates), notes=(*collection.notes, *self.mixed),
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
        first = load_models(config.models[:1], options)
    space = given or match_label_space(first[0].labels)
    label_of = space.resolve_all(stored.variant.label for stored in stored_variants)
    labels = _competing(given, sorted(set(label_of.values())))
    binding = Binding(
        space=space, labels=tuple(labels), scoring=config.chosen_scoring, adapt=partial(_adapt, collection)
    )
    with show_stage(f"loading {join_addresses(config.models)}"):
        models = load_bound_models(config.models, first, options, binding)
    labelled = LabelledPictures(stored_variants, _chosen(stored_variants, config.limit), label_of)
    return EvaluationPlan(config=config, models=models, pictures=labelled, skipped=tuple(collection.skipped))


def _adapt(collection: Collection, model: Model) -> Model:
    return collection.adapt(model)


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
    work = CollectionWork(plan)
    work.keep_thumbnails(candidates)
    merged = _process_pictures(work, folder)
    return Result(replace(plan, mixed=merged.notes), folder, merged.skipped, temporary, papers, candidates)


def try_other_setups(plan: EvaluationPlan, folder: Path | None) -> EvaluationPlan:
    """The plan with what other set-ups of its models give on a few unedited pictures; kept where they are known."""
    earlier = read_sanity(folder, plan.identities)
    unedited = {sample_of(stored).id: stored for stored in plan.pictures if stored.variant.attribute == "original"}
    samples = take_classes_in_turn([sample_of(stored) for stored in unedited.values()], STAGES[-1])
    read = plan.config.collection.read
    photos = [TrialPhoto(sample.label, partial(read, unedited[sample.id])) for sample in samples]
    models = [model for model in plan.models if model.name not in earlier]
    with show_stage("checking how the models are set up"):
        tried = check_setups(models, photos, plan.config.workers or cores())
        return replace(plan, sanity={**earlier, **tried})


class CollectionWork(PieceWork[Chunk]):
    """The pictures of a collection in chunks."""

    stage, unit = "asking models", "pictures"

    def __init__(self, plan: EvaluationPlan) -> None:
        self.plan, self.models = plan, plan.models
        self.items = PictureChunks(plan.pictures)
        self.pieces = plan_pieces(plan)

    def process(self, item: Chunk, request: ItemRequest) -> Outcome:
        """Read the pictures and run the models, batch by batch; unreadable pictures are listed as skipped."""
        outcome = Outcome(predictions={model.name: [] for model in request.models})
        batch_size = self.plan.config.batch_size
        for start in range(0, len(item), batch_size):  # the pixels of one batch at a time
            pictures = self._read(item[start : start + batch_size], outcome.skipped)
            variants, images = [stored.variant for stored, _ in pictures], [image for _, image in pictures]
            outcome.rendered.extend(_measure(stored, image) for stored, image in pictures)
            outcome.origins.extend(_origin_of(stored) for stored, _ in pictures)
            with share_inputs(images):
                for model in request.models:
                    outcome.predictions[model.name] += predict(model, variants, images, batch_size) if images else []
                    request.progress.add(len(images) / len(request.models))
            if self._observe is not None:
                outcome.show_last(images, self._observe)
        return outcome

    def _read(self, chunk: Chunk, skipped: list[Skipped]) -> list[tuple[StoredVariant, Image]]:
        """The pictures that can be read; the others are added to `skipped`, but end the work on a benchmark."""
        pictures = []
        for stored in chunk:
            try:
                pictures.append((stored, self.plan.config.collection.read(stored)))
            except Unusable as error:
                collection, variant = self.plan.config.collection, stored.variant
                if collection.is_frozen:
                    raise UserError(
                        f"expected {collection.name} as it was when it was opened, but {error}; get it again and run"
                        " the same command"
                    ) from error
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

    def is_outdated(self, items: Sequence[Chunk], answered: set[str]) -> bool:
        """Whether a picture that could not be read can be read now, as after a disk was missing."""
        missing = [stored for chunk in items for stored in chunk if stored.variant.id not in answered]
        return bool(self._read(missing, []))


@dataclass(frozen=True, eq=False)
class PictureChunks(Sequence[Chunk]):
    """Pictures in chunks, each made on access, since a collection may hold millions."""

    pictures: LabelledPictures

    def __len__(self) -> int:
        return -(-len(self.pictures) // _CHUNK)

    @overload
    def __getitem__(self, which: int) -> Chunk: ...
    @overload
    def __getitem__(self, which: slice) -> list[Chunk]: ...
    def __getitem__(self, which: int | slice) -> Chunk | list[Chunk]:
        if isinstance(which, slice):
            return [self[place] for place in range(len(self))[which]]
        if not 0 <= which < len(self):
            raise IndexError(which)
        return self.pictures[which * _CHUNK : (which + 1) * _CHUNK]


def plan_pieces(plan: EvaluationPlan) -> PiecePlan:
    """The pieces of an evaluation and the names of their parts."""
    shown = hashlib.sha256()
    for stored in plan.pictures:
        shown.update(f"{stored.variant.id} {stored.variant.label}\n".encode())
    chunks = len(PictureChunks(plan.pictures))
    return PiecePlan(
        command="evaluate", digest=part_name(__version__, plan.run.collection_digest, shown.hexdigest()), items=chunks,
        size=choose_size(chunks, any(model.usage is not None for model in plan.models)), models=plan.identities,
        groups=group_bound_models(plan.models), skipped=plan.skipped,
    )  # fmt: skip


def _process_pictures(work: CollectionWork, folder: Path) -> MergedTables:
    """Claim the folder, make what is missing there, write the tables."""
    with hold_folder(folder):
        _claim(work, folder)
        store = PartStore(folder / "work" / "parts")
        _make_parts(work, store, folder)
        refuse_missing(work.pieces, store, "run the same command to make them")
        with show_stage("writing the tables"):
            return write_merged_tables(folder, work.pieces, store)


def _claim(work: CollectionWork, folder: Path, keep: bool = False) -> None:
    """Record the evaluation and its plan in the folder; with `keep`, what is there stays and must be the same."""
    plan, earlier = work.plan, read_plan(folder)
    left_out = sum(row.stage == "source" for row in plan.skipped)  # an edit that was skipped is no finished picture
    listed = len(plan.config.collection.pictures) + left_out
    record = {"limit": plan.config.limit, "listed": listed, "shown": len(plan.pictures),
              "identities": plan.identities, **asdict(plan.run)}  # fmt: skip
    claim_folder(folder, record, MAY_DIFFER | _LATER, MAY_GROW, keep)
    if not keep or earlier is None:
        work.pieces.write(folder)
    else:
        check_same_plan(work.pieces, earlier, folder)
    publish_plan(work.pieces, folder, keep)


def _make_parts(work: CollectionWork, store: PartStore, folder: Path) -> None:
    config = work.plan.config
    try:
        finish_work(work, store, config.execution, config.workers)
    finally:  # recorded however the run ends: questions to an endpoint cost money
        with wait_for_lock(folder / "work" / "usage.lock"):
            record_usage(folder, work.models)


def evaluate_shard(config: EvaluationConfig, folder: Path) -> None:
    """Make the parts of one shard of an evaluation; the first shard writes the plan."""
    with hold_folder(folder, shared=True):
        with wait_for_lock(folder / "work" / "plan.lock"):
            work = CollectionWork(try_other_setups(prepare_evaluation(config), folder))
            _claim(work, folder, keep=True)
        _make_parts(work, PartStore(folder / "work" / "parts"), folder)


def _origin_of(stored: StoredVariant) -> PictureOrigin:
    """The photo of a picture, and the provenance of its donor where the collection says it."""
    return PictureOrigin(sample_of(stored), stored.photos[1] if len(stored.photos) > 1 else Provenance())


def _measure(stored: StoredVariant, image: Image) -> RenderedVariant:
    """The variant with the hash of the pixels that the models saw; `read` has compared it where one is given."""
    digest = stored.sha256 or hashlib.sha256(image.tobytes()).hexdigest()
    return RenderedVariant(stored.variant, digest, stored.object_share)
