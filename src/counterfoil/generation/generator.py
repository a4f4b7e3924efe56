"""Generation of pictures from a prompt recipe into a workspace; resumable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.builder import encode_png
from counterfoil.errors import Unusable, UserError
from counterfoil.execution import Execution
from counterfoil.generation.prompt_plan import PlannedPrompt, PromptPlan, Selection
from counterfoil.generation.quality_control import read_removals
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import LabelSpace
from counterfoil.machine import describe_machine
from counterfoil.object_mask import object_share
from counterfoil.painters.painter_loaders import load_painter
from counterfoil.painters.painter_protocol import Painted, Painter, PaintOptions, PaintRefused, PaintRequest
from counterfoil.progress import Extent, show_progress, show_stage
from counterfoil.ray_engine import RayEngine
from counterfoil.recipes.prompt_recipe import PromptRecipe, load_prompt_recipe
from counterfoil.report.csv_tables import skipped_to_csv
from counterfoil.run_config import environment, find_empty_classes
from counterfoil.segmentation import make_segmenter
from counterfoil.sources.pixels import hash_pixels
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_lock import MAY_DIFFER, claim_folder, hold_folder
from counterfoil.store.folder_mirror import is_mirrored, join_mirrors, list_addresses, put_file
from counterfoil.store.merged_tables import RowGroups
from counterfoil.store.parquet import read_table
from counterfoil.store.parts import PartStore
from counterfoil.store.prediction_tables import MANIFEST_COLUMNS, RenderedVariant, manifest_row
from counterfoil.store.run_checksums import record_checksums
from counterfoil.store.workspace import locate_picture
from counterfoil.types import Picture, Provenance, Run, Sample, Skipped, Source, Variant
from counterfoil.variant_renderer import Renderer
from counterfoil.worker_pool import ItemFailure


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """The whole configuration of a generation."""

    recipe: str
    painter: str
    selection: Selection = field(default_factory=Selection)
    options: PaintOptions = field(default_factory=PaintOptions)
    negative: str | None = None  # replaces the recipe's
    seed: int = 0
    images: str | Path | None = None
    masks: str | Path | None = None
    command: str = ""
    execution: Execution = field(default_factory=Execution)  # who paints the batches


@dataclass(frozen=True)
class GenerationPlan:
    """A configuration with its recipe, photos and painter, loaded and checked."""

    config: GenerationConfig
    recipe: PromptRecipe
    painter: Painter
    prompts: tuple[PlannedPrompt, ...]
    renderer: Renderer | None  # where backgrounds are painted around photos
    skipped: tuple[Skipped, ...]

    def request(self, planned: PlannedPrompt) -> PaintRequest | None:
        """The request to the painter; None where the photo itself is used or is unusable."""
        if planned.prompt is None:
            return None
        negative = json.loads(planned.variant.settings)["negative"]
        if self.renderer is None:
            return PaintRequest(planned.prompt, negative, planned.variant.seed)
        try:
            return PaintRequest(
                planned.prompt, negative, planned.variant.seed, self.renderer.subject(planned.sample.id).picture
            )
        except Unusable:
            return None

    def paint(self, prompts: Sequence[PlannedPrompt]) -> list[Painted]:
        """Paint each prompt; without a request, return the photo or the reason why it cannot be used."""
        requests = [self.request(planned) for planned in prompts]
        given = [request for request in requests if request is not None]
        painted = iter(self.painter.paint(given) if given else [])
        pairs = zip(prompts, requests, strict=True)
        return [self._read_photo(planned) if request is None else next(painted) for planned, request in pairs]

    def _read_photo(self, planned: PlannedPrompt) -> Painted:
        assert self.renderer is not None
        try:
            return self.renderer.subject(planned.sample.id).photo.image
        except Unusable as error:
            return PaintRefused(str(error))

    def with_object(self, planned: PlannedPrompt, image: NDArray[np.uint8]) -> Picture:
        """The picture with the photo's own object pasted back; whole pictures have no known object."""
        if self.renderer is None:
            return Picture(image, np.zeros(image.shape[:2], np.uint8))
        subject = self.renderer.subject(planned.sample.id)
        return subject.photo if planned.prompt is None else subject.on_background(image)


def prepare_generation(config: GenerationConfig) -> GenerationPlan:
    """Load recipe, photos and painter; raises `UserError` where one of them is wrong."""
    recipe = load_prompt_recipe(config.recipe)
    space = load_label_space(recipe.classes)
    negative = recipe.negative if config.negative is None else config.negative
    unpainted = PromptPlan(recipe, space, config.selection, {}, negative, config.seed)
    unpainted.check()  # before a model of gigabytes is downloaded
    photos, skipped, renderer = _list_photos(config, recipe, space)
    with show_stage(f"loading {config.painter}"):
        painter = load_painter(config.painter, recipe.paints, config.options)
    prompts = replace(unpainted, painter=painter.settings).plan_prompts(photos)
    if not prompts:
        raise UserError(f"expected pictures to paint, but nothing of {recipe.name} is selected")
    for prompt in dict.fromkeys(planned.prompt for planned in prompts if planned.prompt is not None):
        painter.check_prompt(prompt)
    return GenerationPlan(config, recipe, painter, tuple(prompts), renderer, skipped)


