"""Photos in class folders, masks in a second folder, and the licences of photos from licences.csv."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.annotations import check_digest, make_readable, pack_samples
from counterfoil.sources.bounded_reads import map_files, read_user_file
from counterfoil.sources.folder_entries import FolderEntry, list_entries
from counterfoil.sources.pixels import check_mask_size, decode_mask, decode_photo
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


PICTURES = {".jpg", ".jpeg", ".png", ".webp"}


def _is_picture(entry: FolderEntry) -> bool:
    return not entry.fault and entry.path.suffix.lower() in PICTURES and entry.path.is_file()


def _list_class_folders(top: Sequence[FolderEntry]) -> list[FolderEntry]:
    """All that the class folders hold."""
    folders = [entry.path for entry in top if not entry.fault and entry.path.is_dir()]
    return [entry for folder in folders for entry in list_entries(folder)]


def _count_pictures(folder: Path) -> int:
    """How many pictures a folder holds, by their names."""
    try:
        return sum(os.path.splitext(name)[1].lower() in PICTURES for name in os.listdir(folder))
    except OSError:  # it is listed with the reason
        return 0


def _describe_loose(entry: FolderEntry) -> str:
    return "the picture is in no class folder" if _is_picture(entry) else _describe_other(entry.path)


def _describe_other(path: Path) -> str:
    if path.is_dir():
        return "it is a folder inside a class folder, which is not read"
    return "the file is not a JPEG, PNG or WebP picture"


@dataclass(frozen=True)
class FolderSource:
    """Photos as `<label>/<name>.jpg`, masks as `<label>/<name>.png` in a folder beside."""

    images: Path
    masks: Path | None = None

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every sample in the order of its path, and what was skipped: together all that the folders list."""
        top = self._list_top()
        strays = self._list_loose(top)
        folders = [entry.path for entry in top if not entry.fault and entry.path.is_dir()]
        extent = Extent(stage="reading the photos", unit="photos", total=sum(map(_count_pictures, folders)), brief=True)
        files = self._list_pictures(folders, strays)
        samples, left_out = pack_samples(show_progress(map_files(self._sample, files), extent))
        if not len(samples) + len(left_out):
            first = f"; {strays[0].sample_id} was left out because {strays[0].reason}" if strays else ""
            raise UserError(
                f"expected pictures as <label>/<name>.jpg (.png, .webp) under {self.images}, found none{first};"
                f" give the folder that holds the class folders"
            )
        return samples, [*strays, *left_out]

    @property
    def labels(self) -> Sequence[str]:
        """The class folders that hold pictures, whether or not these can be used."""
        folders = {entry.path.parent.name for entry in _list_class_folders(self._list_top()) if _is_picture(entry)}
        return sorted(name for name in folders if make_readable(name) == name)

    def _list_top(self) -> list[FolderEntry]:
        """The class folders and what lies beside them."""
        for folder in (self.images, self.masks):
            if folder is not None and not folder.is_dir():
                what = "is a file" if folder.exists() else "is not there"
                raise UserError(f"expected a folder, got '{folder}', which {what}; check the path")
        return list_entries(self.images)

    def _list_loose(self, top: Sequence[FolderEntry]) -> list[Skipped]:
        """What lies beside the class folders: loose pictures, other files, dangling links, FIFOs."""
        return [
            Skipped(make_readable(entry.path.name), "source", "", entry.fault or _describe_loose(entry))
            for entry in top
            if entry.fault or not (entry.path.is_dir() or entry.path.name == LICENCES)
        ]

    def _list_pictures(self, folders: Sequence[Path], strays: list[Skipped]) -> Iterator[Path]:
        """The pictures of class folders, one folder in memory at a time; what else they hold is added to `strays`."""
        for folder in folders:
            for entry in list_entries(folder):
                if _is_picture(entry):
                    yield entry.path
                    continue
                reason = entry.fault or _describe_other(entry.path)
                strays.append(Skipped(make_readable(self._name(entry.path)), "source", "", reason))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.images).as_posix()

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
            digest = hashlib.sha256(read_user_file(path))
            digest.update(b"mask" + read_user_file(mask) if mask else b"")
        except Unusable as error:
            return Skipped(name, "source", "", str(error))
        inside = None if mask is None else f"{label}/{mask.name}"
        inside = name if inside == name else inside  # one text for both: there may be a million photos
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
        photo = read_user_file(self.images / sample.image)
        if sample.mask is None or self.masks is None:
            check_digest(sample, photo)
            return decode_with_mask(photo, None)
        try:
            encoded = read_user_file(self.masks / sample.mask)
        except Unusable as error:
            raise Unusable(f"the mask cannot be used: {error}") from error
        check_digest(sample, photo, b"mask", encoded)
        return decode_with_mask(photo, encoded)


def decode_with_mask(photo: bytes, encoded: bytes | None) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
    """The pixels of a photo, upright, and of its mask where there is one; raises `Unusable` with the reason."""
    image = decode_photo(photo)
    if encoded is None:
        return image, None
    try:
        mask = decode_mask(encoded)
    except Unusable as error:
        raise Unusable(f"the mask cannot be used: {error}") from error
    check_mask_size(mask, image)
    return image, mask
