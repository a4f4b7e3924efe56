"""The pictures that a network is fine-tuned on: copies of the photos of a part, written once.

Copies come from `counterfoil.torch.Edited` over the photos of one part, so a donor is of the same part. They are kept
on disk: training reads them faster than photos, and a repair that was killed goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.remedies.train_settings import TrainSettings
from counterfoil.torch import CopyCounts, Edited
from counterfoil.types import Sample, Source

_ANY_EDIT = "object-grayscale"  # of copies of which every one stays unedited


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
        unedited, copies = (1.0, 1) if self.recipe is None else (self.settings.unedited, self.settings.copies)
        edited = Edited(
            PartPhotos(self.source, self.samples), self.recipe or _ANY_EDIT, unedited=unedited, seed=self.seed,
            segmenter=self.segmenter, folder=self.folder, copies=copies,
        )  # fmt: skip
        counts = edited.make_copies(self.workers)
        photos = []
        for place, column in enumerate(columns):
            files = edited.files(place)
            if files:
                records = [file.record for file in files]
                changed = tuple(record.attribute if record.kind == "edited" else "" for record in records)
                photos.append(PhotoCopies(column, tuple(file.path for file in files), changed))
        return photos, counts
