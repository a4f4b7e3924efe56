"""Photos given to Python as objects: lists, data sets of torch and Hugging Face, data frames.

Every kind becomes a list of entries, each with a label and a function that reads its picture and mask, and the list is
one `ObjectSource`. A photo's digest is that of its pixels, so seeds and resumed runs depend on content alone.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.plugins import read_optional, reporting_errors
from counterfoil.progress import Extent, show_progress
from counterfoil.sources.annotations import make_readable, skip_duplicates
from counterfoil.sources.picture_objects import convert_image, convert_mask
from counterfoil.sources.pixels import check_mask_size
from counterfoil.types import Sample, Skipped, SourceBase

SCHEME = "objects:"  # of the address in the record of a run; it says what was given and cannot be opened again
_IMAGE = ("image", "img", "picture", "pixel_values", "path", "file", "filename", "file_name", "filepath", "image_path")
_LABEL = ("label", "labels", "class", "class_name", "target", "fine_label")
_MASK = ("mask", "annotation", "segmentation", "mask_path")
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class PhotoObject:
    """One photo of a list: its label, and how to get the image and the mask as they were given."""

    label: str
    fetch: Callable[[], tuple[Any, Any]]  # image, mask or None


@dataclass(frozen=True)
class ObjectSource(SourceBase):
    """Photos given as objects; read one at a time, since a data set may not allow more."""

    images: str  # "objects:" and what was given, in words
    listed: tuple[PhotoObject | Skipped, ...] = field(repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @cached_property
    def labels(self) -> Sequence[str]:
        """The classes of the photos, sorted."""
        return sorted({entry.label for entry in self.listed if isinstance(entry, PhotoObject)})

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every photo in the order of its id, and what was skipped."""
        self._check_repeatable()
        extent = Extent(stage="reading the photos", unit="photos", total=len(self._entries), brief=True)
        ids = sorted(self._entries)
        checked = skip_duplicates([self._sample(name) for name in show_progress(ids, extent)])
        samples = [item for item in checked if isinstance(item, Sample)]
        skipped = [row for row in (*self.listed, *checked) if isinstance(row, Skipped)]
        if not samples:
            first = f"; the first was left out because {skipped[0].reason}" if skipped else ""
            raise UserError(f"expected pictures with labels in {self._words}, found none{first}")
        return samples, skipped

    @property
    def _words(self) -> str:
        return self.images.removeprefix(SCHEME)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """For each photo's id, its place in the list."""
        width = len(str(max(0, len(self.listed) - 1)))
        numbered = ((place, entry) for place, entry in enumerate(self.listed) if isinstance(entry, PhotoObject))
        return {f"{make_readable(entry.label)}/{place:0{width}d}": place for place, entry in numbered}

    @cached_property
    def _entries(self) -> dict[str, PhotoObject]:
        entries = ((name, self.listed[place]) for name, place in self.places.items())
        return {name: entry for name, entry in entries if isinstance(entry, PhotoObject)}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.images, self.listed)  # a copy in another process has a lock of its own

    def _check_repeatable(self) -> None:
        """Raises `UserError` where a photo has other pixels when it is read again: its variants would be of another."""
        for name in list(self._entries)[:1]:
            try:
                first, second = self._read(name)[0], self._read(name)[0]
            except Unusable:
                return
            if first.shape != second.shape or (first != second).any():
                raise UserError(
                    f"expected the same picture each time from {self._words}, got different ones for the first;"
                    " take random transforms out of the data set"
                )

    def _sample(self, name: str) -> Sample | Skipped:
        entry = self._entries[name]
        if not entry.label.strip():
            return Skipped(name, "source", "", "its label is empty")
        if make_readable(entry.label) != entry.label:
            return Skipped(name, "source", "", "its label is no text in UTF-8")
        try:
            image, mask = self._read(name)
        except Unusable as error:
            return Skipped(name, "source", "", str(error))
        digest = hashlib.sha256(repr(image.shape).encode())
        digest.update(np.ascontiguousarray(image).data)
        digest.update(b"mask" + mask.tobytes() if mask is not None else b"")
        return Sample(
            id=name, label=entry.label, image=name, mask=None if mask is None else name, digest=digest.hexdigest()
        )

    def read(self, sample: Sample) -> tuple[Pixels, Pixels | None]:
        """The photo's pixels and its mask where there is one."""
        return self._read(sample.id)

    def _read(self, name: str) -> tuple[Pixels, Pixels | None]:
        what = f"expected to read {name} of {self._words}, but it fails"
        with self._lock, reporting_errors(what, allowed=Unusable):
            try:
                given, drawn = self._entries[name].fetch()
            except (OSError, SyntaxError, ValueError) as error:  # a broken file: one photo of many
                raise Unusable(f"it cannot be read: {' '.join(str(error).split())[:200]}") from error
            image = convert_image(given)
            mask = None if drawn is None else convert_mask(drawn)
        if mask is not None:
            check_mask_size(mask, image)
        return image, mask


