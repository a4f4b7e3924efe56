"""What a painting was asked to do, checked at the door."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.labels import LabelSpace, space_named
from counterfoil.paint.address import load_painter
from counterfoil.paint.painter import Painted, Painter, PaintOptions, Refusal, Wish
from counterfoil.pipeline.job import segmenter_for, source_at
from counterfoil.pipeline.lost_classes import lost_classes
from counterfoil.pipeline.painting_plan import Order, PaintingPlan, Selection
from counterfoil.pipeline.studio import Studio
from counterfoil.recipes.painting import Painting, load_painting
from counterfoil.types import Picture, Sample, Skipped


@dataclass(frozen=True)
class PaintJob:
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
class ReadyPainting:
    """A job whose parts were loaded and checked."""

    job: PaintJob
    painting: Painting
    painter: Painter
    orders: tuple[Order, ...]
    studio: Studio | None  # where backgrounds are painted around photos
    skipped: tuple[Skipped, ...]

    def wish(self, order: Order) -> Wish | None:
        """What to ask the painter; None where the photo itself is meant or cannot be used."""
        if order.prompt is None:
            return None
        negative = json.loads(order.variant.settings)["negative"]
        if self.studio is None:
            return Wish(order.prompt, negative, order.variant.seed)
        try:
            return Wish(order.prompt, negative, order.variant.seed, self.studio.subject(order.sample.id).picture)
        except Unusable:
            return None

    def painted(self, orders: Sequence[Order]) -> list[Painted]:
        """What the painter gives for each order; for those without a wish the photo, or why it cannot be used."""
        wishes = [self.wish(order) for order in orders]
        asked = [wish for wish in wishes if wish is not None]
        answers = iter(self.painter.paint(asked) if asked else [])
        return [
            self._photo(order) if wish is None else next(answers) for order, wish in zip(orders, wishes, strict=True)
        ]

    def _photo(self, order: Order) -> Painted:
        assert self.studio is not None
        try:
            return self.studio.subject(order.sample.id).photo.image
        except Unusable as error:
            return Refusal(str(error))

    def with_object(self, order: Order, image: NDArray[np.uint8]) -> Picture:
        """Around a photo's object its own pixels stand; a whole picture has no object that is known."""
        if self.studio is None:
            return Picture(image, np.zeros(image.shape[:2], np.uint8))
        subject = self.studio.subject(order.sample.id)
        return subject.photo if order.prompt is None else subject.on_background(image)


def prepared_painting(job: PaintJob) -> ReadyPainting:
    """Load recipe, photos and painter; everything that can be wrong is said here."""
    painting = load_painting(job.recipe)
    space = space_named(painting.classes)
    negative = painting.negative if job.negative is None else job.negative
    unpainted = PaintingPlan(painting, space, job.selection, {}, negative, job.seed)
    unpainted.check()  # before a model of gigabytes is fetched
    photos, skipped, studio = _photos(job, painting, space)
    painter = load_painter(job.painter, painting.paints, job.options)
    orders = replace(unpainted, painter=painter.settings).orders(photos)
    if not orders:
        raise UserError(f"expected pictures to paint, but nothing of {painting.name} is selected")
    for prompt in dict.fromkeys(order.prompt for order in orders if order.prompt is not None):
        painter.check_prompt(prompt)
    return ReadyPainting(job, painting, painter, tuple(orders), studio, skipped)


def _photos(
    job: PaintJob, painting: Painting, space: LabelSpace
) -> tuple[list[Sample], tuple[Skipped, ...], Studio | None]:
    """The photos that backgrounds are painted around."""
    if painting.paints == "pictures":
        return [], (), None
    if job.images is None:
        raise UserError(f"expected --images: {painting.name} paints backgrounds around the objects of photos")
    source = source_at(job.images, job.masks)
    found, skipped = source.samples()
    for label in lost_classes(source, found, skipped):
        space.resolve(label)
    samples = [replace(sample, label=space.resolve(sample.label)) for sample in found]
    studio = Studio(source, {sample.id: sample for sample in samples}, painting.working_size, segmenter_for(samples))
    return samples, tuple(skipped), studio
