"""Photos and masks in class folders at an address of object storage, with a bounded cache on the local disk.

Names, digests and refusals are those of a local folder, so a run gives the same tables. The photos are listed and
hashed once, when the run is planned. A photo that is read again, as a donor is, comes from the cache; what is there is
kept under its digest, which every reading compares.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.annotations import check_digest, make_readable, skip_duplicates
from counterfoil.sources.bounded_reads import map_files, refuse_oversized
from counterfoil.sources.folder import LICENCES, PICTURES, REVIEW, decode_with_mask, read_licences, read_review
from counterfoil.sources.photo_cache import PhotoCache, open_photo_cache
from counterfoil.store.object_storage import ObjectStorage, StoredFile
from counterfoil.types import Sample, Skipped

_AT_ONCE = 16  # calls


@dataclass(frozen=True)
class RemoteFolderSource:
    """Photos as `<label>/<name>.jpg` below one address, masks as `<label>/<name>.png` below another."""

    images: str
    masks: str | None = None

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every sample in the order of its path, and what was skipped: together all that the address lists."""
        listed = self._list()
        photos = [file for file in listed if _is_photo(file.name)]
        strays = list(_list_strays(listed))
        if not photos:
            first = f"; {strays[0].sample_id} was left out because {strays[0].reason}" if strays else ""
            raise UserError(
                f"expected pictures as <label>/<name>.jpg (.png, .webp) under {self.images}, found none{first};"
                f" give the address that holds the class folders"
            )
        masks = None if self._mask_files is None else {file.name for file in self._mask_files.list_files()}
        extent = Extent(stage="reading the photos", unit="photos", total=len(photos), brief=True)
        made = map_files(lambda file: self._sample(file, masks), photos, _AT_ONCE)
        checked = skip_duplicates(list(show_progress(made, extent)))
        samples = [item for item in checked if isinstance(item, Sample)]
        return samples, [*strays, *(item for item in checked if isinstance(item, Skipped))]

    @property
    def labels(self) -> Sequence[str]:
        """The class folders that hold pictures, whether or not these can be used."""
        return sorted({_label(file.name) for file in self._list() if _is_photo(file.name)})

    def _list(self) -> list[StoredFile]:
        return [file for file in self._photo_files.list_files() if not _is_hidden(file.name)]

    @cached_property
    def _photo_files(self) -> ObjectStorage:
        return ObjectStorage(self.images)

    @cached_property
    def _mask_files(self) -> ObjectStorage | None:
        return None if self.masks is None else ObjectStorage(self.masks)

    @cached_property
    def _cache(self) -> PhotoCache:
        return open_photo_cache()

    @cached_property
    def _licences(self) -> dict[str, tuple[str, str]]:
        with _local_copy(self._photo_files, LICENCES) as path:
            return read_licences(path)

    @cached_property
    def _review(self) -> dict[str, str]:
        if self._mask_files is None:
            return {}
        with _local_copy(self._mask_files, REVIEW) as path:
            return read_review(path.parent)

    def __getstate__(self) -> dict[str, str | None]:
        return {"images": self.images, "masks": self.masks}  # connections and cache are each process's own

    def _sample(self, file: StoredFile, masks: set[str] | None) -> Sample | Skipped:
        name = file.name
        if self._review.get(name) == "rejected":
            return Skipped(name, "source", "", "the photo was rejected in the review of masks")
        mask = None if masks is None else f"{_label(name)}/{PurePosixPath(name).stem}.png"
        if masks is not None and mask not in masks:
            return Skipped(name, "source", "", f"there is no mask {mask}")
        origin, licence = self._licences.get(name, ("", ""))
        sample = Sample(id=name, label=_label(name), image=name, mask=mask, digest="", origin=origin, licence=licence)
        try:
            refuse_oversized(file.size)
            return replace(sample, digest=_hash(self._fetch(sample)))
        except Unusable as error:
            return Skipped(name, "source", "", str(error))

    def _fetch(self, sample: Sample) -> list[bytes]:
        """The bytes of photo and mask from the address."""
        places = [(self._photo_files, sample.image)]
        if self._mask_files is not None and sample.mask is not None:
            places.append((self._mask_files, sample.mask))
        contents = []
        for storage, name in places:
            try:
                contents.append(storage.read(name))
            except FileNotFoundError as error:
                raise Unusable(f"the file cannot be read: {storage.address}/{name} is not there") from error
            refuse_oversized(len(contents[-1]))
        return contents

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        """The photo's pixels, upright, and its mask where there is one."""
        contents = self._read_cached(sample) or self._read_stored(sample)
        return decode_with_mask(contents[0], contents[1] if len(contents) > 1 else None)

    def _read_cached(self, sample: Sample) -> list[bytes]:
        """The bytes from the cache; none where they are not there or damaged."""
        parts = range(1 if sample.mask is None else 2)
        contents = [self._cache.read(_cache_name(sample, part)) for part in parts]
        whole = [content for content in contents if content is not None]
        return whole if len(whole) == len(contents) and _hash(whole) == sample.digest else []

    def _read_stored(self, sample: Sample) -> list[bytes]:
        """The bytes from the address, which is asked again where they are not those that were listed."""
        contents = self._fetch(sample)
        if _hash(contents) != sample.digest:
            contents = self._fetch(sample)
        check_digest(sample, b"mask".join(contents))
        for part, content in enumerate(contents):
            self._cache.write(_cache_name(sample, part), content)
        return contents


def _hash(contents: Sequence[bytes]) -> str:
    """The digest of a sample, as a local folder has it."""
    return hashlib.sha256(b"mask".join(contents)).hexdigest()


def _cache_name(sample: Sample, part: int) -> str:
    return f"{sample.digest}-{part}"


@contextmanager
def _local_copy(storage: ObjectStorage, name: str) -> Iterator[Path]:
    """The path of a copy of a small file, inside the block; nothing is at the path where there is no such file."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        path = Path(folder) / name
        with suppress(FileNotFoundError):
            path.write_bytes(storage.read(name))
        yield path


def _label(name: str) -> str:
    return name.split("/")[0]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _is_photo(name: str) -> bool:
    return name.count("/") == 1 and PurePosixPath(name).suffix.lower() in PICTURES


def _list_strays(files: Sequence[StoredFile]) -> Iterator[Skipped]:
    """What the address lists besides the pictures of class folders."""
    for file in files:
        depth, is_picture = file.name.count("/"), PurePosixPath(file.name).suffix.lower() in PICTURES
        if depth == 0 and is_picture:
            yield Skipped(make_readable(file.name), "source", "", "the picture is in no class folder")
        elif depth == 1 and not is_picture:
            yield Skipped(make_readable(file.name), "source", "", "the file is not a JPEG, PNG or WebP picture")
    folders = sorted({"/".join(file.name.split("/")[:2]) for file in files if file.name.count("/") > 1})
    for folder in folders:
        yield Skipped(folder, "source", "", "it is a folder inside a class folder, which is not read")
