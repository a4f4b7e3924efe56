"""Photos that the judgement of a repair does not use: the split of repair.json, one part left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.types import Sample, Skipped, Source, SourceBase


@dataclass(frozen=True)
class UnjudgedPhotos(SourceBase):
    """The photos of a source but those of one part."""

    source: Source
    judged: frozenset[str]  # ids of the photos that are left out
    reason: str

    @property
    def images(self) -> str | Path:
        """The address of the whole source."""
        return self.source.images

    @property
    def masks(self) -> str | Path | None:
        """The masks of the whole source."""
        return self.source.masks

    @property
    def labels(self) -> Sequence[str]:
        """The classes of the whole source."""
        return self.source.labels

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every photo that is not judged; the judged ones are listed as skipped."""
        samples, skipped = self.source.samples()
        kept = [sample for sample in samples if sample.id not in self.judged]
        judged = [Skipped(sample.id, "source", "", self.reason) for sample in samples if sample.id in self.judged]
        return kept, [*skipped, *judged]

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        """The photo and its mask."""
        return self.source.read(sample)


def leave_out_judged(source: Source, split: Path, fold: int) -> UnjudgedPhotos:
    """The photos that a fold of a repair does not judge.

    Args:
        source: All photos.
        split: repair.json, or JSON with `parts`: lists of photo ids, or of ids with digests.
        fold: The number of the fold, from 1; part number `fold` is judged by it.

    Raises:
        UserError: There is no such split or fold, or the photos are not those of the split.
    """
    if not split.is_file():
        raise UserError(
            f"expected the split of a repair, such as repaired/repair.json, got '{split}', which is no file"
        )
    try:
        parts = [set(part) for part in json.loads(split.read_text(encoding="utf-8"))["parts"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"expected JSON with `parts`, such as repair.json, got {split}: {error}") from error
    if not 1 <= fold <= len(parts):
        raise UserError(f"expected a fold from 1 to {len(parts)}, got {fold}")
    there = {sample.id for sample in source.samples()[0]}
    missing = sorted(set().union(*parts) - there)
    if missing:
        raise UserError(
            f"expected the photos of {split}, but '{missing[0]}' is not among these; give the --images of that repair"
        )
    return UnjudgedPhotos(source, frozenset(parts[fold - 1]), f"judged by fold {fold} of {split.name}")
