"""Source listed by an annotation file; polygons and run lengths to masks and back."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.pixels import decode_photo
from counterfoil.types import Sample, Skipped, SourceBase

Mask: TypeAlias = NDArray[np.uint8]  # (height, width), 255 on the object


@dataclass(frozen=True)
class AnnotatedPhoto:
    """One photo of the list: where its bytes are, and how its mask is drawn once its size is known."""

    id: str
    label: str
    image: str
    photo: Callable[[], bytes]
    mask: Callable[[tuple[int, int]], Mask] | None  # of (height, width)
    annotation: str = ""  # what the mask is drawn from: part of the sample's digest


@dataclass(frozen=True)
class AnnotationSource(SourceBase):
    """Photos as an annotation file lists them."""

    images: str  # the address, such as "coco:annotations.json"
    found: tuple[AnnotatedPhoto | Skipped, ...]  # in the order of the list

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every photo in the order of its id, and what had to be left out."""
        found = _once([self._sample(entry) for entry in sorted(self._entries.values(), key=lambda entry: entry.id)])
        samples = [item for item in found if isinstance(item, Sample)]
        unlisted = [row for row in self.found if isinstance(row, Skipped)]
        left_out = [*map(_written, unlisted), *(item for item in found if isinstance(item, Skipped))]
        if not samples:
            first = f"; the first was left out because {left_out[0].reason}" if left_out else ""
            raise UserError(f"expected photos with a label in {self.images}, found none{first}")
        return samples, left_out

    def _sample(self, entry: AnnotatedPhoto) -> Sample | Skipped:
        if entry.id != (readable := _readable(entry.id)):
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
        """The photos by id; those of one name in several folders or shards are numbered, in the order of the list."""
        found: dict[str, AnnotatedPhoto] = {}
        times: Counter[str] = Counter()
        for entry in self.found:
            if isinstance(entry, Skipped):
                continue
            name = entry.id
            while name in found:
                times[entry.id] += 1
                name = f"{entry.id}-{times[entry.id] + 1}"
            found[name] = replace(entry, id=name)
        return found

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], Mask | None]:
        """The photo, upright, and its mask where one is listed."""
        entry = self._entries[sample.id]
        image = decode_photo(entry.photo())
        size = (image.shape[0], image.shape[1])
        mask = _drawn(entry.mask, size) if entry.mask else None
        if mask is not None and mask.shape != size:
            raise Unusable(f"the mask is {mask.shape[1]} x {mask.shape[0]} pixels, the photo {size[1]} x {size[0]}")
        return image, mask


def _once(found: Sequence[Sample | Skipped]) -> list[Sample | Skipped]:
    """The same photo twice, as in two splits, would count twice in every mean: the first one stays."""
    first: dict[tuple[str, str], str] = {}
    return [
        item
        if isinstance(item, Skipped) or first.setdefault((item.digest, item.label), item.id) == item.id
        else Skipped(item.id, "source", "", f"the same photo as {first[item.digest, item.label]}")
        for item in found
    ]


def _readable(text: str) -> str:
    """The text as UTF-8 has it: JSON may hold halves of characters, which no file takes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _written(row: Skipped) -> Skipped:
    return replace(row, sample_id=_readable(row.sample_id), reason=_readable(row.reason))


def _drawn(draw: Callable[[tuple[int, int]], Mask], size: tuple[int, int]) -> Mask:
    """The mask; a list may hold anything where numbers should be, and only drawing finds out."""
    try:
        return draw(size)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise Unusable(f"the mask's annotation cannot be understood: {error}") from error


def make_file_reader(path: Path) -> Callable[[], bytes]:
    """The bytes of a file when asked for."""

    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise Unusable(f"the file {path.name} cannot be read: {error.strerror}") from error

    return read


def read_json_file(path: Path, what: str) -> Any:
    """What a JSON file holds; `what` was expected there."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"expected {what} in '{path}', which cannot be read: {error.strerror}; check the path"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"expected {what} in '{path}', which is no JSON: {error}") from error


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, without what surrounds them."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise UserError(f"expected text in UTF-8 in '{path}', got something else: {error}") from error


def find_photo(folders: Sequence[Path], name: str) -> Path | None:
    """Where a listed photo lies; never outside of these folders, whatever the list says."""
    for folder in folders:
        path = folder / name
        try:
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                return path
        except OSError:  # a name that no file can have, such as one that is too long
            continue
    return None


def choose_largest(areas: Mapping[str, float]) -> str:
    """The label whose regions cover most: what the picture is of; of equal ones the first by name."""
    return min(areas, key=lambda label: (-areas[label], label))


