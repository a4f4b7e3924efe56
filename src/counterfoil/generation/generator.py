"""Prompts to a workspace, with resume; generation configuration checked at the door."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.builder import encode_png
from counterfoil.errors import Unusable, UserError
from counterfoil.generation.prompt_plan import PlannedPrompt, PromptPlan, Selection
from counterfoil.generation.quality_control import removed_before
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import LabelSpace
from counterfoil.painters.painter_loaders import load_painter
from counterfoil.painters.painter_protocol import Painted, Painter, PaintOptions, PaintRefused, PaintRequest
from counterfoil.progress import Extent, show_progress
from counterfoil.recipes.prompt_recipe import PromptRecipe, load_prompt_recipe
from counterfoil.rendering import Renderer
from counterfoil.report.csv_tables import skipped_to_csv
from counterfoil.run_config import environment, find_empty_classes
from counterfoil.segmentation import segmenter_for
from counterfoil.sources.pixels import hash_pixels
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_lock import MAY_DIFFER, claim_folder
from counterfoil.store.journal import Journal
from counterfoil.store.prediction_tables import RenderedVariant, ResultTables
from counterfoil.store.workspace import locate_picture
from counterfoil.types import Picture, Run, Sample, Skipped, Variant


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """The whole configuration of `paint`."""

    recipe: str
    painter: str
    selection: Selection = field(default_factory=Selection)
    options: PaintOptions = field(default_factory=PaintOptions)
    negative: str | None = None  # in place of the recipe's
    seed: int = 0
    images: Path | None = None
    masks: Path | None = None
    command: str = ""


@dataclass(frozen=True)
class GenerationPlan:
    """A job whose parts were loaded and checked."""

    job: GenerationConfig
    painting: PromptRecipe
    painter: Painter
    orders: tuple[PlannedPrompt, ...]
    studio: Renderer | None  # where backgrounds are painted around photos
    skipped: tuple[Skipped, ...]

    def wish(self, order: PlannedPrompt) -> PaintRequest | None:
        """What to ask the painter; None where the photo itself is meant or cannot be used."""
        if order.prompt is None:
            return None
        negative = json.loads(order.variant.settings)["negative"]
        if self.studio is None:
            return PaintRequest(order.prompt, negative, order.variant.seed)
        try:
            return PaintRequest(
                order.prompt, negative, order.variant.seed, self.studio.subject(order.sample.id).picture
            )
        except Unusable:
            return None

    def painted(self, orders: Sequence[PlannedPrompt]) -> list[Painted]:
        """What the painter gives for each order; for those without a wish the photo, or why it cannot be used."""
        wishes = [self.wish(order) for order in orders]
        asked = [wish for wish in wishes if wish is not None]
        answers = iter(self.painter.paint(asked) if asked else [])
        return [
            self._photo(order) if wish is None else next(answers) for order, wish in zip(orders, wishes, strict=True)
        ]

    def _photo(self, order: PlannedPrompt) -> Painted:
        assert self.studio is not None
        try:
            return self.studio.subject(order.sample.id).photo.image
        except Unusable as error:
            return PaintRefused(str(error))

    def with_object(self, order: PlannedPrompt, image: NDArray[np.uint8]) -> Picture:
        """Around a photo's object its own pixels stand; a whole picture has no object that is known."""
        if self.studio is None:
            return Picture(image, np.zeros(image.shape[:2], np.uint8))
        subject = self.studio.subject(order.sample.id)
        return subject.photo if order.prompt is None else subject.on_background(image)


def prepare_generation(job: GenerationConfig) -> GenerationPlan:
    """Load recipe, photos and painter; everything that can be wrong is said here."""
    painting = load_prompt_recipe(job.recipe)
    space = load_label_space(painting.classes)
    negative = painting.negative if job.negative is None else job.negative
    unpainted = PromptPlan(painting, space, job.selection, {}, negative, job.seed)
    unpainted.check()  # before a model of gigabytes is fetched
    photos, skipped, studio = _photos(job, painting, space)
    painter = load_painter(job.painter, painting.paints, job.options)
    orders = replace(unpainted, painter=painter.settings).orders(photos)
    if not orders:
        raise UserError(f"expected pictures to paint, but nothing of {painting.name} is selected")
    for prompt in dict.fromkeys(order.prompt for order in orders if order.prompt is not None):
        painter.check_prompt(prompt)
    return GenerationPlan(job, painting, painter, tuple(orders), studio, skipped)


def _photos(
    job: GenerationConfig, painting: PromptRecipe, space: LabelSpace
) -> tuple[list[Sample], tuple[Skipped, ...], Renderer | None]:
    """The photos that backgrounds are painted around."""
    if painting.paints == "pictures":
        return [], (), None
    if job.images is None:
        raise UserError(f"expected --images: {painting.name} paints backgrounds around the objects of photos")
    source = open_source(job.images, job.masks)
    found, skipped = source.samples()
    for label in find_empty_classes(source, found, skipped):
        space.resolve(label)
    samples = [replace(sample, label=space.resolve(sample.label)) for sample in found]
    studio = Renderer(
        source=source,
        samples={sample.id: sample for sample in samples},
        working_size=painting.working_size,
        segmenter=segmenter_for(samples),
    )
    return samples, tuple(skipped), studio


