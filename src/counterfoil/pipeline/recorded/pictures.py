"""Small pictures of variants: kept beside the run, else made again from photos that are still as they were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.pipeline.job import segmenter_for, source_at
from counterfoil.pipeline.recorded.study import Study
from counterfoil.pipeline.studio import Studio
from counterfoil.pipeline.work import pixel_digest
from counterfoil.report.gallery import small_jpeg
from counterfoil.store import write_atomically
from counterfoil.types import Picture, Run, Sample, Variant

Maker: TypeAlias = Callable[[Variant], "Picture | None"]

_THUMBNAIL = 192  # pixels of the longer side
_QUALITY = 82


@dataclass(frozen=True)
class Album:
    """The pictures of a report; what had to be made is kept in `keep`, so that the report can be made again."""

    folders: tuple[Path, ...]
    make: Maker
    keep: Path | None = None
    ready: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # JPEGs made before, by hash of the pixels

    def picture(self, variant: Variant, pixels: str) -> bytes | None:
        """A JPEG of the variant whose pixels have this hash; None where neither it nor its photo is at hand."""
        for folder in self.folders:
            path = _thumbnail(folder, pixels)
            if path.is_file():
                return path.read_bytes()
        jpeg = self.ready.get(pixels) or self._made(variant, pixels)
        if jpeg is not None and self.keep is not None:
            write_atomically(_thumbnail(self.keep, pixels), jpeg)
        return jpeg

    def _made(self, variant: Variant, pixels: str) -> bytes | None:
        made = self.make(variant)
        return None if made is None or pixel_digest(made) != pixels else thumbnail_jpeg(made.image)


def remaker(study: Study) -> Maker:
    """Makes variants of a recorded run again; gives None where the photo is gone."""

    @cache
    def studio() -> Studio | None:
        return _studio(study.manifest, study.runs[0])

    def make(variant: Variant) -> Picture | None:
        opened = studio()
        if opened is None:
            return None
        try:
            return opened.make(variant)
        except (Unusable, UserError):  # the photo was moved or changed: the page does without
            return None

    return make


def _studio(table: Mapping[str, NDArray[Any]], run: Run) -> Studio | None:
    """A studio over the run's own photos and masks; None where masks came from a segmenter, which is not loaded."""
    first = {name: row for row, name in reversed(list(enumerate(table["sample_id"])))}
    samples = {name: _sample(table, name, row) for name, row in first.items()}
    if not samples or any(sample.mask is None for sample in samples.values()):
        return None
    working_size = int(table["working_size"][0]) or None
    return Studio(source_at(run.images, run.masks), samples, working_size, segmenter_for(list(samples.values())))


def _sample(table: Mapping[str, NDArray[Any]], name: str, row: int) -> Sample:
    image, mask, label, digest = (table[column][row] for column in ("image", "mask", "label", "sample_digest"))
    return Sample(name, label, image, mask or None, digest)


def _thumbnail(folder: Path, pixels: str) -> Path:
    """Named by the picture's hash: an older picture of the same variant is never taken for it."""
    return folder / "thumbnails" / f"{pixels[:20]}.jpg"


def thumbnail_jpeg(image: NDArray[np.uint8]) -> bytes:
    """A picture on the page's scale."""
    return small_jpeg(image, _THUMBNAIL, _QUALITY)
