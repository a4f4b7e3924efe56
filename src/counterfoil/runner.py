"""The loop of `run`, from photos to predictions and tables. Read this file first.

    sources -> segmentation -> edits -> models -> (tables) -> statistics -> report

`run` makes a `RunConfig` and `execute` takes it from start to end: prepare, claim the folder, process every photo that
the journal lacks, write the tables, return the result. Each photo goes through `PhotoWork.process` on one of the
engine's threads: decoded once, masked, every variant rendered once, every model run, the pixels dropped. Finished
photos are in the journal, so a run that was killed can be resumed. The tables are written from the journal in
the order of the photos, so their bytes do not depend on the order of the work.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.errors import Unusable, UserError
from counterfoil.models.inference import Scoring, predict
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.setup_trials import STAGES, TrialPhoto, check_setups
from counterfoil.models.vlm import record_usage
from counterfoil.object_mask import hard_object
from counterfoil.painters.background_batches import ROWS, check_gpu
from counterfoil.progress import ItemProgress, show_stage
from counterfoil.resumable_work import Image, Observer, Outcome, ResumableWork, finish_work, work_key
from counterfoil.run_config import DoubtfulMasks, RunConfig, RunPlan, prepare, take_classes_in_turn
from counterfoil.run_result import Result
from counterfoil.segmentation import DEFAULT_SEGMENTER
from counterfoil.sources.pixels import hash_pixels
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.folder_lock import claim_folder
from counterfoil.store.journal import Journal
from counterfoil.store.mask_table import write_masks
from counterfoil.store.prediction_tables import RenderedVariant, ResultTables, ToolTrace, read_sanity
from counterfoil.study.thumbnails import ThumbnailCandidates
from counterfoil.types import TOOL_CHECKS, Engine, Picture, Provenance, Sample, Skipped, Source, Variant
from counterfoil.worker_pool import LocalEngine, cores

_NO_TRACE = ToolTrace()
_MAY_REPEAT = frozenset({"original", "control", "size"}) | TOOL_CHECKS  # attributes
PictureWriter: TypeAlias = Callable[[Variant, Picture], None]


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
    segmenter: str = DEFAULT_SEGMENTER,
    doubtful_masks: DoubtfulMasks = "leave-out",
) -> Result:
    """Edit every photo, run every model, and measure the drop in accuracy for each attribute.

    Args:
        images: Folder of class folders with photos, or FORMAT:PATH (`counterfoil list sources`).
        models: Addresses of models, such as "embedded:efficientnet-lite0" or "onnx:mine.onnx".
        masks: Parallel folder of masks; without it a small network finds the objects.
        recipe: A recipe by name, or a YAML file.
        out: Folder for the tables. A run that was killed is resumed; without a folder the tables are temporary.
        limit: Use at most this many photos, taken from the classes in turn.
        workers: Threads that work on photos; one per core where not given.
        batch_size: Pictures per call of a model.
        seed: Another seed draws other random edits.
        scoring: "all" lets every column of a model compete, "subset" only those of the photos' classes.
        classes: The photos' classes: a benchmark's by name, or a classes.json.
        options: How models are loaded.
        segmenter: The network that finds objects where there are no masks: "u2netp" or the larger "u2net".
        doubtful_masks: "leave-out" refuses edits that need a doubtful mask, "keep" makes them all the same.

    Returns:
        The result: drops with intervals, findings in sentences, and `report(folder)`.

    Raises:
        UserError: The input cannot be used; one line says what was expected, what was given and what to do.

    Example:
        >>> result = run("demo:", ["embedded:efficientnet-lite0"], limit=12)  # doctest: +SKIP
        >>> result.report("out")  # doctest: +SKIP
    """
    config = RunConfig(
        source=open_source(images, masks), models=tuple(models), recipe=recipe, limit=limit, workers=workers,
        batch_size=batch_size, seed=seed, options=options or ModelOptions(), classes=classes, scoring=scoring,
        segmenter=segmenter, doubtful_masks=doubtful_masks,
        command=f"counterfoil.run(images={str(images)!r}, models={list(models)!r}, recipe={recipe!r})",
    )  # fmt: skip
    return execute(config, Path(out) if out is not None else None)


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
    skipped = process_photos(PhotoWork(plan, observe=thumbnails.add), folder)
    return Result(plan, folder, tuple(skipped), temporary, thumbnails=thumbnails)


def try_other_setups(plan: RunPlan, folder: Path | None) -> RunPlan:
    """The plan with what other set-ups of its models give on a few photos; kept where the folder has it already."""
    source, earlier = plan.config.source, read_sanity(folder, plan.identities)
    photos = [
        TrialPhoto(sample.label, partial(_read_image, source, sample))
        for sample in take_classes_in_turn(plan.samples)[: STAGES[-1]]
    ]
    models = [model for model in plan.models if model.name not in earlier]
    with show_stage("checking how the models are set up"):
        return replace(plan, sanity={**earlier, **check_setups(models, photos)})


def _read_image(source: Source, sample: Sample) -> Image:
    return source.read(sample)[0]


class PhotoWork(ResumableWork[Sample]):
    """The photos of a plan; `write` is called with every picture, `observe` with pictures and their answers."""

    unit = "pictures"

    def __init__(self, plan: RunPlan, write: PictureWriter | None = None, observe: Observer | None = None) -> None:
        self.plan, self.models = plan, plan.models
        self.stage = "editing photos and asking models" if plan.models else "editing photos"
        with show_stage("planning the pictures"):
            self.items = {self._key(sample): sample for sample in plan.samples}
        self._write, self._observe = write, observe

    def _key(self, sample: Sample) -> str:
        variants = self.plan.variant_plans.of(sample).variants
        donors = [[donor.digest for donor in self.plan.renderer.candidates(variant)] for variant in variants]
        config, identities = self.plan.config, self.plan.identities
        found = [] if sample.mask is not None else [config.segmenter, config.doubtful_masks]
        return work_key(__version__, sample.id, [variant.id for variant in variants], donors, identities, *found)

    def size_of(self, item: Sample) -> int:
        """The number of pictures planned of a photo."""
        return len(self.plan.variant_plans.of(item).variants)

    def process(self, item: Sample, progress: ItemProgress) -> Outcome:
        """Render a photo's variants and run every model, batch by batch; failed variants are listed as skipped."""
        variants, unplanned = self.plan.variant_plans.take(item)
        try:
            self.plan.renderer.subject(item.id)
        except Unusable as error:
            return Outcome([], {}, [Skipped(item.id, "source", "", str(error))])
        verdict = self.plan.renderer.mask_verdict(item.id)
        outcome = Outcome([], {model.name: [] for model in self.models}, list(unplanned), verdict)
        batch_size = self.plan.config.batch_size
        for start in range(0, len(variants), batch_size):  # the pixels of one batch at a time
            pictures = self._render(item, variants[start : start + batch_size], outcome.skipped, progress)
            pictures = _add_measured(pictures, outcome, self.plan.renderer.trace)
            if self._write is not None:
                for variant, picture in pictures:
                    self._write(variant, picture)
            rendered, images = [variant for variant, _ in pictures], [picture.image for _, picture in pictures]
            for model in self.models:
                outcome.predictions[model.name] += predict(model, rendered, images, batch_size)
                progress.add(len(images) * self._share)
            if self._observe is not None:
                outcome.show_last(images, self._observe)
        return outcome

    @property
    def _share(self) -> float:
        """What making a picture, and each model's answer to it, count for: together one picture."""
        return 1 / (1 + len(self.models))

    def _render(
        self, sample: Sample, variants: Sequence[Variant], skipped: list[Skipped], progress: ItemProgress
    ) -> list[tuple[Variant, Picture]]:
        """The variants that can be rendered, with the choices made for them; the others are added to `skipped`."""
        pictures = []
        for planned in variants:
            try:
                pictures.append(self.plan.renderer.make(planned))
            except Unusable as error:
                if planned.attribute not in TOOL_CHECKS:  # a double is no picture of its own
                    skipped.append(Skipped(sample.id, "edit", planned.edit, str(error)))
            progress.add(self._share)
        return pictures

    def image_of(self, variant: Variant) -> Image:
        """The variant rendered again."""
        return self.plan.renderer.render(variant).image

    def engine(self, workers: int | None) -> Engine:
        """Threads where edits paint on a GPU, which a forked process cannot use; else the default."""
        if self.plan.paints_on_gpu:
            return LocalEngine(workers or min(4 * cores(), 2 * ROWS))
        return super().engine(workers)