@dataclass(frozen=True)
class GenerationResult:
    """What a workspace holds after painting."""

    pictures: int
    skipped: tuple[Skipped, ...]


def generate_pictures(job: GenerationConfig, out: Path) -> GenerationResult:
    """Paint what is not painted yet, and write the manifest of everything that was asked for."""
    ready = prepare_generation(job)
    _claim(ready, out)
    with Journal(out / "work" / "journal.jsonl") as journal:
        missing = [order for order in ready.orders if not _is_done(order, journal, out)]
        _check_time(ready, missing)
        done, total = len(ready.orders) - len(missing), len(ready.orders)
        for name, entry in show_progress(_painted(ready, missing, out), Extent(done, total, " pictures")):
            journal.add(name, entry)
        entries = {order.variant.id: journal.entry(order.variant.id) for order in ready.orders}
    skipped = _tables(ready, entries, out)
    write_atomically(out / "skipped.csv", skipped_to_csv([*ready.skipped, *skipped]))
    return GenerationResult(total - len(skipped), (*ready.skipped, *skipped))


def _claim(ready: GenerationPlan, out: Path) -> None:
    """Mark the folder as this job's; another painter's or another seed's pictures do not mix with these."""
    job = ready.job
    run = Run(
        command=job.command,
        images=str(job.images or ""),
        masks=str(job.masks) if job.masks else None,
        recipe=job.recipe,
        recipe_digest=ready.painting.digest,
        seed=job.seed,
        samples=len({order.sample.id for order in ready.orders}),
        models=(),
        model_digests={},
        preprocessing={},
        environment={**environment(), **ready.painter.environment},
    )
    asked = {**asdict(run), "painter": dict(ready.painter.settings), "classes": ready.painting.classes}
    claim_folder(out, {**asked, "selection": asdict(job.selection)}, MAY_DIFFER | {"selection"})


def _is_done(order: PlannedPrompt, journal: Journal, out: Path) -> bool:
    if order.variant.id not in journal:
        return False
    return "refused" in journal.entry(order.variant.id) or _file(order.variant, out).is_file()


def _check_time(ready: GenerationPlan, missing: Sequence[PlannedPrompt]) -> None:
    """A large model on a CPU would take days: that is said before it begins."""
    asked = [order for order in missing if order.prompt is not None]
    wish = next((wish for order in asked if (wish := ready.wish(order)) is not None), None)
    if wish is not None:
        ready.painter.check_time(wish, len(asked))


def _painted(ready: GenerationPlan, orders: Sequence[PlannedPrompt], out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Paint batch by batch; pictures lie in their files before the journal says so."""
    size = ready.job.options.batch_size
    with ThreadPoolExecutor() as writers:
        for start in range(0, len(orders), size):
            batch = orders[start : start + size]
            entries = writers.map(partial(_kept, ready, out), batch, ready.painted(batch))
            yield from zip((order.variant.id for order in batch), entries, strict=True)


def _kept(ready: GenerationPlan, out: Path, order: PlannedPrompt, image: Painted) -> dict[str, Any]:
    """Write a picture; gives back its entry of the journal."""
    if isinstance(image, PaintRefused):
        return {"refused": image.reason}
    try:
        picture = ready.with_object(order, image)
    except Unusable as error:
        return {"refused": str(error)}
    made_with = ready.painter.environment if order.prompt is not None else {}
    settings = json.dumps({**json.loads(order.variant.settings), **made_with}, sort_keys=True)
    variant = replace(order.variant, settings=settings)
    write_atomically(_file(variant, out), encode_png(picture))
    share = float("nan") if ready.studio is None else 100 * float((picture.alpha >= 128).mean())
    return {"variant": asdict(variant), "sha256": hash_pixels(picture.image), "object_share": share}


def _file(variant: Variant, out: Path) -> Path:
    return out / "pictures" / locate_picture(variant)


def _tables(ready: GenerationPlan, entries: Mapping[str, dict[str, Any]], out: Path) -> list[Skipped]:
    """Write the manifest; gives back what is not in it: refused, without counterpart, removed by quality control."""
    skipped: list[Skipped] = []
    removed, lost = removed_before(out), _lost(ready.orders, entries)
    with ResultTables(out, (), ready.painting.working_size) as tables:
        for order in ready.orders:
            entry = entries[order.variant.id]
            reason = entry.get("refused") or lost.get(order.sample.id) or removed.get(order.variant.id)
            if reason:
                skipped.append(Skipped(order.sample.id, "edit", order.variant.edit, reason))
                continue
            tables.add_variant(
                order.sample, RenderedVariant(Variant(**entry["variant"]), entry["sha256"], entry["object_share"])
            )
    return skipped


def _lost(orders: Sequence[PlannedPrompt], entries: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """The samples whose original is missing, with the reason: their pictures have nothing to be compared with."""
    originals = (order for order in orders if order.variant.attribute == "original")
    refused = {order.sample.id: entries[order.variant.id].get("refused") for order in originals}
    return {name: f"its counterpart is missing: {reason}" for name, reason in refused.items() if reason}
