"""Photos listed in an annotation file, and functions that the readers of annotation formats share."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.bounded_reads import read_user_file
from counterfoil.sources.coco_masks import Mask
from counterfoil.sources.pixels import check_mask_size, decode_photo
from counterfoil.store.sample_table import SampleTable
from counterfoil.types import Sample, Skipped, SourceBase

_ROWS_AT_ONCE = 4096  # samples that are objects before they are put into columns


@dataclass(frozen=True)
class AnnotatedPhoto:
    """One listed photo: how to read its bytes, and how to draw its mask once its size is known."""

    id: str
    label: str
    image: str
    photo: Callable[[], bytes]
    mask: Callable[[tuple[int, int]], Mask] | None  # of (height, width)
    annotation: str = ""  # what the mask is drawn from: part of the sample's digest


@dataclass(frozen=True)
class AnnotationSource(SourceBase):
    """Photos listed in an annotation file."""

    images: str  # the address, such as "coco:annotations.json"
    listed: tuple[AnnotatedPhoto | Skipped, ...]  # in the order of the list

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every photo in the order of its id, and what was skipped."""
        entries = sorted(self._entries.values(), key=lambda entry: entry.id)
        extent = Extent(stage="reading the photos", unit="photos", total=len(entries), brief=True)
        checked = skip_duplicates([self._sample(entry) for entry in show_progress(entries, extent)])
        samples = [item for item in checked if isinstance(item, Sample)]
        unlisted = [row for row in self.listed if isinstance(row, Skipped)]
        readable = [
            replace(row, sample_id=make_readable(row.sample_id), reason=make_readable(row.reason)) for row in unlisted
        ]
        left_out = [*readable, *(item for item in checked if isinstance(item, Skipped))]
        if not samples:
            first = f"; the first was left out because {left_out[0].reason}" if left_out else ""
            raise UserError(f"expected photos with a label in {self.images}, found none{first}")
        return samples, left_out

    def _sample(self, entry: AnnotatedPhoto) -> Sample | Skipped:
        if entry.id != (readable := make_readable(entry.id)):
            return Skipped(readable, "source", "", "its name or label is not UTF-8 text")
        if not entry.label.strip():
            return Skipped(entry.id, "source", "", "its label is empty")
        try:
            digest = hashlib.sha256(entry.photo())
        except Unusable as error:
            return Skipped(entry.id, "source", "", str(error))
        digest.update(f"mask {entry.annotation}".encode())
        return Sample(
            id=entry.id,
            label=entry.label,
            image=entry.image,
            mask=entry.image if entry.mask else None,
            digest=digest.hexdigest(),
        )

    @cached_property
    def _entries(self) -> dict[str, AnnotatedPhoto]:
        """The photos by id; where names repeat over folders or shards they are numbered, in the order of the list."""
        entries: dict[str, AnnotatedPhoto] = {}
        times: Counter[str] = Counter()
        for entry in self.listed:
            if isinstance(entry, Skipped):
                continue
            name = entry.id
            while name in entries:
                times[entry.id] += 1
                name = f"{entry.id}-{times[entry.id] + 1}"
            entries[name] = replace(entry, id=name)
        return entries

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], Mask | None]:
        """The photo, upright, and its mask where one is listed."""
        entry = self._entries[sample.id]
        photo = entry.photo()
        check_digest(sample, photo, f"mask {entry.annotation}".encode())
        image = decode_photo(photo)
        if entry.mask is None:
            return image, None
        mask = _draw_mask(entry.mask, (image.shape[0], image.shape[1]))
        check_mask_size(mask, image)
        return image, mask


def check_digest(sample: Sample, *contents: bytes) -> None:
    """Raises `UserError` where photo and mask are not those that were listed: every worker reads the same."""
    if sample.digest and hashlib.sha256(b"".join(contents)).hexdigest() != sample.digest:
        raise UserError(
            f"expected the photo {sample.id} as it was listed, but photo or mask has changed since; make a new run of"
            " the photos as they are now"
        )


def skip_duplicates(samples: Sequence[Sample | Skipped]) -> list[Sample | Skipped]:
    """The samples; of identical photos, as in two splits, the first is kept and the others are skipped."""
    first: dict[tuple[str, str], str] = {}
    return [
        item
        if isinstance(item, Skipped) or first.setdefault((item.digest, item.label), item.id) == item.id
        else Skipped(item.id, "source", "", f"the same photo as {first[item.digest, item.label]}")
        for item in samples
    ]


def pack_samples(items: Iterable[Sample | Skipped]) -> tuple[SampleTable, list[Skipped]]:
    """Samples in columns, and what is skipped; of identical photos the first is kept, the others are skipped."""
    tables: list[SampleTable] = []
    rows: list[Sample] = []
    left_out: dict[int, Skipped] = {}  # by place
    for place, item in enumerate(items):
        if isinstance(item, Skipped):
            left_out[place] = item
            continue
        rows.append(item)
        if len(rows) == _ROWS_AT_ONCE:
            tables.append(SampleTable(rows))
            rows = []
    packed = SampleTable.join([*tables, SampleTable(rows)])
    if not packed.has_doubles():
        return packed, [*left_out.values()]
    others = iter(packed)
    places = range(len(packed) + len(left_out))
    checked = skip_duplicates([left_out[place] if place in left_out else next(others) for place in places])
    kept = [item for item in checked if isinstance(item, Sample)]
    return SampleTable(kept), [item for item in checked if isinstance(item, Skipped)]


def make_readable(text: str) -> str:
    """The text as valid UTF-8; JSON may hold lone surrogates, which cannot be written to files."""
    return text.encode("utf-8", "backslashreplace").decode()


def _draw_mask(draw: Callable[[tuple[int, int]], Mask], size: tuple[int, int]) -> Mask:
    """The mask; raises `Unusable` where the listed shapes cannot be drawn."""
    try:
        return draw(size)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise Unusable(f"the mask's annotation cannot be understood: {error}") from error


def make_file_reader(path: Path) -> Callable[[], bytes]:
    """A function that reads the bytes of a file."""

    def read() -> bytes:
        try:
            return read_user_file(path)
        except Unusable as error:
            raise Unusable(f"{path.name}: {error}") from error

    return read


def read_json_file(path: Path, what: str) -> Any:
    """The content of a JSON file; raises `UserError`, naming `what` was expected."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"expected {what} in '{path}', which cannot be read: {error.strerror}; check the path"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"expected {what} in '{path}', which is no JSON: {error}") from error


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, stripped."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise UserError(f"expected text in UTF-8 in '{path}', got something else: {error}") from error


def find_photo(folders: Sequence[Path], name: str) -> Path | None:
    """The path of a listed photo inside these folders; None where there is none."""
    for folder in folders:
        path = folder / name
        try:
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                return path
        except OSError:  # a name that no file can have, such as one that is too long
            continue
    return None


def choose_largest(areas: Mapping[str, float]) -> str:
    """The label whose regions cover most; of equal ones the first by name."""
    return min(areas, key=lambda label: (-areas[label], label))
