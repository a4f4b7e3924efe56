"""CPU time of the default recipe, relative to the inference on its pictures."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.models.model_loaders import load_model
from counterfoil.recipes.edit_recipe import Step, load_recipe
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.types import Picture

PHOTOS = 8
SIDE = 400
INFERENCES = 3  # that a variant may cost
ONCE = "cut out and filled, once per photo"


def cost_of_attributes() -> str:
    """The recipe's CPU time in inferences of EfficientNet-Lite0 per variant, and where it goes."""
    pictures = _pictures()
    edits = [edit_named(step.edit, settings) for step in _steps() for settings in step.all_settings]
    spent, variants = _spent(pictures, edits)
    inference = _seconds_per_inference([picture.image for picture in pictures])
    total = sum(spent.values())
    lines = [
        f"recipe attributes on {len(pictures)} photos of {SIDE} x {SIDE}, {variants} variants, in CPU time:"
        f" {total / variants / inference:.2f} inferences of EfficientNet-Lite0 per variant (wanted below {INFERENCES})",
        *(f"  {100 * part / total:5.1f} %  {name}" for name, part in sorted(spent.items(), key=lambda row: -row[1])),
    ]
    return "\n".join(lines)


def _steps() -> list[Step]:
    return [step for step in load_recipe("attributes").edits if step.needs is None]


def _pictures() -> list[Picture]:
    """The first demo photos of the wanted size, whose object leaves some background."""
    source, found = DemoSource(), []
    for sample in source.samples()[0]:
        image, mask = source.read(sample)
        if mask is not None and image.shape[:2] == (SIDE, SIDE) and (mask > 127).mean() < 0.6:
            found.append(Picture(image, mask))
        if len(found) == PHOTOS:
            break
    return found


def _spent(pictures: Sequence[Picture], edits: Sequence[Edit]) -> tuple[dict[str, float], int]:
    """CPU seconds by part, and how many variants were made; nothing of a photo is worked out before."""
    spent: dict[str, float] = defaultdict(float)
    variants = 0
    for pair in zip(pictures, [*pictures[1:], pictures[0]], strict=True):
        start = time.process_time()
        subject, donor = (Subject(picture) for picture in pair)
        for one in (subject, donor):
            one.check_object()
            one.once(lambda each: each.background)
        spent[ONCE] += time.process_time() - start
        for edit in edits:
            start = time.process_time()
            variants += _made(edit, subject, donor)
            spent[type(edit).__name__] += time.process_time() - start
    return spent, variants


def _made(edit: Edit, subject: Subject, donor: Subject) -> bool:
    try:
        edit.apply(subject, np.random.default_rng(0), Supplied(donors=(donor,)))
    except Unusable:
        return False
    return True


def _seconds_per_inference(images: Sequence[NDArray[np.uint8]]) -> float:
    """Preprocessing and network, in a batch, warm."""
    model = load_model("embedded:efficientnet-lite0")
    model(images)
    start = time.process_time()
    for _ in range(3):
        model(images)
    return (time.process_time() - start) / (3 * len(images))