def source_from_object(images: Any, labels: Sequence[str] | None = None) -> ObjectSource:
    """The source of a list, a data set or a data frame; raises `UserError` for anything else."""
    if isinstance(images, Mapping):
        names = ", ".join(map(str, images))
        last = list(images)[-1] if images else "test"
        raise UserError(f"expected one data set, got several by name ({names}); give one, such as images['{last}']")
    if isinstance(images, type) or (not isinstance(images, Iterable) and not _has_items(images)):
        raise UserError(
            f"expected images as a folder, a source, a data set, a data frame or a list of (image, label[, mask]),"
            f" got {f'the class {images.__name__}' if isinstance(images, type) else type(images).__name__}"
        )
    if hasattr(images, "dataset") and hasattr(images, "batch_sampler"):
        raise UserError(f"expected a data set, got {type(images).__name__}, which gives batches; give its .dataset")
    if _is_table(images):
        if not hasattr(images, "__len__"):
            raise UserError(
                f"expected a data set with a length, got {type(images).__name__}, which is read as a stream; give a"
                " part of it: list(images.take(100)), with labels=[...]"
            )
        return _from_table(images, labels)
    if not _has_items(images):
        with reporting_errors(f"expected to read pictures from the {type(images).__name__}, but it fails"):
            images = list(images)
    return _from_items(images, labels)


def _has_items(images: Any) -> bool:
    return hasattr(images, "__getitem__") and hasattr(images, "__len__")


def _is_table(images: Any) -> bool:
    """Whether rows have named columns: a data frame, a table of Arrow, or a data set of Hugging Face."""
    return hasattr(images, "column_names") or (hasattr(images, "columns") and hasattr(images, "shape"))


def _from_items(items: Any, labels: Sequence[str] | None) -> ObjectSource:
    """A list of (image, label[, mask]), or a data set of torch, which gives the same by its index."""
    kind = "list" if isinstance(items, list | tuple) else type(items).__name__
    with reporting_errors(f"expected the {kind} to say its length, but it fails"):
        count = len(items)
    words = f"{kind} of {count}"
    _check_first(items, count, words)
    names = labels if labels is not None else find_class_names(items)
    listed = [_item(items, place, names, words) for place in range(count)]
    return ObjectSource(f"{SCHEME}{words} pictures", tuple(listed))


def _check_first(items: Any, count: int, words: str) -> None:
    """Raises `UserError` where the first item is no pair, no triple and no row of named values."""
    if not count:
        raise UserError(f"expected pictures, got an empty {words.partition(' ')[0]}")
    with reporting_errors(f"expected to read the first picture of the {words}, but it fails"):
        first = items[0]
    if not _is_item(first):
        raise UserError(
            f"expected (image, label) or (image, label, mask) for each picture of the {words},"
            f" got {_describe_item(first)}"
        )


def _is_item(item: Any) -> bool:
    return isinstance(item, Mapping) or (isinstance(item, tuple | list) and len(item) in (2, 3))


def _describe_item(item: Any) -> str:
    if not isinstance(item, tuple | list):
        return type(item).__name__
    return "1 value" if len(item) == 1 else f"{len(item)} values"


def _item(items: Any, place: int, names: Sequence[str] | None, words: str) -> PhotoObject | Skipped:
    """One entry; the label of a data set is read with its picture, which is then dropped."""
    with reporting_errors(f"expected to read picture {place} of the {words}, but it fails"):
        try:
            label = _label_of(items, place)
        except Unusable as error:
            return Skipped(f"picture {place}", "source", "", str(error))
        except (OSError, SyntaxError, ValueError) as error:
            reason = f"it cannot be read: {' '.join(str(error).split())[:200]}"
            return Skipped(f"picture {place}", "source", "", reason)
    if _is_missing(label):
        return Skipped(f"picture {place}", "source", "", "its label is empty")
    return PhotoObject(name_label(label, names, words), partial(_fetch, items, place))


def _label_of(items: Any, place: int) -> Any:
    """The label alone, from `targets` where a data set of torchvision has them: the picture need not be decoded."""
    targets = read_optional(items, "targets", None)
    if targets is not None and len(targets) == len(items) and not _changes_labels(items):
        return targets[place]
    return split_item(items[place]).label


def _fetch(items: Any, place: int) -> tuple[Any, Any]:
    item = split_item(items[place])
    return item.image, item.mask


class DatasetItem(NamedTuple):
    """What a data set gives for one index, as it was given."""

    image: Any
    label: Any
    mask: Any  # None where there is none


