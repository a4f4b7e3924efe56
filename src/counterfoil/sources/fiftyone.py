"""Photos of a FiftyOne export, and labels written as one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.annotations import (
    AnnotatedPhoto,
    AnnotationSource,
    find_photo,
    make_file_reader,
    read_json_file,
)
from counterfoil.sources.coco_masks import Mask
from counterfoil.sources.folder_entries import walk_files
from counterfoil.sources.pixels import MAX_PIXELS, decode_mask
from counterfoil.types import Skipped

_HEADER = 1024  # upper bound of the header of NumPy's file format


def open_fiftyone(path: Path) -> AnnotationSource:
    """Photos of `FiftyOneImageClassificationDataset` (labels.json) or of `FiftyOneDataset` (samples.json)."""
    if (path / "labels.json").is_file():
        listed = _classification(path)
    elif (path / "samples.json").is_file():
        listed = _dataset(path)
    else:
        raise UserError(f"expected labels.json or samples.json of a FiftyOne export in '{path}', found neither")
    return AnnotationSource(f"fiftyone:{path}", tuple(listed))


def _classification(path: Path) -> list[AnnotatedPhoto | Skipped]:
    export = read_json_file(path / "labels.json", "FiftyOne's labels")
    labels = export.get("labels") if isinstance(export, dict) else None
    if not isinstance(labels, dict):
        raise UserError(f"expected 'labels' by photo in '{path / 'labels.json'}'")
    photos = {_photo_key(path, entry.path): entry.path for entry in walk_files(path / "data")}
    return [
        _photo(path, photos.get(key), key, _name_label(label, export.get("classes"))) for key, label in labels.items()
    ]


def _photo_key(path: Path, file: Path) -> str:
    """The key of a photo in labels.json: its path below data/ without suffix."""
    return file.relative_to(path / "data").with_suffix("").as_posix()


def _name_label(label: Any, classes: Any) -> str | None:
    """The class name; FiftyOne writes an index where the classes are listed."""
    if isinstance(label, Mapping):
        label = label.get("label")
    if isinstance(label, int):
        label = classes[label] if isinstance(classes, list) and 0 <= label < len(classes) else None
    return str(label) if isinstance(label, str | int | float) else None  # a list holds boxes, of any classes


def _photo(path: Path, photo: Path | None, key: str, label: str | None) -> AnnotatedPhoto | Skipped:
    if label is None:
        return Skipped(key, "source", "", "the photo has no label of its own")
    if photo is None:
        return Skipped(key, "source", "", "the photo is not in data/")
    mask = path / "labels" / f"{key}.png"
    return _list_photo(label, photo, make_file_reader(mask) if mask.is_file() else None, decode_mask)


def _dataset(path: Path) -> list[AnnotatedPhoto | Skipped]:
    export = read_json_file(path / "samples.json", "FiftyOne's samples")
    rows = export.get("samples") if isinstance(export, dict) else None
    if not isinstance(rows, list):
        raise UserError(f"expected a list of samples in '{path / 'samples.json'}'")
    return [_read_sample(path, row) for row in rows]


def _read_sample(path: Path, row: Any) -> AnnotatedPhoto | Skipped:
    if not isinstance(row, Mapping):
        return Skipped(str(row)[:80], "source", "", "the sample is no object of JSON")
    name = str(row.get("filepath", ""))
    label = _first_value(row, "label")
    photo = find_photo([path, path / "data"], name)
    if label is None or photo is None:
        reason = "the photo has no label" if label is None else "the photo is not in the export"
        return Skipped(name, "source", "", reason)
    drawn = _first_value(row, "mask_path")
    if drawn and (file := find_photo([path], drawn)):
        return _list_photo(label, photo, make_file_reader(file), decode_mask)
    inside = _find_embedded_mask(row)
    return _list_photo(label, photo, partial(_unpack_mask, inside) if inside else None, _decode_numpy_mask)


def _first_value(row: Mapping[str, Any], key: str) -> str | None:
    """The first field of a sample that has this key, `ground_truth` before the others."""
    fields = sorted(row.items(), key=lambda item: (item[0] != "ground_truth", item[0]))
    values = (value[key] for _, value in fields if isinstance(value, Mapping) and value.get(key))
    return next((str(value) for value in values), None)


def _find_embedded_mask(row: Mapping[str, Any]) -> str | None:
    """A mask embedded in the sample as text, None where there is none; masks of single boxes do not count."""
    try:
        return str(next(value["mask"]["$binary"]["base64"] for _, value in sorted(row.items()) if _has_mask(value)))
    except (KeyError, StopIteration, TypeError):
        return None


def _has_mask(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("_cls") == "Segmentation" and bool(value.get("mask"))


def _unpack_mask(text: str) -> bytes:
    """The unpacked bytes of FiftyOne's mask, in NumPy's file format."""
    try:
        return zlib.decompressobj().decompress(base64.b64decode(text), 2 * MAX_PIXELS + _HEADER)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise Unusable(f"the mask inside samples.json cannot be unpacked: {error}") from error


def _decode_numpy_mask(encoded: bytes) -> Mask:
    try:
        values = np.load(io.BytesIO(encoded), allow_pickle=False)
    except (EOFError, MemoryError, ValueError) as error:  # a header may claim any size
        raise Unusable(f"the mask inside samples.json is no array of NumPy: {error}") from error
    if not isinstance(values, np.ndarray) or values.ndim != 2:
        raise Unusable("the mask inside samples.json is no plane of numbers")
    return np.where(values > 0, 255, 0).astype(np.uint8)


def _list_photo(
    label: str, photo: Path, mask: Callable[[], bytes] | None, decode: Callable[[bytes], Mask]
) -> AnnotatedPhoto | Skipped:
    name = f"{label}/{photo.name}"
    if mask is None:
        return AnnotatedPhoto(name, label, photo.name, make_file_reader(photo), None)
    try:
        digest = hashlib.sha256(mask()).hexdigest()
    except Unusable as error:
        return Skipped(name, "source", "", str(error))
    return AnnotatedPhoto(name, label, photo.name, make_file_reader(photo), lambda size: decode(mask()), digest)


def format_fiftyone_labels(of_photos: Mapping[str, str], classes: Sequence[str]) -> str:
    """labels.json of a classification export: photos by stem, labels as indices of the classes."""
    numbers = {label: number for number, label in enumerate(classes)}
    return json.dumps({"classes": list(classes), "labels": {stem: numbers[of] for stem, of in of_photos.items()}})
