"""The loop of `run`, from photos to predictions and tables. Read this file first.

    sources -> segmentation -> edits -> models -> (tables) -> statistics -> report

`run` makes a `RunConfig` and `execute` takes it from start to end: prepare, claim the folder, make every part that is
missing, write the tables, return the result. Each photo goes through `PhotoWork.process` on one of the engine's
workers: decoded once, masked, every variant rendered once, every model run, the pixels dropped. Finished pieces of
some photos are parts in the folder, so a run that was killed can be resumed. The tables are written from the parts in
the order of the photos, so their bytes do not depend on the order of the work.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from counterfoil.edits.registry import is_of_process, name_of, settings_of
from counterfoil.errors import Unusable, UserError
from counterfoil.execution import Execution
from counterfoil.models.inference import Scoring, predict
from counterfoil.models.model_objects import Transform
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.preprocessing import list_geometries, share_inputs
from counterfoil.models.setup_trials import STAGES, TrialPhoto
from counterfoil.models.stored_answers import check_setups_once, predict_once
from counterfoil.models.vlm import record_usage
from counterfoil.painters.background_batches import ROWS, check_gpu
from counterfoil.painters.paint_service import CAN_SHARE, PaintService, ServiceAddress, serve_forked, use_service
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
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.rendered_pictures import MeasuredPicture, collect_inputs, find_repetition, measure, refuse
from counterfoil.run_config import DoubtfulMasks, RunConfig, RunPlan, prepare, take_classes_in_turn
from counterfoil.run_pieces import continue_plan, plan_pieces
from counterfoil.run_request import make_run_config
from counterfoil.run_result import Result
from counterfoil.segmentation import DEFAULT_SEGMENTER
from counterfoil.sources.object_source import ObjectSource
from counterfoil.store.folder_lock import MAY_DIFFER, MAY_GROW, claim_folder, hold_folder, wait_for_lock
from counterfoil.store.folder_mirror import open_folder, push_folder
from counterfoil.store.merged_tables import MergedTables, write_merged_tables
from counterfoil.store.parts import PartStore
from counterfoil.store.piece_plan import (
    check_same_plan,
    publish_plan,
    read_plan,
    read_samples,
)
from counterfoil.store.prediction_tables import RenderedVariant, read_sanity
from counterfoil.stored_outcomes import StoredOutcomes, may_store
from counterfoil.study.thumbnails import ThumbnailCandidates
from counterfoil.types import (
    TOOL_CHECKS,
    Engine,
    Model,
    Picture,
    Prediction,
    Provenance,
    Sample,
    Skipped,
    Source,
    Variant,
)
from counterfoil.worker_pool import LocalEngine, cores
from counterfoil.worker_process import Send

# fields that differ where edits are added to a run
_WITH_EDITS = {"recipe", "recipe_digest", "main_edits", "rendered_edits"}
_WAITING_PICTURES = 128  # for a GPU: it paints 64 at a time, and the next 64 should be there by then
_MOST_WAITERS = 32  # of a process
_PHOTOS_IN_HAND = 3  # of a process
_PICTURES_ON_DEVICE, _BYTES_ON_DEVICE = 64, 64 * 2**20  # of one photo at once
PictureWriter: TypeAlias = Callable[[Variant, Picture], None]


def run(
    images: Any,
    models: Any,
    *,
    masks: str | Path | None = None,
    edits: Any = None,
    recipe: str | Recipe | None = None,
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
    out: str | Path | None = None,
    limit: int | None = None,
    workers: int | None = None,
    batch_size: int = 16,
    seed: int = 0,
    scoring: Scoring = "all",
    classes: str | None = None,
    options: ModelOptions | None = None,
    segmenter: str = DEFAULT_SEGMENTER,
    doubtful_masks: DoubtfulMasks = "leave-out",
    engine: str = "local",
    render_device: str = "",
) -> Result:
    """Edit every photo, run every model, and measure the drop in accuracy for each attribute.

    Args:
        images: A folder of class folders; FORMAT:PATH (`counterfoil list sources`); a `Source`; a data set of torch,
            torchvision or Hugging Face; a list of (image, label) or (image, label, mask) with arrays, tensors, Pillow
            pictures or paths; or a data frame with the columns image, label and, if there are masks, mask.
        models: One model or several, in a list or by name in a dict: an address such as "onnx:mine.onnx", a torch
            module, a function from a list of RGB arrays to scores or labels, an object with `predict_proba`, or what
            `wrap_model` made.
        masks: Parallel folder of masks, beside a folder of photos; without masks a small network finds the objects.
        edits: Names of edits or attributes, edits such as `cf.edits.Size(0.1)`, or functions (image, mask, rng) ->
            image. The control and what an edit is compared with are added.
        recipe: A recipe by name, or a YAML file, instead of edits; "attributes" where neither is given.
        labels: Class names, in the order of the columns of models given as objects and of the numbers in a data set.
        transform: What prepares a Pillow picture for a torch module or function given without `wrap_model`.
        out: Folder for the tables, or an address such as "s3://bucket/run". A run that was killed is resumed; without
            a folder the tables are temporary.
        limit: Use at most this many photos, taken from the classes in turn.
        workers: Threads that work on photos; one per core where not given.
        batch_size: Pictures per call of a model.
        seed: Another seed draws other random edits.
        scoring: "all" lets every column of a model compete, "subset" only those of the photos' classes.
        classes: The photos' classes: a benchmark's by name, or a classes.json.
        options: How models are loaded.
        segmenter: What finds objects where there are no masks: "joint" (two networks), "u2netp" or "u2net".
        doubtful_masks: "leave-out" refuses edits that need a doubtful mask, "keep" makes them all the same.
        engine: "local" threads, "ray", or "ray:ADDRESS" of a cluster; what cannot be rebuilt elsewhere stays here.
        render_device: "cuda", "cuda:NUMBER" or "cpu": torch composes the pictures there, within a level of the exact
            way, which is OpenCV's and the default.

    Returns:
        The result: drops with intervals, findings in sentences, tables, and `report(folder)`.

    Raises:
        UserError: The input cannot be used; one line says what was expected, what was given and what to do.

    Examples:
        >>> import numpy as np
        >>> from counterfoil import edits
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> reddest = lambda images: ["red" if each[..., 0].max() > 150 else "grey" for each in images]
        >>> result = run([(image, "red", mask)], {"reddest": reddest}, edits=[edits.ObjectGrayscale()])
        >>> {drop.edit: drop.accuracy for drop in result.drops}
        {'control': 100.0, 'object-grayscale': 0.0}
    """
    config = make_run_config(
        images, models, masks=masks, edits=edits, recipe=recipe, labels=labels, transform=transform, limit=limit,
        workers=workers, batch_size=batch_size, seed=seed, classes=classes, scoring=scoring,
        options=ModelOptions() if options is None else options, segmenter=segmenter, doubtful_masks=doubtful_masks,
        execution=Execution(engine), render_device=render_device,
    )  # fmt: skip
    folder = None if out is None else open_folder(out)
    result = execute(config, folder)
    push_folder(result.folder)
    return result


def execute(config: RunConfig, out: Path | None, on_prepared: Callable[[RunPlan], None] | None = None) -> Result:
    """A run from start to end; `on_prepared` is called with the plan before the work begins."""
    if not config.models:
        raise UserError("expected at least one model, got none; try --model embedded:efficientnet-lite0")
    plan = try_other_setups(prepare(config), out)
    if on_prepared is not None:
        on_prepared(plan)
    temporary = tempfile.TemporaryDirectory(prefix="counterfoil-") if out is None else None
    folder = out if out is not None else Path(temporary.name)  # type: ignore[union-attr]
    thumbnails = ThumbnailCandidates(plan.model_names)
    work = PhotoWork(plan)
    work.keep_thumbnails(thumbnails)
    merged = process_photos(work, folder)
    return Result(
        replace(plan, notes=(*plan.notes, *merged.notes)), folder, merged.skipped, temporary, thumbnails=thumbnails
    )


def try_other_setups(plan: RunPlan, folder: Path | None) -> RunPlan:
    """The plan with what other set-ups of its models give on a few photos; kept where the folder has it already."""
    source, earlier = plan.config.source, read_sanity(folder, plan.identities)
    shown = take_classes_in_turn(plan.samples, STAGES[-1])
    photos = [TrialPhoto(sample.label, partial(_read_image, source, sample)) for sample in shown]
    models = [model for model in plan.models if model.name not in earlier]
    with show_stage("checking how the models are set up"):
        tried = check_setups_once(models, photos, shown, plan.tools.cache, plan.config.workers or cores())
        return replace(plan, sanity={**earlier, **tried})


def _read_image(source: Source, sample: Sample) -> Image:
    return source.read(sample)[0]


class PhotoWork(PieceWork[Sample]):
    """The photos of a plan; `write` is called with every picture."""

    unit = "pictures"

    def __init__(self, plan: RunPlan, write: PictureWriter | None = None) -> None:
        self.plan, self.models, self.items = plan, plan.models, plan.samples
        self.stage = "editing photos and asking models" if plan.models else "editing photos"
        self.pieces = plan_pieces(plan)
        self._write = write
        self._fill_folder: Path | None = None  # where the workers of the run share fills
        self._painter: ServiceAddress | None = None  # of the process that owns the GPU, for worker processes
        self._waiters: ThreadPoolExecutor | None = None  # of a worker process: threads that wait for that GPU

    def connect(self, send: Send, workers: int) -> None:
        """Share the memory for photos, and fills, with the other worker processes."""
        super().connect(send, workers)
        self.plan.renderer.share_memory(workers, self.count_threads(workers))
        if self._painter is not None:
            use_service(self._painter)
            self._waiters = ThreadPoolExecutor(min(_MOST_WAITERS, 1 + math.ceil(_WAITING_PICTURES / workers)))
        if self._fill_folder is not None:
            self.plan.tools.cache.open_for_run(self._fill_folder)

    @contextmanager
    def share_fills(self, folder: Path) -> Iterator[None]:
        """Keep fills in a folder of the run meanwhile, where this machine keeps none and photos lend backgrounds."""
        cache = self.plan.tools.cache
        if cache.folder is not None or not self.plan.takes_donors:
            yield
            return
        self._fill_folder = folder
        cache.open_for_run(folder)
        try:
            yield
        finally:
            cache.folder = None
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def share_painter(self) -> Iterator[None]:
        """Paint for the worker processes of the run meanwhile, where edits paint on this process's GPU."""
        by_processes = self.plan.config.execution.engine in ("local", "processes")
        if not (self.plan.paints_on_gpu and by_processes and CAN_SHARE):
            yield
            return
        service = PaintService()
        self._painter = service.address
        try:
            with serve_forked(service.address):
                yield
        finally:
            self._painter = None
            service.close()

    def size_of(self, item: Sample) -> int:
        """The number of pictures planned of a photo."""
        return self.plan.variant_plans.count(item)

    def process(self, item: Sample, request: ItemRequest) -> Outcome:
        """Render a photo's variants and run the models, batch by batch; failed variants are listed as skipped."""
        known = self._recall(item, request)
        if known is not None:
            return known
        planned, unplanned = self._planned(item, request.layer)
        try:
            self.plan.renderer.subject(item.id)
        except Unusable as error:
            return Outcome(predictions={model.name: [] for model in request.models},
                           skipped=[Skipped(item.id, "source", "", str(error))])  # fmt: skip
        verdict = self.plan.renderer.mask_verdict(item.id)
        outcome = Outcome(predictions={model.name: [] for model in request.models}, skipped=unplanned, mask=verdict)
        refused: list[tuple[int, Skipped]] = []  # with the place of the picture in the plan
        batch_size, share = self.plan.config.batch_size, 1 / (1 + len(request.models))
        at_once = self._count_at_once(item) if self.plan.rendering else batch_size
        batches: list[int] = []  # pictures of each
        for start in range(0, len(planned), at_once):  # the pixels of one batch at a time
            batch = list(enumerate(planned))[start : start + at_once]
            rendered = self._render(item, batch, refused, request, share)
            pictures = self._add_measured(item, rendered, outcome, refused)
            if self._write is not None:
                for each in pictures:
                    self._write(each.measured.variant, each.picture)
            images = [each.picture.image for each in pictures]
            shown = outcome.rendered[len(outcome.rendered) - len(pictures) :]
            batches.append(len(shown))
            with share_inputs(images, collect_inputs(request.models, pictures)):
                for model in request.models:
                    outcome.predictions[model.name] += self._ask(model, shown, images)
                    request.progress.add(len(images) * share)
            if self._observe is not None:
                outcome.show_last(images, self._observe)
        _check_conservation(item, planned, outcome, refused)
        outcome.skipped += [row for _, row in sorted(refused, key=lambda pair: pair[0])]
        self.plan.renderer.finish(item.id, may_lend=self.plan.takes_donors)
        if self._may_store:
            self._outcomes(request.layer).keep(item, outcome, batches)
        return outcome

    def _count_at_once(self, item: Sample) -> int:
        """The pictures of a photo that a device makes in one batch, within a bound of memory."""
        size = self.plan.renderer.subject(item.id).picture.image.nbytes
        return max(1, min(_PICTURES_ON_DEVICE, _BYTES_ON_DEVICE // size))

    def _ask(self, model: Model, shown: Sequence[RenderedVariant], images: Sequence[Image]) -> list[Prediction]:
        """A model's answers; those about pictures of a device are not exchanged with those of other runs."""
        size = self.plan.config.batch_size
        if self.plan.rendering:
            return predict(model, [one.variant for one in shown], images, size)
        return predict_once(model, shown, images, size, self.plan.tools.cache)

    @cached_property
    def _may_store(self) -> bool:
        return may_store(self.plan)

    def _outcomes(self, layer: int) -> StoredOutcomes:
        return StoredOutcomes(self.plan, (self.pieces.digest, self.pieces.layers[layer].digest))

    def _recall(self, item: Sample, request: ItemRequest) -> Outcome | None:
        """What an earlier run made of the photo; None where something is missing, or pictures are to be written."""
        if self._write is not None or not self._may_store:
            return None
        return self._outcomes(request.layer).recall(item, request.models)

    def _planned(self, sample: Sample, layer: int) -> tuple[list[Variant], list[Skipped]]:
        """The variants of one layer of edits, and those of them that cannot be planned."""
        edits = set(self.pieces.layers[layer].edits)
        variants, unplanned = self.plan.variant_plans.plan(sample)
        return [row for row in variants if row.edit in edits], [row for row in unplanned if row.edit in edits]

    def _render(
        self, sample: Sample, batch: Sequence[tuple[int, Variant]], refused: list[tuple[int, Skipped]],
        request: ItemRequest, share: float,
    ) -> list[MeasuredPicture]:  # fmt: skip
        """The variants that can be rendered, with the choices made for them; the others are added to `refused`."""
        if self.plan.render_service is not None:
            return self._render_on_device(sample, batch, refused, request, share)
        pictures = []
        each_made = map if self._waiters is None else self._waiters.map  # several pictures may wait for a GPU
        for (place, planned), made in zip(batch, each_made(self._make, [planned for _, planned in batch]), strict=True):
            if isinstance(made, Unusable):
                refused.extend(refuse(sample, place, planned, made))
            else:
                variant, picture = made
                measured = measure(variant, picture, self.plan.renderer.trace(variant))
                pictures.append(MeasuredPicture(place, planned, measured, picture))
            request.progress.add(share)
        return pictures

    def _make(self, planned: Variant) -> tuple[Variant, Picture] | Unusable:
        """A variant rendered, or why it cannot be."""
        try:
            return self.plan.renderer.make(planned)
        except Unusable as error:
            return Unusable(*error.args)  # without its traceback, whose frames hold pictures

    def _render_on_device(
        self, sample: Sample, batch: Sequence[tuple[int, Variant]], refused: list[tuple[int, Skipped]],
        request: ItemRequest, share: float,
    ) -> list[MeasuredPicture]:  # fmt: skip
        """The same, made together by a device of torch."""
        renderer, service, asked = self.plan.renderer, self.plan.render_service, []
        assert service is not None
        for place, planned in batch:
            try:
                asked.append((place, planned, *renderer.make_request(planned)))
            except Unusable as error:
                refused.extend(refuse(sample, place, planned, error))
        made = service.make([each for *_, each in asked], list_geometries(request.models))
        pictures = []
        for (place, planned, variant, _), picture in zip(asked, made, strict=True):
            try:
                renderer.check_made(variant, picture)
                pictures.append(MeasuredPicture.of_device(place, planned, variant, picture, renderer.trace(variant)))
            except Unusable as error:
                refused.extend(refuse(sample, place, planned, error))
        request.progress.add(share * len(batch))
        return pictures

    def _add_measured(
        self, sample: Sample, pictures: Sequence[MeasuredPicture], outcome: Outcome, refused: list[tuple[int, Skipped]]
    ) -> list[MeasuredPicture]:
        """Add pictures to the outcome; those whose pixels the same edit made before are skipped, and not returned."""
        kept = []
        for made in pictures:
            measured, variant = made.measured, made.measured.variant
            reason = find_repetition(
                variant, [other.variant for other in outcome.rendered if measured.sha256 == other.sha256]
            )
            if reason:
                refused.append((made.place, Skipped(sample.id, "edit", variant.edit, reason)))
                continue
            donor = self.plan.renderer.samples[variant.donor_id].provenance if variant.donor_id else Provenance()
            outcome.rendered.append(measured)
            outcome.origins.append(PictureOrigin(sample, donor, made.planned.level))
            kept.append(made)
        return kept

    def image_of(self, variant: Variant) -> Image:
        """The variant rendered again, in the way of the run."""
        if self.plan.render_service is not None:
            (made,) = self.plan.render_service.make([self.plan.renderer.request(variant)], ())
            return made.image
        return self.plan.renderer.render(variant).image

    def list_bound(self) -> list[str]:
        """Besides models: photos given as objects, and edits that were registered in this process."""
        source, edits = self.plan.config.source, dict.fromkeys(name_of(step.edit) for step in self.plan.steps)
        for step in self.plan.steps:
            parts: Any = settings_of(step.edit).get("edits", ())  # of a combination
            edits |= dict.fromkeys(part["edit"] for part in parts)
        photos = ["photos given as objects"] if isinstance(source, ObjectSource) else []
        return [*super().list_bound(), *photos, *(f"the edit '{name}'" for name in edits if is_of_process(name))]

    def uses_gpu(self) -> bool:
        """For models, to make pictures, or for edits that paint where memory cannot be shared with other processes."""
        paints_here = self.plan.paints_on_gpu and self._painter is None
        return paints_here or bool(self.plan.rendering) or super().uses_gpu()

    def engine(self, workers: int | None) -> Engine:
        """The default; where edits paint on a GPU, more of them, since they wait for it."""
        _ = self.plan.render_service  # opened before a fork: the workers ask this process
        if not self.plan.paints_on_gpu:
            return super().engine(workers)
        engine = super().engine(workers or min(4 * cores(), 4 * ROWS))
        return engine if self._painter is not None else LocalEngine(workers or min(4 * cores(), 4 * ROWS))

    def count_threads(self, processes: int) -> int:
        """Several where edits paint on a GPU: a photo is cut out and another one written while pictures wait for it."""
        return _PHOTOS_IN_HAND if self.plan.paints_on_gpu else 1


def _check_conservation(
    sample: Sample, planned: Sequence[Variant], outcome: Outcome, refused: Sequence[tuple[int, Skipped]]
) -> None:
    """Raises where a planned picture was neither made nor skipped with a reason; doubles may fail without one."""
    doubles = sum(variant.attribute in TOOL_CHECKS for variant in planned)
    lost = len(planned) - len(outcome.rendered) - len(refused)
    answered = {len(rows) for rows in outcome.predictions.values()} | {len(outcome.rendered)}
    if not 0 <= lost <= doubles or len(answered) > 1:
        raise RuntimeError(f"{sample.id}: {lost} of {len(planned)} planned pictures are lost, answers: {answered}")


def process_photos(work: PhotoWork, folder: Path) -> MergedTables:
    """Claim the folder, make what is missing there, write the tables."""
    plan = work.plan
    if plan.paints_on_gpu:
        check_gpu()
    _refuse_source_folder(folder, plan.config.source)
    with hold_folder(folder):
        _claim(work, folder)
        store = PartStore(folder / "work" / "parts")
        with work.share_fills(folder / "work" / "fills"):
            _make_parts(work, store, folder)
        refuse_missing(work.pieces, store, "run the same command to make them")
        with show_stage("writing the tables"):
            return write_merged_tables(folder, work.pieces, store)


def _refuse_source_folder(folder: Path, source: Source) -> None:
    """Refuse to write between the photos or masks: the next command would take the results for a class."""
    for kind, place in (("photos", source.images), ("masks", source.masks)):
        own = Path(place).resolve() if place and Path(place).is_dir() else None
        if own is not None and own in (folder.resolve(), *folder.resolve().parents):
            raise UserError(
                f"expected a folder of its own to write into, got '{folder}', which lies in the folder of {kind},"
                f" '{place}'; choose another --out"
            )


def _claim(work: PhotoWork, folder: Path, keep: bool = False) -> None:
    """Record the run and its plan in the folder; with `keep`, what is there stays and must be the same."""
    plan, earlier = work.plan, read_plan(folder)
    work.pieces = continue_plan(plan, work.pieces, earlier)
    grown = earlier is not None and len(work.pieces.layers) > 1
    record = {
        "limit": plan.config.limit, "listed": plan.listed, "identities": plan.identities, **asdict(plan.run)
    }  # fmt: skip
    claim_folder(folder, record, MAY_DIFFER | (_WITH_EDITS if grown else set()), MAY_GROW, keep)
    if not keep or earlier is None:
        work.pieces.write(folder, plan.samples)
    else:
        check_same_plan(work.pieces, earlier, folder)
    publish_plan(work.pieces, folder, keep)


def _make_parts(work: PhotoWork, store: PartStore, folder: Path) -> None:
    config = work.plan.config
    try:
        with work.share_painter():
            finish_work(work, store, config.execution, config.workers)
    finally:  # recorded however the run ends: questions to an endpoint cost money
        with wait_for_lock(folder / "work" / "usage.lock"):
            record_usage(folder, work.models)


def process_shard(config: RunConfig, folder: Path, make_work: Callable[[RunPlan], PhotoWork] | None = None) -> None:
    """Make the parts of one shard of a run; the first shard writes the plan, the others read it.

    Args:
        config: The run, with the shard in its `execution`.
        folder: The run's folder, which all shards share.
        make_work: Makes the work of the plan, where it also writes pictures.
    """
    _refuse_source_folder(folder, config.source)
    with hold_folder(folder, shared=True):
        with wait_for_lock(folder / "work" / "plan.lock"):
            earlier = read_plan(folder)
            listed = None if earlier is None else (read_samples(folder), earlier.listed_skipped)
            plan = prepare(config, listed)
            plan = try_other_setups(plan, folder) if plan.models else plan
            work = PhotoWork(plan) if make_work is None else make_work(plan)
            _claim(work, folder, keep=True)
        _make_parts(work, PartStore(folder / "work" / "parts"), folder)