def _list_photos(
    config: GenerationConfig, recipe: PromptRecipe, space: LabelSpace
) -> tuple[list[Sample], tuple[Skipped, ...], Renderer | None]:
    """The photos that backgrounds are painted around."""
    if recipe.paints == "pictures":
        return [], (), None
    if config.images is None:
        raise UserError(f"expected --images: {recipe.name} paints backgrounds around the objects of photos")
    source = open_source(config.images, config.masks)
    with show_stage("listing the photos"):
        photos, skipped = source.samples()
    empty = find_empty_classes(source, photos, skipped)
    label_of = space.resolve_all([*empty, *(sample.label for sample in photos)])
    samples = [replace(sample, label=label_of[sample.label]) for sample in photos]
    return samples, tuple(skipped), _make_renderer(source, samples, recipe)


def _make_renderer(source: Source, samples: Sequence[Sample], recipe: PromptRecipe) -> Renderer:
    return Renderer(
        source=source,
        samples={sample.id: sample for sample in samples},
        working_size=recipe.working_size,
        segmenter=make_segmenter(samples),
    )


@dataclass(frozen=True)
class GenerationResult:
    """What a workspace holds after generation."""

    planned: int
    pictures: int
    skipped: tuple[Skipped, ...]


def generate_pictures(config: GenerationConfig, out: Path) -> GenerationResult:
    """Paint the missing pictures, and write the manifest of all that were requested; of a shard no manifest."""
    plan = prepare_generation(config)
    with hold_folder(out, shared=config.execution.shard is not None):
        _claim_folder(plan, out)
        store = PartStore(out / "work" / "parts")
        there = store.names()
        own = _take_own(plan.prompts, config)
        missing = [planned for planned in own if not _is_done(planned, store, there, out)]
        _check_time(plan, missing)
        total = len(own)
        extent = Extent(stage="painting", unit="pictures", total=total, done=total - len(missing))
        for _ in show_progress(_paint_missing(BatchPainter(plan, store, out), missing), extent):
            pass
        if config.execution.shard is not None:
            return GenerationResult(total, total, ())
        skipped = _write_tables(plan, store, out)
    write_atomically(out / "skipped.csv", skipped_to_csv([*plan.skipped, *skipped]))
    record_checksums(out)
    made = len(read_table(out / "variants.parquet", ["id"])["id"])
    if made + len(skipped) != total:
        raise RuntimeError(f"{out}: of {total} planned pictures {made} are in the manifest, {len(skipped)} skipped")
    return GenerationResult(total, made, (*plan.skipped, *skipped))


