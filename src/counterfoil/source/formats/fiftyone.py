"""FiftyOne's exports: an image classification folder, or a whole dataset with its samples.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from counterfoil.errors import UserError
from counterfoil.source.formats.listed import Listed, ListedSource, Mask, file_bytes, json_of, photo_under
from counterfoil.source.reading import mask_of
from counterfoil.types import Skipped


def fiftyone_source(path: Path) -> ListedSource:
    """Photos of `FiftyOneImageClassificationDataset` (labels.json) or of `FiftyOneDataset` (samples.json)."""
    if (path / "labels.json").is_file():
        found = _classification(path)
    elif (path / "samples.json").is_file():
        found = _dataset(path)
    else:
        raise UserError(f"expected labels.json or samples.json of a FiftyOne export in '{path}', found neither")
    listed = tuple(entry for entry in found if isinstance(entry, Listed))
    return ListedSource(f"fiftyone:{path}", listed, tuple(entry for entry in found if isinstance(entry, Skipped)))


def _classification(path: Path) -> list[Listed | Skipped]:
    said = json_of(path / "labels.json", "FiftyOne's labels")
    labels = said.get("labels") if isinstance(said, dict) else None
    if not isinstance(labels, dict):
        raise UserError(f"expected 'labels' by photo in '{path / 'labels.json'}'")
    photos = {file.stem: file for file in sorted((path / "data").glob("*")) if file.is_file()}
    return [
        _photo(path, photos.get(PurePosixPath(key).name), key, _named(label, said.get("classes")))
        for key, label in labels.items()
    ]


def _named(label: Any, classes: Any) -> str | None:
    """The class in words; FiftyOne writes the index where the classes are listed."""
    if isinstance(label, Mapping):
        label = label.get("label")
    if isinstance(label, int):
        label = classes[label] if isinstance(classes, list) and 0 <= label < len(classes) else None
    return str(label) if label is not None else None


def _photo(path: Path, photo: Path | None, key: str, label: str | None) -> Listed | Skipped:
    if label is None:
        return Skipped(key, "source", "", "the photo has no label")
    if photo is None:
        return Skipped(key, "source", "", "the photo is not in data/")
    mask = path / "labels" / f"{photo.stem}.png"
    return _listed(label, photo, mask if mask.is_file() else None)


def _dataset(path: Path) -> list[Listed | Skipped]:
    said = json_of(path / "samples.json", "FiftyOne's samples")
    rows = said.get("samples") if isinstance(said, dict) else None
    if not isinstance(rows, list):
        raise UserError(f"expected a list of samples in '{path / 'samples.json'}'")
    return [_row(path, row) for row in rows]


def _row(path: Path, row: Any) -> Listed | Skipped:
    if not isinstance(row, Mapping):
        return Skipped(str(row)[:80], "source", "", "the sample is no object of JSON")
    name = str(row.get("filepath", ""))
    label = _first(row, "label")
    photo = photo_under([path, path / "data"], name)
    if label is None or photo is None:
        reason = "the photo has no label" if label is None else "the photo is not in the export"
        return Skipped(name, "source", "", reason)
    drawn = _first(row, "mask_path")
    return _listed(label, photo, photo_under([path], drawn) if drawn else None)


def _first(row: Mapping[str, Any], key: str) -> str | None:
    """The first field of a sample that says it: `ground_truth` before the others."""
    fields = sorted(row.items(), key=lambda item: (item[0] != "ground_truth", item[0]))
    found = (value[key] for _, value in fields if isinstance(value, Mapping) and value.get(key))
    return next((str(value) for value in found), None)


def _listed(label: str, photo: Path, mask: Path | None) -> Listed:
    if mask is None:
        return Listed(f"{label}/{photo.name}", label, photo.name, file_bytes(photo), None)
    read = file_bytes(mask)
    digest = hashlib.sha256(mask.read_bytes()).hexdigest()
    return Listed(f"{label}/{photo.name}", label, photo.name, file_bytes(photo), partial(_mask, read), digest)


def _mask(read: Callable[[], bytes], size: tuple[int, int]) -> Mask:
    return mask_of(read())


def fiftyone_labels(labels: Mapping[str, str]) -> str:
    """labels.json of a classification export: photos by stem, labels as indices of the classes."""
    classes = sorted(set(labels.values()))
    return json.dumps({"classes": classes, "labels": {stem: classes.index(label) for stem, label in labels.items()}})
