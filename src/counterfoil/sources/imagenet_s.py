"""Photos of ImageNet-S with the masks of their classes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.labels.benchmark_classes import imagenet_s_ids
from counterfoil.sources.annotations import make_readable
from counterfoil.sources.bounded_reads import map_files, read_user_file
from counterfoil.sources.folder_entries import FolderEntry, list_entries
from counterfoil.sources.pixels import check_mask_size, read_as_stored
from counterfoil.types import Sample, Skipped, SourceBase

PREFIX = "imagenet-s:"
_SPLITS = ("validation", "train-semi")  # those that have masks
_SMALLER = {"ImageNetS50": 50, "ImageNetS300": 300}  # numbers of classes; their masks count only these
_PICTURES = {".jpg", ".jpeg", ".png"}


@dataclass(frozen=True)
class ImageNetSSource(SourceBase):
    """Photos as `validation/<wnid>/<name>.JPEG`, masks as `validation-segmentation/<wnid>/<name>.png`.

    A mask's pixel is R + 256 G: 0 for other things, 1000 for undecided, else a class. The object is the region of the
    photo's own class. Photos are not rotated by EXIF: their masks were drawn on the pixels as stored.
    """

    folder: Path

    @property
    def images(self) -> str:
        """The address in a run's record."""
        return f"{PREFIX}{self.folder}"

    @cached_property
    def _split(self) -> Path:
        """The folder of photos that has masks beside it: the given one, or the first below it."""
        tops = (self.folder, *(self.folder / name for name in ("ImageNetS919", *_SMALLER)))
        places = [self.folder, *(top / split for top in tops for split in _SPLITS)]
        for place in places:
            if place.is_dir() and _mask_folder(place).is_dir():
                return place
        raise UserError(
            f"expected ImageNet-S with validation and validation-segmentation (or train-semi) at '{self.folder}',"
            " found no such pair of folders; give the folder that holds them"
        )

    @cached_property
    def _number_of(self) -> dict[str, int]:
        """The number of each class in the masks."""
        classes = _SMALLER.get(self._split.parent.name)
        if classes is None:
            return imagenet_s_ids()
        names = sorted(folder.name for folder in self._split.iterdir() if folder.is_dir())
        if len(names) != classes:
            raise UserError(
                f"expected {classes} class folders in '{self._split}', got {len(names)}: the numbers of the classes"
                " are known for the whole set alone"
            )
        return {name: number for number, name in enumerate(names, 1)}

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every photo that has a mask, in the order of its path, and what was skipped."""
        checked = [*self._list_faulty_folders(), *map_files(self._sample, list(self._files()))]
        samples = [item for item in checked if isinstance(item, Sample)]
        if not samples:
            raise UserError(f"expected photos as <wnid>/<name>.JPEG with masks in '{self._split}', found none")
        return samples, [item for item in checked if isinstance(item, Skipped)]

    def _list_faulty_folders(self) -> list[Skipped]:
        """Class folders that are dangling links, or something else that is neither file nor folder."""
        return [
            Skipped(make_readable(entry.path.name), "source", "", entry.fault)
            for entry in list_entries(self._split)
            if entry.fault
        ]

    def _files(self) -> Iterator[FolderEntry]:
        for folder in list_entries(self._split):
            if not folder.fault and folder.path.is_dir():
                yield from list_entries(folder.path)

    def _sample(self, entry: FolderEntry) -> Sample | Skipped:
        path = entry.path
        if entry.fault:
            return Skipped(make_readable(path.relative_to(self._split).as_posix()), "source", "", entry.fault)
        name = f"{path.parent.name}/{path.name}"
        if name != (readable := make_readable(name)):
            return Skipped(readable, "source", "", "the file's name is not UTF-8 text")
        if path.suffix.lower() not in _PICTURES or path.parent.name not in self._number_of:
            return Skipped(name, "source", "", "the file is no part of ImageNet-S")
        mask = _mask_folder(self._split) / path.parent.name / f"{path.stem}.png"
        if not mask.is_file():
            return Skipped(name, "source", "", f"there is no mask {path.parent.name}/{mask.name}")
        try:
            digest = hashlib.sha256(read_user_file(path) + b"mask" + read_user_file(mask)).hexdigest()
        except Unusable as error:
            return Skipped(name, "source", "", str(error))
        return Sample(
            id=name,
            label=path.parent.name,
            image=name,
            mask=f"{path.parent.name}/{mask.name}",
            digest=digest,
            origin="ImageNet-S",
        )

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        """The photo's pixels and the mask of its own class."""
        image = read_as_stored(self._split / sample.image)
        numbers = _read_class_numbers(_mask_folder(self._split) / str(sample.mask))
        check_mask_size(numbers, image)
        mask = np.where(numbers == self._number_of[Path(sample.image).parent.name], 255, 0).astype(np.uint8)
        if not mask.any():
            raise Unusable("the mask has no pixel of the photo's class")
        return image, mask


def _mask_folder(split: Path) -> Path:
    return split.with_name(f"{split.name}-segmentation")


def _read_class_numbers(path: Path) -> NDArray[np.int64]:
    """The class number of every pixel."""
    try:
        encoded = np.frombuffer(read_user_file(path), np.uint8)
        picture = cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB) if encoded.size else None
    except (Unusable, cv2.error):  # missing, or too large for OpenCV
        picture = None
    if picture is None:
        raise Unusable("the mask is broken")
    red, green = picture[:, :, 0].astype(np.int64), picture[:, :, 1].astype(np.int64)
    return np.asarray(red + 256 * green)
