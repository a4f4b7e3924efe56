"""The pictures that a network is fine-tuned on: copies of the photos of a part, written once, as PNG files.

Copies come from `counterfoil.torch.Edited` over the photos of one part, so a donor is of the same part. They are kept
on disk: training reads them as fast as any folder of pictures, and a repair that was killed goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.builder import encode_png
from counterfoil.edits.registry import edit_named
from counterfoil.errors import Unusable
from counterfoil.progress import Extent, ProgressMeter, count_progress, open_meter
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.remedies.train_settings import TrainSettings
from counterfoil.store.files import write_atomically
from counterfoil.torch import CopyCounts, Edited
from counterfoil.types import Picture, Sample, Source
from counterfoil.variant_renderer import resize_to_working_size
from counterfoil.worker_pool import LocalEngine, cores

_SIZE = 384  # shorter side of a photo that is shown unedited, as that of edited copies


class PhotoCopies(NamedTuple):
    """The pictures of one photo that are shown in turn, epoch by epoch."""

    column: int  # of its class
    files: tuple[Path, ...]
    attributes: tuple[str, ...] = ()  # that each copy changes; "" where it is unedited

    def without(self, attribute: str) -> PhotoCopies:
        """The copies that do not change an attribute."""
        kept = [place for place, name in enumerate(self.attributes) if name != attribute]
        return PhotoCopies(
            self.column, tuple(self.files[place] for place in kept), tuple(self.attributes[place] for place in kept)
        )


class CopyRecord(NamedTuple):
    """What was done to one copy, as the file beside it says."""

    kind: Literal["edited", "unedited", "refused"]
    edit: str = ""
    level: str = ""
    attribute: str = ""


@dataclass(frozen=True)
class PartPhotos:
    """The photos of a part as a data set: (image, label, mask)."""

    source: Source
    samples: tuple[Sample, ...]

    def __len__(self) -> int:
        """As many as the part has."""
        return len(self.samples)

    def __getitem__(self, place: int) -> tuple[NDArray[np.uint8], str, NDArray[np.uint8] | None]:
        """One photo; raises `Unusable` where it cannot be read."""
        sample = self.samples[place]
        image, mask = self.source.read(sample)
        return image, sample.label, mask


@dataclass(frozen=True, kw_only=True)
class CopyWriter:
    """Writes the copies of one part."""

    source: Source
    samples: tuple[Sample, ...]
    recipe: Recipe | None  # None: the photos unedited
    settings: TrainSettings
    seed: int
    segmenter: str
    folder: Path
    workers: int | None = None

    def write(self, columns: Sequence[int]) -> tuple[list[PhotoCopies], CopyCounts]:
        """The copies of every photo that can be read, given the columns of their classes; and how many are edited."""
        numbers = range(self.settings.copies if self.recipe is not None else 1)
        missing = [
            (place, copy) for copy in numbers for place in range(len(self.samples))
            if not self._file(place, copy).is_file()
        ]  # fmt: skip
        extent = Extent(stage="making copies to train on", unit="pictures", total=len(missing))
        unreadable = set(self._make_missing(missing, count_progress(extent))) if missing else set()
        photos, kinds = [], Counter[str]()
        for place, column in enumerate(columns):
            if place in unreadable:
                continue
            files = tuple(self._file(place, copy) for copy in numbers)
            records = [CopyRecord(*json.loads(file.with_suffix(".json").read_text())) for file in files]
            kinds.update(record.kind for record in records)
            changed = tuple(record.attribute if record.kind == "edited" else "" for record in records)
            photos.append(PhotoCopies(column, files, changed))
        return photos, CopyCounts(*(kinds[name] for name in CopyCounts._fields))

    def _make_missing(self, missing: Sequence[tuple[int, int]], progress: ProgressMeter) -> Iterator[int]:
        """Write these copies; gives the places of photos that cannot be read."""
        engine = LocalEngine(self.workers or cores())
        with open_meter(progress) as meter:
            for copy in sorted({copy for _, copy in missing}):  # one after another: all threads share the epoch
                if self.recipe is not None:
                    self._edited.set_epoch(copy)
                places = [place for place, number in missing if number == copy]
                for place, done in engine.map(partial(self._make, copy), places):
                    meter.add()
                    if not done:
                        yield place

    @cached_property
    def _edited(self) -> Edited:
        assert self.recipe is not None
        return Edited(
            PartPhotos(self.source, self.samples), self.recipe, unedited=self.settings.unedited, seed=self.seed,
            segmenter=self.segmenter,
        )  # fmt: skip

    def _make(self, copy: int, place: int) -> tuple[int, bool]:
        """Write one copy; False where the photo cannot be read."""
        record = CopyRecord("unedited")
        try:
            if self.recipe is None:
                photo, _ = self.source.read(self.samples[place])
                image = resize_to_working_size(Picture(photo, np.zeros(photo.shape[:2], np.uint8)), _SIZE).image
            else:
                drawn = self._edited.draw(place)
                image, record = drawn.image, CopyRecord(drawn.kind, drawn.edit, drawn.level, drawn.attribute)
        except Unusable:
            return place, False
        path = self._file(place, copy)
        write_atomically(path.with_suffix(".json"), json.dumps(record))
        write_atomically(path, encode_png(Picture(image, np.zeros((1, 1), np.uint8))))  # last: the copy is done
        return place, True

    @cached_property
    def _key(self) -> str:
        """Hash of all that the copies depend on but the photo and its number."""
        recipe = None if self.recipe is None else self.recipe.digest
        steps = () if self.recipe is None else self.recipe.edits
        versions = [edit_named(step.edit, given).picture_version for step in steps for given in step.all_settings]
        about = [__version__, recipe, versions, self.settings.unedited, self.seed, self.segmenter]
        digests = sorted(sample.digest for sample in self.samples)  # donors
        return hashlib.sha256(json.dumps([about, digests]).encode()).hexdigest()[:16]

    def _file(self, place: int, copy: int) -> Path:
        return self.folder / self._key / f"{self.samples[place].digest[:32]}-{copy}.png"
