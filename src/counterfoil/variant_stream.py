"""The variants of photos for Python: one after another as pictures, or written into a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.builder import build_pictures
from counterfoil.errors import Unusable, expect_path
from counterfoil.execution import Execution
from counterfoil.labels.label_space import list_class_names
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.run_config import DoubtfulMasks, RunPlan, check_counts, limit_per_class, prepare
from counterfoil.run_request import make_run_config
from counterfoil.segmentation import DEFAULT_SEGMENTER
from counterfoil.sources.judged_split import leave_out_judged
from counterfoil.sources.source_loaders import as_source
from counterfoil.store.workspace import Workspace
from counterfoil.types import Picture, Skipped, Variant


@dataclass(frozen=True, repr=False)
class VariantStream:
    """The variants of every photo with their pictures, made when they are asked for.

    `skipped` grows while the pictures are made: each edit that cannot apply is listed with its reason.
    """

    plan: RunPlan
    skipped: list[Skipped] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"VariantStream({len(self.plan.samples)} photos, {len(self.plan.recipe.edits)} edits); iterate over it"

    def __iter__(self) -> Iterator[tuple[Variant, Picture]]:
        """The variants photo by photo, the original first; iterating again makes them again."""
        self.skipped[:] = self.plan.skipped
        for sample in self.plan.samples:
            variants, unplanned = self.plan.variant_plans.plan(sample)
            self.skipped.extend(unplanned)
            for planned in variants:
                try:
                    yield self.plan.renderer.make(planned)
                except Unusable as error:
                    self.skipped.append(Skipped(sample.id, "edit", planned.edit, str(error)))

    def __len__(self) -> int:
        """How many variants are planned; some may be skipped."""
        return sum(len(self.plan.variant_plans.plan(sample).variants) for sample in self.plan.samples)


def variants(
    images: Any,
    *,
    edits: Any = None,
    masks: str | Path | None = None,
    recipe: str | Recipe | None = None,
    labels: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    segmenter: str = DEFAULT_SEGMENTER,
    doubtful_masks: DoubtfulMasks = "leave-out",
) -> VariantStream:
    """The edited pictures of photos, one after another, with the variant that each is.

    Args:
        images: Photos as `run` takes them.
        edits: Edits as `run` takes them: names, edits or functions.
        masks: Parallel folder of masks, beside a folder of photos.
        recipe: A recipe by name, or a YAML file, instead of edits.
        labels: Class names in the order of the numbers in a data set.
        limit: Use at most this many photos, taken from the classes in turn.
        seed: Another seed draws other random edits.
        segmenter: The network that finds objects where there are no masks.
        doubtful_masks: "leave-out" refuses edits that need a doubtful mask, "keep" makes them all the same.

    Returns:
        An iterable of (variant, picture); its `skipped` lists the edits that could not apply.

    Raises:
        UserError: The input cannot be used.

    Examples:
        >>> import numpy as np
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> for variant, picture in variants([(image, "red", mask)], edits=["object-grayscale"]):
        ...     print(variant.edit, picture.image.shape)
        original (64, 64, 3)
        control (64, 64, 3)
        object-grayscale (64, 64, 3)
    """
    config = make_run_config(
        images, masks=masks, edits=edits, recipe=recipe, labels=labels, limit=limit, seed=seed, segmenter=segmenter,
        doubtful_masks=doubtful_masks,
    )  # fmt: skip
    return VariantStream(prepare(config))


def open_photos(
    images: Any, *, masks: str | Path | None = None, labels: Sequence[str] | None = None, limit: int | None = None
) -> list[tuple[NDArray[np.uint8], str, NDArray[np.uint8] | None]]:
    """Read photos into memory, for a look at them or to choose among them.

    Args:
        images: Photos as `run` takes them.
        masks: Parallel folder of masks, beside a folder of photos.
        labels: Class names in the order of the numbers in a data set.
        limit: At most this many photos, taken from the classes in turn.

    Returns:
        (image, label, mask) of every photo that can be read, the mask None where there is none. `run` takes the list.

    Raises:
        UserError: The input cannot be used.

    Examples:
        >>> import numpy as np
        >>> photos = [(np.zeros((8, 8, 3), np.uint8), "night"), (np.ones((8, 8, 3)), "day")]
        >>> [(int(image.max()), label) for image, label, _ in open_photos(photos)]
        [(255, 'day'), (0, 'night')]
    """
    check_counts(limit=limit)
    source = as_source(images, masks, list_class_names(labels))
    photos = []
    for sample in limit_per_class(source.samples()[0], limit):
        try:
            image, mask = source.read(sample)
        except Unusable:  # `run` lists it with its reason
            continue
        photos.append((image, sample.label, mask))
    return photos


def build(
    images: Any,
    out: str | Path,
    *,
    edits: Any = None,
    masks: str | Path | None = None,
    recipe: str | Recipe | None = None,
    labels: Sequence[str] | None = None,
    limit: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    classes: str | None = None,
    segmenter: str = DEFAULT_SEGMENTER,
    doubtful_masks: DoubtfulMasks = "leave-out",
    engine: str = "local",
    split: str | Path | None = None,
    fold: int = 1,
) -> Workspace:
    """Write the edited pictures of photos into a workspace with a manifest; resumes what was interrupted.

    Args:
        images: Photos as `run` takes them.
        out: Folder of the workspace.
        edits: Edits as `run` takes them.
        masks: Parallel folder of masks, beside a folder of photos.
        recipe: A recipe by name, or a YAML file, instead of edits.
        labels: Class names in the order of the numbers in a data set.
        limit: Use at most this many photos, taken from the classes in turn.
        workers: Threads that work on photos; one per core where not given.
        seed: Another seed draws other random edits.
        classes: The photos' classes: a benchmark's by name, or a classes.json.
        segmenter: The network that finds objects where there are no masks.
        doubtful_masks: "leave-out" refuses edits that need a doubtful mask, "keep" makes them all the same.
        engine: "local" threads, "ray", or "ray:ADDRESS" of a cluster; what cannot be rebuilt elsewhere stays here.
        split: The repair.json of a repair over these photos: those that one of its folds judges are left out.
        fold: The number of that fold, from 1.

    Returns:
        The workspace, for `mine`, `freeze` and `evaluate`.

    Raises:
        UserError: The input cannot be used.

    Examples:
        >>> import numpy as np, tempfile
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> workspace = build([(image, "red", mask)], tempfile.mkdtemp(), edits=["object-grayscale"])
        >>> len(workspace.pictures)
        3
    """
    if split is not None:
        check_counts(fold=fold)
        source = as_source(images, masks, list_class_names(labels))
        images, masks = leave_out_judged(source, expect_path(split, "the split of a repair"), fold), None
    config = make_run_config(
        images, masks=masks, edits=edits, recipe=recipe, labels=labels, limit=limit, workers=workers, seed=seed,
        classes=classes, segmenter=segmenter, doubtful_masks=doubtful_masks, execution=Execution(engine),
    )  # fmt: skip
    folder = expect_path(out, "the folder to write")
    build_pictures(config, folder)
    return Workspace(folder)
