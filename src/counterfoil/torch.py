"""Edited copies of a data set's pictures for a training loop: a map-style data set as torch's `DataLoader` takes it.

torch itself is not imported: anything that reads by index can be trained on. Each copy is drawn from the content of
its photo, the seed and the epoch, so it does not depend on the order of work or on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from multiprocessing.context import get_spawning_popen
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.edits.edit_selection import CONTROL, list_steps, make_recipe
from counterfoil.edits.registry import name_of
from counterfoil.edits.seeds import seed_from
from counterfoil.edits.variant_plan import PlannedEdit, plan_variants
from counterfoil.errors import Unusable, UserError
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.run_config import RunPlan, prepare
from counterfoil.run_request import make_run_config
from counterfoil.segmentation import DEFAULT_SEGMENTER
from counterfoil.sources.object_source import ObjectSource, split_item
from counterfoil.sources.picture_objects import convert_image
from counterfoil.types import Picture, Sample
from counterfoil.variant_renderer import resize_to_working_size

_NO_IMAGE = np.zeros((0, 0, 3), np.uint8)


class CopyCounts(NamedTuple):
    """How many pictures were given since the start, by all workers together."""

    edited: int
    unedited: int  # as the share asks for
    refused: int  # unedited because the edit that was drawn could not be made


class DrawnCopy(NamedTuple):
    """One picture of the data set as `Edited` gives it, and what was done to it."""

    image: NDArray[np.uint8]  # (height, width, 3), RGB
    label: Any  # as the data set gives it
    kind: Literal["edited", "unedited", "refused"]
    edit: str = ""  # that was drawn; "" where the picture stays unedited
    level: str = ""
    attribute: str = ""


@dataclass(frozen=True, kw_only=True)
class CopySettings:
    """How the copies of a data set are drawn."""

    unedited: float = 0.5  # the share of pictures that stay as they are
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.unedited <= 1:
            raise UserError(f"expected a share of unedited pictures from 0 to 1, got {self.unedited:g}")


def choose_copy_recipe(edits: Any) -> Recipe:
    """The recipe of these edits alone, without the control and without what they are compared with."""
    if not isinstance(edits, Recipe):
        return make_recipe(edits).model_copy(update={"edits": tuple(list_steps(edits))})
    steps = tuple(step for step in edits.edits if step.edit != CONTROL)
    if not steps:
        raise UserError(f"expected at least one edit besides '{CONTROL}' in the recipe '{edits.name}', got none")
    return edits.model_copy(update={"edits": steps})


class Edited:
    """A data set whose pictures are edited copies of another's, each epoch other ones.

    Every item is `(image, label)`: the image a Pillow picture, or what `transform` makes of it, the label as the data
    set gives it. Edited or not, a picture's shorter side is at most 384 pixels. A picture whose edit is refused (a cut
    object, an unsuitable fill, a doubtful mask) comes back unedited and is counted.

    Args:
        dataset: A map-style data set or a list of (image, label) or (image, label, mask), or of rows with such names,
            without random transforms. All pictures are read once at the start, for their digests.
        edits: Edits as `run` takes them: names, edits or functions, or a recipe. One is drawn for each picture, each
            as often.
        transform: Called with the Pillow picture: the random crops, tensors and norms of your training.
        labels: Class names in the order of the numbers in the data set, where it has no `classes`.
        unedited: The share of pictures that stay unedited.
        seed: Another seed draws other copies.
        segmenter: The network that finds objects where there are no masks.

    Raises:
        UserError: The input cannot be used.

    Examples:
        >>> import numpy as np
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> copies = Edited([(image, 0, mask)], "object-grayscale", labels=["red"], unedited=0)
        >>> picture, label = copies[0]
        >>> picture.size, label, picture.getpixel((30, 30)), copies.counts.edited
        ((64, 64), 0, (88, 88, 88), 1)
    """

    def __init__(
        self,
        dataset: Any,
        edits: Any,
        *,
        transform: Callable[[Image.Image], Any] | None = None,
        labels: Sequence[str] | None = None,
        unedited: float = 0.5,
        seed: int = 0,
        segmenter: str = DEFAULT_SEGMENTER,
    ) -> None:
        self._settings = CopySettings(unedited=unedited, seed=seed)
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or hasattr(dataset, "iloc"):
            raise UserError(
                f"expected a data set that is read by index, such as a torch Dataset or a list of (image, label),"
                f" got {type(dataset).__name__}"
            )
        self._dataset, self._transform = dataset, transform
        recipe = choose_copy_recipe(edits)
        config = make_run_config(dataset, recipe=recipe, labels=labels, seed=seed, segmenter=segmenter)
        source = config.source
        assert isinstance(source, ObjectSource)  # what else is read by index
        self._plan: RunPlan = prepare(config)
        self._samples: dict[int, Sample] = {source.places[sample.id]: sample for sample in self._plan.samples}
        self._shared = _SharedNumbers()
        self._process = os.getpid()

    def __len__(self) -> int:
        """As many as the data set has."""
        return len(self._dataset)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The picture of this index, edited or not, and its label; raises `IndexError` past the end."""
        copy = self.draw(index)
        picture = Image.fromarray(copy.image)
        return (picture if self._transform is None else self._transform(picture)), copy.label

    def draw(self, index: int) -> DrawnCopy:
        """The picture of this index before the transform, with the edit that was drawn; counted as any other.

        Raises:
            IndexError: There is no such index.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"expected an index below {len(self)}, got {index}")
        place = int(index) % len(self)
        self._begin_in_process()
        item = split_item(self._dataset[place])
        copy = self._edit(place, item.label)
        self._shared.add(copy.kind)
        if copy.kind == "edited":
            return copy
        photo = convert_image(item.image)
        unedited = Picture(photo, np.zeros(photo.shape[:2], np.uint8))
        return copy._replace(image=resize_to_working_size(unedited, self._plan.recipe.working_size).image)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Every item once, in the order of the data set."""
        return (self[place] for place in range(len(self)))

    def set_epoch(self, epoch: int) -> None:
        """Draw other copies from now on, in the workers of a `DataLoader` too; call it before each epoch."""
        self._shared.set_epoch(epoch)

    @property
    def counts(self) -> CopyCounts:
        """How many pictures were edited, left unedited, and refused."""
        return self._shared.counts

    def _edit(self, place: int, label: Any) -> DrawnCopy:
        """The edited copy; without an image where the picture stays unedited."""
        sample = self._samples.get(place)
        if sample is None:  # it could not be listed: a duplicate, or a mask of another size
            return DrawnCopy(_NO_IMAGE, label, "refused")
        seed = seed_from("edited copy", sample.digest, self._settings.seed, self._shared.epoch)
        rng = np.random.default_rng(seed)
        if rng.random() < self._settings.unedited:
            return DrawnCopy(_NO_IMAGE, label, "unedited")
        step = self._choose_step(rng, seed)
        edit = step.edit
        try:
            return DrawnCopy(self._render(sample, step), label, "edited", name_of(edit), edit.level, edit.attribute)
        except Unusable:
            return DrawnCopy(_NO_IMAGE, label, "refused", name_of(edit), edit.level, edit.attribute)

    def _choose_step(self, rng: np.random.Generator, seed: int) -> PlannedEdit:
        """One of the edits, each as often whatever the number of its levels; then one of its levels."""
        levels = self._levels[int(rng.integers(len(self._levels)))]
        return replace(levels[int(rng.integers(len(levels)))], replicates=1, run_seed=seed)

    @cached_property
    def _levels(self) -> list[list[PlannedEdit]]:
        names = dict.fromkeys(name_of(step.edit) for step in self._plan.steps)
        return [[step for step in self._plan.steps if name_of(step.edit) == name] for name in names]

    def _render(self, sample: Sample, step: PlannedEdit) -> NDArray[np.uint8]:
        renderer = self._plan.renderer
        plan = plan_variants(sample, [step], renderer.donors)
        if plan.skipped:
            raise Unusable(plan.skipped[0].reason)
        return renderer.make(plan.variants[-1])[1].image

    def _begin_in_process(self) -> None:
        """In a worker: photos and locks of its own, and one thread, since the workers share the cores."""
        if os.getpid() != self._process:
            self._process, self._plan = os.getpid(), replace(self._plan)
            cv2.setNumThreads(0)


class _SharedNumbers:
    """The epoch and the counts, in memory that the workers of a `DataLoader` share with the process that began them."""

    _FIELDS = ("epoch", *CopyCounts._fields)

    def __init__(self, values: Sequence[int] = (0, 0, 0, 0)) -> None:
        # of the spawn context: those of the fork context cannot go to workers that are spawned
        self._values = get_context("spawn").Array("q", list(values))

    @property
    def epoch(self) -> int:
        return int(self._values[0])

    def set_epoch(self, epoch: int) -> None:
        self._values[0] = epoch

    @property
    def counts(self) -> CopyCounts:
        return CopyCounts(*self._values[1:])

    def add(self, name: str) -> None:
        with self._values.get_lock():
            self._values[self._FIELDS.index(name)] += 1

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is not None:  # to a worker that is being started
            return {"shared": self._values}
        return {"values": self._values[:]}  # a copy or a file shares nothing

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "shared" in state:
            self._values = state["shared"]
        else:
            self.__init__(state["values"])  # type: ignore[misc]
