"""Photos in class folders, masks in a second folder, and the licences of photos from licences.csv."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.annotations import make_readable, skip_duplicates
from counterfoil.sources.pixels import check_mask_size, read_mask, read_photo
from counterfoil.types import Sample, Skipped

LICENCES = "licences.csv"
_COLUMNS = ("file", "licence", "origin")


def read_licences(path: Path) -> dict[str, tuple[str, str]]:
    """Origin and licence by photo, `<label>/<name>.jpg`; empty where there is no such file."""
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in _COLUMNS[:2] if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"expected the columns {', '.join(_COLUMNS)} in {path}, found no {missing[0]}")
            return {_read_cell(row, "file"): (_read_cell(row, "origin"), _read_cell(row, "licence")) for row in reader}
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"expected a CSV file in UTF-8, got {path}, which cannot be read: {error}") from error


def _read_cell(row: dict[str, str | None], column: str) -> str:
    return (row.get(column) or "").strip()


REVIEW = "review.csv"  # in a folder of masks: the photos that a person decided on
REVIEW_COLUMNS = ("file", "verdict")


def read_review(masks: Path) -> dict[str, str]:
    """The verdict, accepted or rejected, on each photo whose mask was reviewed; empty where none was."""
    path = masks / REVIEW
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {_read_cell(row, "file"): _read_cell(row, "verdict") for row in csv.DictReader(file)}
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"expected the verdicts of a review in {path}, which cannot be read: {error}") from error


_PICTURES = {".jpg", ".jpeg", ".png", ".webp"}


@dataclass(frozen=True)
class FolderSource:
    """Photos as `<label>/<name>.jpg`, masks as `<label>/<name>.png` in a folder beside."""

    images: Path
    masks: Path | None = None

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every sample in the order of its path, and what was skipped."""
        files = list(self._files())
        if not files:
            raise UserError(
                f"expected pictures as <label>/<name>.jpg (.png, .webp) under {self.images}, found none;"
                f" give the folder that holds the class folders"
            )
        with ThreadPoolExecutor(8) as pool:
            extent = Extent(stage="reading the photos", unit="photos", total=len(files), brief=True)
            checked = skip_duplicates(list(show_progress(pool.map(self._sample, files), extent)))
        samples = [item for item in checked if isinstance(item, Sample)]
        return samples, [*self._list_strays(), *(item for item in checked if isinstance(item, Skipped))]

    @property
    def labels(self) -> Sequence[str]:
        """The class folders that hold pictures, whether or not these can be used."""
        return sorted(
            {path.parent.name for path in self._files() if make_readable(path.parent.name) == path.parent.name}
        )

    def _files(self) -> Iterator[Path]:
        for folder in self._folders():
            for path in sorted(folder.iterdir()):
                if path.suffix.lower() in _PICTURES and path.is_file() and not path.name.startswith("."):
                    yield path

    def _folders(self) -> list[Path]:
        for folder in (self.images, self.masks):
            if folder is not None and not folder.is_dir():
                what = "is a file" if folder.exists() else "is not there"
                raise UserError(f"expected a folder, got '{folder}', which {what}; check the path")
        return sorted(path for path in self.images.iterdir() if path.is_dir() and not path.name.startswith("."))

    def _list_strays(self) -> list[Skipped]:
        """Pictures outside the class folders, and files that are not pictures."""
        loose = [path for path in sorted(self.images.iterdir()) if path.suffix.lower() in _PICTURES and path.is_file()]
        others = [
            path
            for folder in self._folders()
            for path in sorted(folder.iterdir())
            if not path.name.startswith(".") and (path.is_dir() or path.suffix.lower() not in _PICTURES)
        ]
        return [Skipped(path.name, "source", "", "the picture is in no class folder") for path in loose] + [
            Skipped(f"{path.parent.name}/{path.name}", "source", "", "the file is not a JPEG, PNG or WebP picture")
            for path in others
        ]

    def _sample(self, path: Path) -> Sample | Skipped:
        label = path.parent.name
        name = f"{label}/{path.name}"
        if name != (readable := make_readable(name)):
            return Skipped(readable, "source", "", "the file's name is not UTF-8 text")
        if self._review.get(name) == "rejected":
            return Skipped(name, "source", "", "the photo was rejected in the review of masks")
        mask = self.masks / label / f"{path.stem}.png" if self.masks else None
        if mask and not mask.is_file():
            return Skipped(name, "source", "", f"there is no mask {label}/{path.stem}.png")
        try:
            digest = hashlib.sha256(path.read_bytes())
            digest.update(b"mask" + mask.read_bytes() if mask else b"")
        except OSError as error:
            return Skipped(name, "source", "", f"the file cannot be read: {error.strerror}")
        inside = None if mask is None else f"{label}/{mask.name}"
        origin, licence = self._licences.get(name, ("", ""))
        return Sample(
            id=name, label=label, image=name, mask=inside, digest=digest.hexdigest(), origin=origin, licence=licence
        )

    @cached_property
    def _review(self) -> dict[str, str]:
        return read_review(self.masks) if self.masks else {}

    @cached_property
    def _licences(self) -> dict[str, tuple[str, str]]:
        return read_licences(self.images / LICENCES)

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        """The photo's pixels, upright, and its mask where there is one."""
        image = read_photo(self.images / sample.image)
        if sample.mask is None or self.masks is None:
            return image, None
        try:
            mask = read_mask(self.masks / sample.mask)
        except Unusable as error:
            raise Unusable(f"the mask cannot be used: {error}") from error
        check_mask_size(mask, image)
        return image, mask