def _take_own(prompts: Sequence[PlannedPrompt], config: GenerationConfig) -> list[PlannedPrompt]:
    """The prompts of this shard, in whole batches; all of them without one."""
    size, shard = config.options.batch_size, config.execution.shard
    return [planned for place, planned in enumerate(prompts) if shard is None or shard.takes(place // size)]


def _claim_folder(plan: GenerationPlan, out: Path) -> None:
    """Claim the folder for this configuration: pictures of different painters or seeds must not mix."""
    config = plan.config
    run = Run(
        command=config.command,
        images=str(config.images or ""),
        masks=str(config.masks) if config.masks else None,
        recipe=config.recipe,
        recipe_digest=plan.recipe.digest,
        seed=config.seed,
        samples=len({planned.sample.id for planned in plan.prompts}),
        models=(),
        model_digests={},
        preprocessing={},
        environment={**environment(), **plan.painter.environment},
    )
    identity = {**asdict(run), "painter": dict(plan.painter.settings), "classes": plan.recipe.classes}
    claim_folder(out, {**identity, "selection": asdict(config.selection)}, MAY_DIFFER | {"selection"})


def _is_done(planned: PlannedPrompt, store: PartStore, there: set[str], out: Path) -> bool:
    """Whether a picture was painted or refused: its part is there, and its file."""
    name = planned.variant.id
    if name not in there:
        return False
    # at an address a picture that was put stays; here somebody may have removed it
    return is_mirrored(out) or _file(planned.variant, out).is_file() or "refused" in store.about(name)


def _check_time(plan: GenerationPlan, missing: Sequence[PlannedPrompt]) -> None:
    """Let the painter refuse, before it starts, work that would take days on a CPU."""
    prompts = [planned for planned in missing if planned.prompt is not None]
    request = next((request for planned in prompts if (request := plan.request(planned)) is not None), None)
    if request is not None:
        plan.painter.check_time(request, len(prompts))


class BatchPainter:
    """Paints a batch and writes its pictures, here or on another machine, where the painter is loaded again."""

    def __init__(self, plan: GenerationPlan, store: PartStore, out: Path) -> None:
        self.plan, self._store, self._out = plan, store, out

    def __call__(self, batch: Sequence[PlannedPrompt]) -> int:
        """Paint the batch; a picture is written before its part. Returns how many there are."""
        with ThreadPoolExecutor() as writers:
            write = partial(_write_picture, self.plan, (self._store, self._out))
            return len(list(writers.map(write, batch, self.plan.paint(batch))))

    def __reduce__(self) -> tuple[Any, ...]:
        plan = self.plan
        photos = None if plan.renderer is None else (plan.renderer.source, tuple(plan.renderer.samples.values()))
        return _load_batch_painter, (plan.config, photos, self._store, self._out, list_addresses())


def _load_batch_painter(
    config: GenerationConfig, photos: tuple[Source, Sequence[Sample]] | None, store: PartStore, out: Path,
    mirrors: dict[Path, str],
) -> BatchPainter:  # fmt: skip
    join_mirrors(mirrors)
    recipe = load_prompt_recipe(config.recipe)
    painter = load_painter(config.painter, recipe.paints, config.options)
    renderer = None if photos is None else _make_renderer(*photos, recipe)
    return BatchPainter(GenerationPlan(config, recipe, painter, (), renderer, ()), store, out)


def _paint_missing(painter: BatchPainter, prompts: Sequence[PlannedPrompt]) -> Iterator[None]:
    """Paint batch by batch, here or on a Ray cluster; something is yielded for each picture."""
    config = painter.plan.config
    batches = [
        prompts[start : start + config.options.batch_size]
        for start in range(0, len(prompts), config.options.batch_size)
    ]
    if config.execution.ray_address is None:
        for batch in batches:
            yield from [None] * painter(batch)
        return
    on_gpu = "cuda" in painter.plan.painter.environment.get("device", "")
    engine = RayEngine(config.execution.ray_address, gpu=on_gpu)
    outcomes: Iterator[int | ItemFailure] = engine.map(painter, batches)
    failures: list[ItemFailure] = []
    for outcome in outcomes:
        if isinstance(outcome, ItemFailure):
            failures.append(outcome)
        else:
            yield from [None] * outcome
    if failures:
        raise UserError(
            f"expected every batch to be painted, {len(failures)} of {len(batches)} failed, the others are done:"
            f" {failures[0].reason}; run the same command again"
        )


def _write_picture(
    plan: GenerationPlan, places: tuple[PartStore, Path], planned: PlannedPrompt, image: Painted
) -> None:
    """Write a picture, and the part with its row of the manifest."""
    store, out = places
    try:
        if isinstance(image, PaintRefused):
            raise Unusable(image.reason)
        picture = plan.with_object(planned, image)
    except Unusable as error:
        store.write(planned.variant.id, MANIFEST_COLUMNS, [], {"refused": str(error)})
        return
    made_with = plan.painter.environment if planned.prompt is not None else {}
    settings = json.dumps({**json.loads(planned.variant.settings), **made_with}, sort_keys=True)
    variant = replace(planned.variant, settings=settings)
    put_file(write_atomically(_file(variant, out), encode_png(picture)))
    share = float("nan") if plan.renderer is None else 100 * object_share(picture.alpha)
    rendered = RenderedVariant(variant, hash_pixels(picture.image), share)
    row = manifest_row(planned.sample, rendered, Provenance(), plan.recipe.working_size)
    store.write(planned.variant.id, MANIFEST_COLUMNS, [row], {"machine": describe_machine()})


def _file(variant: Variant, out: Path) -> Path:
    return out / "pictures" / locate_picture(variant)


def _write_tables(plan: GenerationPlan, store: PartStore, out: Path) -> list[Skipped]:
    """Write the manifest and return what it leaves out: refused, without counterpart, removed by quality control."""
    skipped: list[Skipped] = []
    removed, lost = read_removals(out), _find_orphans(plan.prompts, store)
    with RowGroups(out / "variants.parquet", MANIFEST_COLUMNS) as manifest:
        for planned in plan.prompts:
            part = store.read(planned.variant.id)
            reason = part.about.get("refused") or lost.get(planned.sample.id) or removed.get(planned.variant.id)
            if reason:
                skipped.append(Skipped(planned.sample.id, "edit", planned.variant.edit, reason))
            else:
                manifest.add(part.table)
    return skipped


def _find_orphans(prompts: Sequence[PlannedPrompt], store: PartStore) -> dict[str, str]:
    """The samples whose original is missing, with the reason: their pictures have no counterpart."""
    originals = (planned for planned in prompts if planned.variant.attribute == "original")
    refused = {planned.sample.id: store.about(planned.variant.id).get("refused") for planned in originals}
    return {name: f"its counterpart is missing: {reason}" for name, reason in refused.items() if reason}