def _add_measured(
    pictures: list[tuple[Variant, Picture]], outcome: Outcome, trace: Callable[[Variant], ToolTrace]
) -> list[tuple[Variant, Picture]]:
    """Add the pictures to the outcome; those whose pixels the same edit made before are skipped, and not returned."""
    kept = []
    for variant, picture in pictures:
        made = measure(variant, picture, trace(variant))
        same = [other.variant for other in outcome.rendered if made.sha256 == other.sha256]
        if any(_repeats(variant, other) for other in same):
            reason = f"replicate {variant.replicate + 1} has the same pixels as another, and counts once"
            outcome.skipped.append(Skipped(str(variant.sample_id), "edit", variant.edit, reason))
            continue
        if levels := [other.level for other in same if _is_same_edit(variant, other)]:
            reason = f"level {variant.level} has the same pixels as level {levels[0]}, and counts once"
            outcome.skipped.append(Skipped(str(variant.sample_id), "edit", variant.edit, reason))
            continue
        outcome.rendered.append(made)
        kept.append((variant, picture))
    return kept


def _repeats(variant: Variant, other: Variant) -> bool:
    """Whether two variants are replicates of one condition."""
    return variant.replicate > 0 and all(
        (variant.attribute == other.attribute, variant.edit == other.edit, variant.level == other.level)
    )


