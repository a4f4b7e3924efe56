"""A source whose photos, labels and masks are listed by a file of annotations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.source.reading import photo_of
from counterfoil.types import Sample, Skipped

Mask: TypeAlias = NDArray[np.uint8]  # (height, width), 255 on the object


@dataclass(frozen=True)
class Listed:
    """One photo of the list: where its bytes are, and how its mask is drawn once its size is known."""

    id: str
    label: str
    image: str
    photo: Callable[[], bytes]
    mask: Callable[[tuple[int, int]], Mask] | None  # of (height, width)
    annotation: str = ""  # what the mask is drawn from: part of the sample's digest


@dataclass(frozen=True)
class ListedSource:
    """Photos as an annotation file lists them."""

    images: str  # the address, such as "coco:annotations.json"
    listed: tuple[Listed, ...]
    left_out: tuple[Skipped, ...] = ()

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every photo in the order of its id, and what had to be left out."""
        found = [self._sample(entry) for entry in sorted(self.listed, key=lambda entry: entry.id)]
        samples = [item for item in found if isinstance(item, Sample)]
        if not samples:
            reasons = [*self.left_out, *(item for item in found if isinstance(item, Skipped))]
            first = f"; the first was left out because {reasons[0].reason}" if reasons else ""
            raise UserError(f"expected photos with a label in {self.images}, found none{first}")
        return samples, [*self.left_out, *(item for item in found if isinstance(item, Skipped))]

    def _sample(self, entry: Listed) -> Sample | Skipped:
        try:
            digest = hashlib.sha256(entry.photo())
        except Unusable as error:
            return Skipped(entry.id, "source", "", str(error))
        digest.update(f"mask {entry.annotation}".encode())
        return Sample(entry.id, entry.label, entry.image, entry.image if entry.mask else None, digest.hexdigest())

    @cached_property
    def _entries(self) -> dict[str, Listed]:
        return {entry.id: entry for entry in self.listed}

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], Mask | None]:
        """The photo, upright, and its mask where one is listed."""
        entry = self._entries[sample.id]
        image = photo_of(entry.photo())
        size = (image.shape[0], image.shape[1])
        mask = entry.mask(size) if entry.mask else None
        if mask is not None and mask.shape != size:
            raise Unusable(f"the mask is {mask.shape[1]} x {mask.shape[0]} pixels, the photo {size[1]} x {size[0]}")
        return image, mask


def file_bytes(path: Path) -> Callable[[], bytes]:
    """The bytes of a file when asked for."""

    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise Unusable(f"the file {path.name} cannot be read: {error.strerror}") from error

    return read


def json_of(path: Path, what: str) -> Any:
    """What a JSON file holds; `what` was expected there."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"expected {what} in '{path}', which cannot be read: {error.strerror}; check the path"
        ) from error
    except ValueError as error:
        raise UserError(f"expected {what} in '{path}', which is no JSON: {error}") from error


def photo_under(folders: Sequence[Path], name: str) -> Path | None:
    """Where a listed photo lies; never outside of these folders, whatever the list says."""
    for folder in folders:
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            return path
    return None


def largest(areas: Mapping[str, float]) -> str:
    """The label whose regions cover most: what the picture is of; of equal ones the first by name."""
    return min(areas, key=lambda label: (-areas[label], label))