def split_item(item: Any) -> DatasetItem:
    """The parts of (image, label[, mask]) or of a row of named values; raises `Unusable` for anything else."""
    if not _is_item(item):
        raise Unusable(f"it is {_describe_item(item)}, expected (image, label) or (image, label, mask)")
    if not isinstance(item, Mapping):
        return DatasetItem(item[0], item[1], item[2] if len(item) == 3 else None)
    mask = next((name for name in _MASK if name in item), None)
    image, label = item[_find(item, _IMAGE, "image")], item[_find(item, _LABEL, "label")]
    return DatasetItem(image, label, None if mask is None else item[mask])


def _find(columns: Iterable[str], known: Sequence[str], what: str) -> str:
    names = list(columns)
    for name in known:
        if name in names:
            return name
    offered = " or ".join(known[:2])
    raise UserError(f"expected a column {offered} with the {what} of each picture, got {', '.join(map(str, names))}")


def find_class_names(dataset: Any) -> Sequence[str] | None:
    """The class names of a data set in the order of their numbers, through `Subset` and other wrappers, else None."""
    if _is_table(dataset):
        columns = _list_columns(dataset)
        return next((_feature_names(dataset, name) for name in _LABEL if name in columns), None)
    for _ in range(8):  # wrappers in wrappers
        if _changes_labels(dataset):
            return None  # its numbers are not those of its class names
        classes = read_optional(dataset, "classes", None)
        if classes is not None and not callable(classes):
            return [str(name) for name in classes]
        dataset = read_optional(dataset, "dataset", None)
    return None


def _changes_labels(dataset: Any) -> bool:
    """Whether a data set of torchvision gives other numbers than its `targets` and `classes` have."""
    return read_optional(dataset, "target_transform", None) is not None


def name_label(label: Any, names: Sequence[str] | None, words: str) -> str:
    """A label as text; a number is the position of a class name."""
    if hasattr(label, "item") and np.ndim(label) == 0:
        label = label.item()
    if isinstance(label, str):
        return label
    if isinstance(label, float) and label.is_integer():
        label = int(label)  # a column of numbers with one missing is one of floats
    if not isinstance(label, int) or isinstance(label, bool):
        raise UserError(f"expected labels as names or numbers in the {words}, got {type(label).__name__}")
    if names is None:
        raise UserError(
            f"expected class names for the numbers in the {words}, got none; give labels=[...], where labels[0] is the"
            " name of class 0"
        )
    if not 0 <= label < len(names):
        raise UserError(f"expected labels from 0 to {len(names) - 1} in the {words}, got {label}; check labels=[...]")
    return str(names[label])


def _from_table(table: Any, labels: Sequence[str] | None) -> ObjectSource:
    """A data frame with paths or pictures, or a data set of Hugging Face."""
    columns = _list_columns(table)
    image, label = _find(columns, _IMAGE, "image"), _find(columns, _LABEL, "label")
    mask = next((name for name in _MASK if name in columns), None)
    words = f"{type(table).__name__} of {len(table)}"
    names = labels if labels is not None else _feature_names(table, label)
    fetch = partial(_fetch_row if hasattr(table, "features") else _fetch_cell, table, image, mask)
    listed = [
        Skipped(f"row {row}", "source", "", "its label is empty")
        if _is_missing(value)
        else PhotoObject(name_label(value, names, words), partial(fetch, row))
        for row, value in enumerate(_list_values(table, label, words))
    ]
    return ObjectSource(f"{SCHEME}{words} rows", tuple(listed))


def _list_columns(table: Any) -> list[str]:
    return [str(name) for name in read_optional(table, "column_names", None) or table.columns]


def _list_values(table: Any, column: str, words: str) -> list[Any]:
    """The values of a column of labels."""
    if _list_columns(table).count(column) > 1:
        raise UserError(f"expected one column {column} in the {words}, got several of that name")
    with reporting_errors(f"expected to read the column {column} of the {words}, but it fails"):
        values = table[column]
        return list(values.to_pylist() if hasattr(values, "to_pylist") else values)


def _is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, not a number, or the NA of pandas."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def _feature_names(table: Any, label: str) -> Sequence[str] | None:
    """The names of a `ClassLabel` of Hugging Face; None for others."""
    features = read_optional(table, "features", None)
    names = None if features is None else read_optional(features[label], "names", None)
    return None if names is None else list(names)


def _fetch_row(dataset: Any, image: str, mask: str | None, row: int) -> tuple[Any, Any]:
    values = dataset[row]
    return values[image], None if mask is None else values[mask]


def _fetch_cell(frame: Any, image: str, mask: str | None, row: int) -> tuple[Any, Any]:
    drawn = None if mask is None else _cell(frame[mask], row)
    given = _cell(frame[image], row)
    if _is_missing(given):
        raise Unusable("it has no picture")
    return given, None if _is_missing(drawn) else drawn


def _cell(column: Any, row: int) -> Any:
    value = column.iloc[row] if hasattr(column, "iloc") else column[row]
    value = value.as_py() if hasattr(value, "as_py") else value  # of an Arrow table
    return Path(value) if isinstance(value, str) else value