def _is_same_edit(variant: Variant, other: Variant) -> bool:
    """Whether two variants are one edit at two levels, where equal pixels mean that one of them says nothing."""
    may_repeat = variant.attribute in _MAY_REPEAT  # an object may have the size that two levels ask for
    return not may_repeat and (variant.attribute, variant.edit) == (other.attribute, other.edit)


def process_photos(work: PhotoWork, folder: Path) -> list[Skipped]:
    """Claim the folder, process what is missing there, write the tables; returns what was skipped."""
    plan = work.plan
    if plan.paints_on_gpu:
        check_gpu()
    claim_folder(folder, {"limit": plan.config.limit, "identities": plan.identities, **asdict(plan.run)})
    with Journal(folder / "work" / "journal.jsonl") as journal:
        try:
            finish_work(work, journal, plan.config.workers)
        finally:
            record_usage(folder, plan.models)  # recorded however the run ends: questions to an endpoint cost money
        with show_stage("writing the tables"):
            return _write_tables(work, journal, folder)


def _write_tables(work: PhotoWork, journal: Journal, folder: Path) -> list[Skipped]:
    """Write the tables in the order of the photos; returns everything that was skipped."""
    plan, skipped, verdicts = work.plan, list(work.plan.skipped), []
    with ResultTables(folder, plan.model_names, plan.recipe.working_size) as tables:
        for key, sample in work.items.items():
            outcome = Outcome.from_entry(journal.entry(key))
            skipped += outcome.skipped
            verdicts += [outcome.mask] if outcome.mask is not None else []
            for place, rendered in enumerate(outcome.rendered):
                donor_id = rendered.variant.donor_id
                donor = plan.renderer.samples[donor_id].provenance if donor_id else Provenance()
                tables.add_variant(sample, rendered, donor)
                for model, predictions in outcome.predictions.items():
                    tables.add_prediction(model, rendered, predictions[place])
    write_masks(folder, verdicts)
    return skipped


def measure(variant: Variant, picture: Picture, tool: ToolTrace = _NO_TRACE) -> RenderedVariant:
    """The hash of a picture's pixels, and the object's share of the picture and centre."""
    covered = hard_object(picture.alpha)
    centre_x, centre_y = (_centre(covered.sum(axis=axis)) for axis in (0, 1))
    return RenderedVariant(variant, hash_pixels(picture.image), 100 * float(covered.mean()), centre_x, centre_y, tool)


def _centre(counts: NDArray[np.int_]) -> float:
    """The centre of the object along one side, as a share of that side; NaN without an object."""
    if not counts.any():
        return math.nan
    return float((counts @ (np.arange(len(counts)) + 0.5)) / counts.sum() / len(counts))
