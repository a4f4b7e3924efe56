"""Photos and masks of a COCO annotation file, read and written.

A classifier gives one class per photo, so a photo's label is the class whose regions cover most of it, and its mask is
the union of that class's regions; other objects are part of the background.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.errors import Unusable, UserError
from counterfoil.object_mask import hard_object
from counterfoil.sources.annotations import (
    AnnotatedPhoto,
    AnnotationSource,
    choose_largest,
    find_photo,
    make_file_reader,
    read_json_file,
)
from counterfoil.sources.coco_masks import (
    Mask,
    check_photo_size,
    decode_run_lengths,
    draw_polygons,
    encode_run_lengths,
    find_bounding_box,
    measure_area,
)
from counterfoil.types import Skipped


def open_coco(path: Path) -> AnnotationSource:
    """Photos and regions of an annotation file, or of a folder that holds one."""
    file = _find_file(path) if path.is_dir() else path
    annotations = read_json_file(file, "COCO annotations")
    if not isinstance(annotations, dict) or not all(isinstance(annotations.get(key), list) for key in _PARTS):
        raise UserError(f"expected COCO annotations with {', '.join(_PARTS)} in '{file}'")
    try:
        names = {row["id"]: str(row["name"]) for row in annotations["categories"]}
        photos, regions = annotations["images"], _group_regions(annotations["annotations"], names)
        listed = [
            *(_list_photo(photo, regions.get(photo["id"], {}), _photo_folders(file)) for photo in photos),
            *_list_unmatched(regions.keys() - {photo["id"] for photo in photos}),
        ]
    except KeyError as error:
        raise UserError(f"expected COCO annotations in '{file}', but an entry lacks {error}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"expected COCO annotations in '{file}', but an entry cannot be understood: {error}") from error
    return AnnotationSource(f"coco:{path}", tuple(listed))


_PARTS = ("images", "annotations", "categories")
_FILES = ("labels.json", "_annotations.coco.json", "annotations.json", "annotations/instances_*.json", "*.json")


def _find_file(folder: Path) -> Path:
    """The annotations of a folder, where tools put them: FiftyOne, Roboflow, Label Studio, CVAT."""
    files = next((matches for pattern in _FILES if (matches := sorted(folder.glob(pattern)))), [])
    if len(files) != 1:
        names = ", ".join(file.relative_to(folder).as_posix() for file in files) or "none"
        raise UserError(f"expected one file of COCO annotations in '{folder}', got {names}; give the file itself")
    return files[0]


def _group_regions(
    annotations: Sequence[Mapping[str, Any]], names: Mapping[Any, str]
) -> dict[Any, dict[str, list[Any]]]:
    """The regions of each photo by class; crowds too, since some tools mark every run-length object as one."""
    regions: dict[Any, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in annotations:
        if row["category_id"] not in names:
            raise UserError(f"expected a category of the file, got the id {row['category_id']}, which it does not list")
        if row.get("segmentation"):
            regions[row["image_id"]][names[row["category_id"]]].append((_area(row), row["segmentation"]))
    return regions


def _area(row: Mapping[str, Any]) -> float:
    """The area in the file, or of the drawn region where the file has none."""
    if row.get("area"):
        return float(row["area"])
    try:
        return measure_area(row["segmentation"])
    except (OverflowError, TypeError, ValueError, Unusable):
        return 0.0  # the region cannot be drawn; reported when its photo is read


def _photo_folders(file: Path) -> list[Path]:
    """The usual folders of photos: beside the annotation file, images/, data/, or the split's name."""
    split = file.stem.removeprefix("instances_")
    here, above = file.parent, file.parent.parent
    inside = [here / "images", here / "data", here / split]
    return [*inside, above / split, above / "images" / split, above / "images", here]


def _list_photo(
    image: Mapping[str, Any], regions: Mapping[str, list[Any]], folders: Sequence[Path]
) -> AnnotatedPhoto | Skipped:
    name = str(image["file_name"])
    if not regions:
        return Skipped(name, "source", "", "the photo has no region with a class")
    path = find_photo(folders, name)
    if path is None:
        return Skipped(name, "source", "", "the photo is not beside the annotations, nor in images/ or data/")
    label = choose_largest({label: sum(area for area, _ in rows) for label, rows in regions.items()})
    parts = [segmentation for _, segmentation in regions[label]]
    drawn = partial(_draw_mask, parts, (image.get("height"), image.get("width")))
    return AnnotatedPhoto(f"{label}/{name}", label, str(path), make_file_reader(path), drawn, _hash_regions(parts))


def _list_unmatched(ids: Iterable[Any]) -> list[Skipped]:
    """The photos that regions name by an id and the file does not list."""
    reason = "regions name a photo of this id, which the file does not list"
    return [Skipped(f"image id {photo}", "source", "", reason) for photo in sorted(ids, key=str)]


def _draw_mask(parts: Sequence[Any], annotated: tuple[Any, Any], size: tuple[int, int]) -> Mask:
    """The union of all regions; `annotated` is the photo's size in the annotation file."""
    check_photo_size(annotated, size)
    mask = np.zeros(size, np.uint8)
    for part in parts:
        if not isinstance(part, list | dict):
            raise Unusable("a region is neither polygons nor run lengths")
        mask |= decode_run_lengths(part, size) if isinstance(part, dict) else draw_polygons(part, size)
    return mask


def _hash_regions(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def format_coco(rows: Sequence[tuple[str, str, Mask]], labels: Sequence[str]) -> str:
    """COCO JSON of photos: file name, label, mask; the masks as exact run lengths."""
    images, annotations = [], []
    for number, (name, label, mask) in enumerate(rows, 1):
        height, width = mask.shape
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        annotations.append({
            "id": number, "image_id": number, "category_id": labels.index(label) + 1, "iscrowd": 0,
            "area": int(hard_object(mask).sum()), "bbox": list(find_bounding_box(mask)),
            "segmentation": encode_run_lengths(mask),
        })  # fmt: skip
    categories = [{"id": number, "name": label} for number, label in enumerate(labels, 1)]
    return json.dumps({"images": images, "annotations": annotations, "categories": categories})