_FINER = 8  # polygons are filled on a grid so much finer, and a pixel counts where most of it is inside
_COARSER = 2  # the same for pictures past this many pixels, where a border pixel matters less than the memory
_MANY_PIXELS = 2_000_000
_INSIDE = 0.55  # of a pixel; more than half because OpenCV fills the border line too
_CHARACTER_ZERO = 48


def draw_polygons(polygons: Sequence[Sequence[float]], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The mask, (height, width), 255 inside any of the polygons, each x, y, x, y ... in pixels."""
    height, width = size
    finer = _FINER if height * width <= _MANY_PIXELS else _COARSER
    fine = np.zeros((height * finer, width * finer), np.uint8)
    for polygon in polygons:
        if len(polygon) < 6 or len(polygon) % 2:
            raise Unusable(f"a polygon has {len(polygon)} coordinates, which are no three points")
        points = np.asarray(polygon, np.float64).reshape(-1, 2)
        if not np.isfinite(points).all():
            raise Unusable("a polygon has a point that is not finite")
        scaled = np.rint(points * finer - 0.5).clip(-(2**20), 2**20)  # first: what no integer holds turns negative
        cv2.fillPoly(fine, [scaled.astype(np.int32)], 1)
    inside = fine.reshape(height, finer, width, finer).sum(axis=(1, 3), dtype=np.int32)
    return np.where(inside >= _INSIDE * finer * finer, 255, 0).astype(np.uint8)


def decode_run_lengths(said: Mapping[str, Any], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The mask of COCO's run lengths: column by column, beginning with the background; a text packs the numbers."""
    numbers = _counts(said)
    height, width = size
    if list(said.get("size", size)) != [height, width] or sum(numbers) != height * width:
        raise Unusable(f"the run lengths do not fill {width} x {height} pixels")
    values = np.resize(np.array([0, 255], np.uint8), len(numbers))
    return np.asarray(np.repeat(values, numbers).reshape(width, height).T.copy(), np.uint8)


def check_photo_size(told: tuple[Any, Any], size: tuple[int, int]) -> None:
    """Regions of a photo that was turned or resized since lie elsewhere in it; files that tell no size are trusted."""
    if all(isinstance(side, int) and side > 0 for side in told) and told != size:
        raise Unusable(
            f"its regions were drawn on {told[1]} x {told[0]} pixels, the photo has {size[1]} x {size[0]} (upright)"
        )


def measure_area(region: Any) -> float:
    """How many pixels polygons or run lengths cover; overlaps count twice."""
    if isinstance(region, Mapping):
        return float(sum(_counts(region)[1::2]))
    points = [np.asarray(polygon, np.float64).reshape(-1, 2).T for polygon in region]
    return sum(0.5 * abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) for x, y in points)


def _counts(said: Mapping[str, Any]) -> list[int]:
    counts = said.get("counts")
    numbers = _unpacked(counts) if isinstance(counts, str | bytes) else counts
    if not isinstance(numbers, list) or any(not isinstance(number, int) or number < 0 for number in numbers):
        raise Unusable("the run lengths are no list of numbers")
    return numbers


def encode_run_lengths(mask: NDArray[np.uint8]) -> dict[str, Any]:
    """A mask as COCO's run lengths, the numbers unpacked."""
    column_by_column = (mask >= 128).T.ravel()
    edges = np.flatnonzero(np.diff(column_by_column)) + 1
    counts = np.diff([0, *edges.tolist(), column_by_column.size]).tolist()
    return {"size": list(mask.shape), "counts": [0, *counts] if column_by_column[0] else counts}


def find_bounding_box(mask: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Left, top, width and height of the object; zeros where there is none."""
    rows, columns = (np.flatnonzero((mask >= 128).any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return 0, 0, 0, 0
    left, top = int(columns[0]), int(rows[0])
    return left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1


def _unpacked(text: str | bytes) -> list[int]:
    """Numbers of six bits a character, five of them digits, the lowest first; from the third on as differences."""
    data = text.encode("ascii", "replace") if isinstance(text, str) else text
    numbers: list[int] = []
    place = 0
    while place < len(data):
        value, place = _one_number(data, place)
        numbers.append(value + (numbers[-2] if len(numbers) > 2 else 0))
    return numbers


def _one_number(data: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while place < len(data):
        digits = data[place] - _CHARACTER_ZERO
        if not 0 <= digits < 64:
            raise Unusable("the packed run lengths hold a character that means nothing there")
        value |= (digits & 31) << shift
        shift, place = shift + 5, place + 1
        if not digits & 32:
            return (value - (1 << shift) if digits & 16 else value), place
    raise Unusable("the packed run lengths end in the middle of a number")
