"""A frozen benchmark as a collection: every hash is verified, then pictures are read from files or shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmark.benchmark_json import BenchmarkRecord, read_benchmark_record
from counterfoil.benchmark.integrity import find_differences, read_bytes
from counterfoil.benchmark.manifest import FileLocation, Manifest, read_manifest
from counterfoil.errors import Unusable, UserError, expect_path
from counterfoil.labels.label_space import LabelSpace
from counterfoil.picture_strip import render_strip
from counterfoil.report.words import describe_change, pluralize
from counterfoil.sources.pixels import decode_picture, hash_pixels
from counterfoil.store.picture_collection import CollectionBase
from counterfoil.types import Skipped, StoredVariant

_SHOWN = 6  # pictures in a notebook
_NOT_SHOWN = frozenset({"original", "control"})  # attributes


@dataclass(frozen=True, repr=False)
class Benchmark(CollectionBase):
    """The pictures of a benchmark's folder, read from its files or shards; a `Collection`."""

    folder: Path
    record: BenchmarkRecord
    manifest: Manifest

    def __repr__(self) -> str:
        """Name, size and digest in a line."""
        return f"Benchmark({self.name}, {self.record.counts.test} pictures, digest {self.digest[:12]}) in {self.folder}"

    @property
    def name(self) -> str:
        """Name and version."""
        return f"{self.record.name} {self.record.version}"

    @property
    def digest(self) -> str:
        """Hash over the whole benchmark."""
        return self.record.digest

    @property
    def space(self) -> LabelSpace:
        """The classes, with the model labels that count as each."""
        return self.record.space

    @property
    def scoring(self) -> Literal["all", "subset"]:
        """Whether columns that belong to no class compete."""
        return self.record.scoring

    @property
    def surrogates(self) -> Mapping[str, str]:
        """The models that selected the pictures."""
        return self.record.surrogates

    @property
    def notes(self) -> Sequence[str]:
        """Notes that every report on the benchmark must print."""
        return self.record.notes

    @cached_property
    def pictures(self) -> Sequence[StoredVariant]:
        """Every picture, by sample, originals first."""
        return self.manifest.pictures

    @property
    def skipped(self) -> Sequence[Skipped]:
        """Empty: the record counts what was left out."""
        return ()

    @property
    def is_frozen(self) -> bool:
        """Yes: a score without some of its pictures is not the benchmark's."""
        return True

    @cached_property
    def _places(self) -> dict[str, FileLocation]:
        return {variant.id: place for variant, place in zip(self.manifest.variants, self.manifest.places, strict=True)}

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        """Read the pixels and check them again: a file may change after the benchmark was opened."""
        try:
            data = read_bytes(self.folder, self._places[stored.variant.id])
        except OSError as error:
            raise Unusable(f"{stored.file} cannot be read: {error.strerror}") from error
        image = decode_picture(data, stored.file)
        if hash_pixels(image) != stored.sha256:
            raise Unusable(f"{stored.file} has other pixels than were frozen")
        return image

    def _repr_html_(self) -> str:
        """Name, counts, digest and a few pictures, as a notebook shows them."""
        counts = self.record.counts
        names = {one.label: one.name for one in self.record.labels.classes}
        sentences = [
            f"{pluralize(counts.test, 'picture')} of {len(names)} {'class' if len(names) == 1 else 'classes'}, and"
            f" {pluralize(counts.reference, 'unedited or control picture')} to compare with.",
            f"Digest {self.digest}.",
            *self.notes,
        ]
        edited = [stored for stored in self.pictures if stored.variant.attribute not in _NOT_SHOWN]
        step = max(1, len(edited) // _SHOWN)
        shown = [
            (f"{names[row.variant.label]}: {describe_change(row.variant.edit, row.variant.level)}", row)
            for row in edited[::step]
        ]
        return render_strip(self.name, [(words, self.read(row)) for words, row in shown[:_SHOWN]], sentences)


def open_benchmark(folder: str | Path) -> Benchmark:
    """Open the benchmark in a folder and verify every hash.

    Args:
        folder: What `freeze` wrote.

    Returns:
        The benchmark, a collection that `evaluate` takes.

    Raises:
        UserError: A file differs from what was frozen, or the folder is no benchmark.

    Examples:
        >>> open_benchmark("reds-1.0.0").name  # doctest: +SKIP
        'Reds 1.0.0'
    """
    path = expect_path(folder, "the folder of a benchmark")
    differences = find_differences(path)
    if differences:
        more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
        raise UserError(
            f"expected the benchmark in '{path}' as it was frozen, but it is not: {differences[0]}{more};"
            f" `counterfoil check {path}` names everything; get it again"
        )
    return Benchmark(path, read_benchmark_record(path), read_manifest(path))
