"""Edited copies of a data set's pictures for a training loop: a map-style data set as torch's `DataLoader` takes it.

torch itself is not imported: anything that reads by index can be trained on. Each copy is drawn from the content of
its photo, the seed and the epoch, so it does not depend on the order of work or on the number of workers. An edit may
take a second, a training step takes a millisecond: in a folder each copy is a file, made once and read in any epoch.
"""

from __future__ import annotations

import copy
import hashlib
import json
import numbers
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil import __version__
from counterfoil.edits.edit_selection import CONTROL, list_steps, make_recipe
from counterfoil.edits.registry import name_of
from counterfoil.edits.seeds import seed_from
from counterfoil.edits.variant_plan import PlannedEdit, plan_variants
from counterfoil.errors import Unusable, UserError, expect_kind, expect_path
from counterfoil.pieces import PROCESSES_FROM, fit_memory
from counterfoil.process_pool import ProcessEngine, pack_work
from counterfoil.progress import Extent, count_progress, open_meter
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.run_config import RunPlan, prepare
from counterfoil.run_request import make_run_config
from counterfoil.segmentation import DEFAULT_SEGMENTER, name_masks
from counterfoil.sources.object_source import ObjectSource, split_item
from counterfoil.sources.picture_objects import convert_image
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_mirror import join_mirrors, list_addresses
from counterfoil.types import Picture, Sample
from counterfoil.variant_renderer import resize_to_working_size
from counterfoil.worker_pool import LocalEngine, cores
from counterfoil.worker_process import PortableWork

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
    copies: int = 3  # of each picture, where they are kept in a folder

    def __post_init__(self) -> None:
        expect_kind(self.unedited, numbers.Real, "the share of unedited pictures as a number")
        expect_kind(self.copies, int, "the number of copies as a whole number")
        if not 0 <= self.unedited <= 1:
            raise UserError(f"expected a share of unedited pictures from 0 to 1, got {self.unedited:g}")
        if self.copies < 1:
            raise UserError(f"expected at least 1 copy of each picture, got {self.copies}")


class CopyFile(NamedTuple):
    """One copy on disk: the picture, and beside it a file that says what was done to it."""

    path: Path

    @property
    def is_there(self) -> bool:
        """Whether the copy was made: the picture is written last."""
        return self.path.is_file()

    @property
    def record(self) -> DrawnCopy:
        """What was done to the copy, without its picture."""
        try:
            return DrawnCopy(_NO_IMAGE, None, *json.loads(self.path.with_suffix(".json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"expected a copy in {self.path}, of which half is missing; remove it") from error

    def write(self, drawn: DrawnCopy) -> None:
        """Keep a copy; uncompressed, since a training reads it far more often than it is written."""
        about = [drawn.kind, drawn.edit, drawn.level, drawn.attribute]
        write_atomically(self.path.with_suffix(".json"), json.dumps(about))
        _, data = cv2.imencode(self.path.suffix, cv2.cvtColor(np.ascontiguousarray(drawn.image), cv2.COLOR_RGB2BGR))
        write_atomically(self.path, data.tobytes())


def read_picture(path: Path) -> NDArray[np.uint8]:
    """A picture that was written before, (height, width, 3), RGB; raises `UserError` where it is damaged."""
    try:
        with Image.open(path) as opened:
            return np.asarray(opened.convert("RGB"), np.uint8)
    except (OSError, SyntaxError, ValueError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(f"expected a picture in {path}, which is damaged: {line}; remove it") from error


def _whole_number(given: Any, what: str) -> int:
    """A number of Python, NumPy or torch; raises `UserError` for anything else."""
    try:
        return operator.index(given)
    except TypeError as error:
        raise UserError(f"expected {what} as a whole number, got {type(given).__name__}") from error


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
        folder: Where copies are kept as files, so that each is made once, by this training or an earlier one; without
            it every epoch draws new ones.
        copies: How many different copies of each picture the folder holds; they are shown in turn, epoch by epoch.

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
        folder: str | Path | None = None,
        copies: int = 3,
    ) -> None:
        self._settings = CopySettings(unedited=unedited, seed=seed, copies=copies)
        self._folder = None if folder is None else expect_path(folder, "the folder for copies")
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or hasattr(dataset, "iloc"):
            raise UserError(
                f"expected a data set that is read by index, such as a torch Dataset or a list of (image, label),"
                f" got {type(dataset).__name__}"
            )
        if transform is not None and not callable(transform):
            raise UserError(f"expected transform= as a function of a Pillow picture, got {type(transform).__name__}")
        self._dataset, self._transform = dataset, transform
        recipe = choose_copy_recipe(edits)
        config = make_run_config(dataset, recipe=recipe, labels=labels, seed=seed, segmenter=segmenter)
        source = config.source
        assert isinstance(source, ObjectSource)  # what else is read by index
        self._plan: RunPlan = prepare(config)
        self._samples: dict[int, Sample] = {source.places[sample.id]: sample for sample in self._plan.samples}
        self._shared = _SharedNumbers()
        self._process = os.getpid()
        self._labels: dict[int, Any] = {}  # of pictures that were read

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
            UserError: The index is no whole number.
        """
        place = _whole_number(index, "an index")
        if not -len(self) <= place < len(self):
            raise IndexError(f"expected an index below {len(self)}, got {place}")
        self._begin_in_process()
        drawn = self._draw(place % len(self))
        self._shared.add(drawn.kind)
        return drawn

    def make_copies(self, workers: int | None = None) -> CopyCounts:
        """Write the copies that `folder` lacks, all at once, so that the training only reads.

        Args:
            workers: How many are made at once; one per core where not given.

        Returns:
            How many of all copies in the folder are edited, unedited and refused.

        Raises:
            UserError: No folder was given, or a file in it is damaged.
        """
        if self._folder is None:
            raise UserError("expected the folder for copies, got none; give Edited(..., folder=...)")
        numbers = [(place, number) for number in range(self._settings.copies) for place in sorted(self._samples)]
        missing = [(place, number) for place, number in numbers if not self.files(place)[number].is_there]
        if missing:
            extent = Extent(stage="making copies to train on", unit="pictures", total=len(missing))
            with open_meter(count_progress(extent)) as meter:
                for _ in self._make(missing, workers):
                    meter.add()
        kinds = Counter[str](self.files(place)[number].record.kind for place, number in numbers)
        return CopyCounts(*(kinds[name] for name in CopyCounts._fields))

    def files(self, index: int) -> list[CopyFile]:
        """The files of a picture's copies, of which some may not be made yet; none for a picture that is left out."""
        sample = self._samples.get(index)
        if self._folder is None or sample is None:
            return []
        name = f"{sample.digest[:32]}-{{}}.bmp"
        return [CopyFile(self._folder / self._key / name.format(number)) for number in range(self._settings.copies)]

    def _make(self, missing: Sequence[tuple[int, int]], workers: int | None) -> Iterable[None]:
        """Write these copies: by processes where there are enough of them, else by threads."""
        work = _CopyWork(self)
        count = min(len(missing), fit_memory(cores()) if workers is None else workers)
        if count >= PROCESSES_FROM:
            try:
                return ProcessEngine(count, lambda note: None, pack_work(work)).map(work, missing)
            except UserError:  # the data set cannot be pickled
                pass
        return LocalEngine(workers or cores()).map(work, missing)

    @cached_property
    def _key(self) -> str:
        """Hash of all that the copies depend on but the photo and its number."""
        recipe, settings = self._plan.recipe, self._settings
        versions = [step.edit.picture_version for step in self._plan.steps]
        segmenter, masked = self._plan.config.segmenter, all(each.mask is not None for each in self._samples.values())
        masks = segmenter if masked else name_masks(segmenter)
        about = [__version__, recipe.digest, versions, settings.unedited, settings.seed, masks]
        digests = sorted(sample.digest for sample in self._samples.values())  # donors
        return hashlib.sha256(json.dumps([about, digests]).encode()).hexdigest()[:16]

    def _draw(self, place: int) -> DrawnCopy:
        files, epoch = self.files(place), self._shared.epoch
        if not files:
            return self._draw_new(place, epoch)
        number = epoch % len(files)
        if not files[number].is_there:
            return self._keep(place, number)
        if place not in self._labels:
            self._labels[place] = split_item(self._dataset[place]).label
        return files[number].record._replace(image=read_picture(files[number].path), label=self._labels[place])

    def _keep(self, place: int, number: int) -> DrawnCopy:
        """Make a copy and write it."""
        drawn = self._draw_new(place, number)
        self._labels[place] = drawn.label
        self.files(place)[number].write(drawn)
        return drawn

    def _draw_new(self, place: int, number: int) -> DrawnCopy:
        item = split_item(self._dataset[place])
        drawn = self._edit(place, number, item.label)
        if drawn.kind == "edited":
            return drawn
        photo = convert_image(item.image)
        unedited = Picture(photo, np.zeros(photo.shape[:2], np.uint8))
        return drawn._replace(image=resize_to_working_size(unedited, self._plan.recipe.working_size).image)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Every item once, in the order of the data set."""
        return (self[place] for place in range(len(self)))

    def set_epoch(self, epoch: int) -> None:
        """Draw other copies from now on, in the workers of a `DataLoader` too; call it before each epoch."""
        self._shared.set_epoch(_whole_number(epoch, "an epoch"))

    @property
    def counts(self) -> CopyCounts:
        """How many pictures were edited, left unedited, and refused."""
        return self._shared.counts

    def _edit(self, place: int, number: int, label: Any) -> DrawnCopy:
        """The edited copy; without an image where the picture stays unedited."""
        sample = self._samples.get(place)
        if sample is None:  # it could not be listed: a duplicate, or a mask of another size
            return DrawnCopy(_NO_IMAGE, label, "refused")
        seed = seed_from("edited copy", sample.digest, self._settings.seed, number)
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


class _CopyWork(PortableWork["tuple[int, int]", None]):
    """Makes copies, here or in another process, which does not know the transform."""

    def __init__(self, copies: Edited) -> None:
        self._copies = copy.copy(copies)
        self._copies._transform = None

    def __call__(self, item: tuple[int, int]) -> None:
        """Write the copy of this place and number."""
        self._copies._begin_in_process()
        self._copies._keep(*item)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "mirrors": list_addresses()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        join_mirrors(state.pop("mirrors"))
        vars(self).update(state)


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
