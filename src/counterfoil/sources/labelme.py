"""Photos annotated in LabelMe, and masks written as LabelMe's JSON."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

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
from counterfoil.sources.coco_masks import Mask, check_photo_size, draw_polygons, find_bounding_box, measure_area
from counterfoil.sources.folder_entries import FolderEntry, walk_files
from counterfoil.sources.pixels import open_bounded_picture
from counterfoil.types import Skipped

_CIRCLE_POINTS = 128


def open_labelme(path: Path) -> AnnotationSource:
    """Photos of a folder of LabelMe files, including subfolders."""
    if not path.is_dir():
        raise UserError(f"expected a folder of LabelMe's JSON files, got '{path}', which is no folder; check the path")
    listed = [_list_photo(path, entry) for entry in walk_files(path, [".json"])]
    return AnnotationSource(f"labelme:{path}", tuple(listed))


def _list_photo(folder: Path, entry: FolderEntry) -> AnnotatedPhoto | Skipped:
    file, name = entry.path, entry.path.relative_to(folder).as_posix()
    if entry.fault:
        return Skipped(name, "source", "", entry.fault)
    try:
        return _read_annotation(folder, name, read_json_file(file, "LabelMe's annotations"))
    except (UserError, Unusable) as error:
        return Skipped(name, "source", "", str(error))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        return Skipped(name, "source", "", f"a shape of the file cannot be understood: {error}")


def _read_annotation(folder: Path, name: str, annotation: Any) -> AnnotatedPhoto | Skipped:
    if not isinstance(annotation, dict) or not isinstance(annotation.get("shapes"), list):
        return Skipped(name, "source", "", "the file holds no shapes of LabelMe")
    shapes: dict[str, list[Any]] = defaultdict(list)
    for shape in annotation["shapes"]:
        if shape.get("shape_type", "polygon") in _SHAPES and shape.get("label"):
            shapes[str(shape["label"])].append(shape)
    if not shapes:
        return Skipped(name, "source", "", "the file holds no shape with an area and a label")
    photo = _find_photo(folder, PurePosixPath(name).parent, annotation)
    if photo is None:
        return Skipped(
            name, "source", "", f"the photo {annotation.get('imagePath')} is not where its file says, nor inside it"
        )
    label = choose_largest({label: sum(map(_measure_area, parts)) for label, parts in shapes.items()})
    parts = shapes[label]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    drawn = partial(_draw_mask, parts, (annotation.get("imageHeight"), annotation.get("imageWidth")))
    return AnnotatedPhoto(f"{label}/{PurePosixPath(name).stem}", label, name, photo, drawn, digest)


def _find_photo(folder: Path, place: PurePosixPath, annotation: Mapping[str, Any]) -> Callable[[], bytes] | None:
    """The photo at the path in the annotation (relative to `place`), beside the annotation, or embedded in it."""
    name = PurePosixPath(str(annotation.get("imagePath", "")).replace("\\", "/"))
    path = find_photo([folder], str(place / name)) or find_photo([folder / place], name.name)
    if path is not None:
        return make_file_reader(path)
    return partial(_decode_base64, annotation["imageData"]) if annotation.get("imageData") else None


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, TypeError, ValueError) as error:
        raise Unusable(f"the data inside the file is no base64: {error}") from error


def _outline(shape: Mapping[str, Any]) -> list[float]:
    """The shape's border as x, y, x, y ..."""
    points = np.asarray(shape["points"], np.float64).reshape(-1, 2)
    kind = shape.get("shape_type", "polygon")
    if kind == "rectangle" and len(points) == 2:
        (left, top), (right, bottom) = points
        return [left, top, right, top, right, bottom, left, bottom]
    if kind == "circle" and len(points) == 2:
        angles = np.linspace(0, 2 * np.pi, _CIRCLE_POINTS, endpoint=False)
        radius = float(np.hypot(*(points[1] - points[0])))
        circle = points[0] + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return [float(value) for value in circle.ravel()]
    return [float(value) for value in points.ravel()]


_SHAPES = ("polygon", "rectangle", "oriented_rectangle", "circle", "mask")


def _measure_area(shape: Mapping[str, Any]) -> float:
    if shape.get("shape_type") == "mask":
        return float((_decode_stamp(shape) > 0).sum())
    return measure_area([_outline(shape)])


def _decode_stamp(shape: Mapping[str, Any]) -> Mask:
    """The small mask picture of a shape of kind "mask"."""
    try:
        with open_bounded_picture(_decode_base64(shape["mask"]), ("PNG",), "it is no PNG") as picture:
            return np.where(np.array(picture.convert("L")) > 0, 255, 0).astype(np.uint8)
    except (Unusable, OSError, SyntaxError, KeyError) as error:
        raise Unusable(f"a shape of kind mask cannot be read: {error}") from error


def _draw_mask(parts: Sequence[Mapping[str, Any]], annotated: tuple[Any, Any], size: tuple[int, int]) -> Mask:
    """The union of all shapes; `annotated` is the photo's size in the annotation file."""
    check_photo_size(annotated, size)
    mask = np.zeros(size, np.uint8)
    for part in parts:
        if part.get("shape_type") == "mask":
            left, top = (round(value) for value in part["points"][0])
            stamp = _decode_stamp(part)[max(0, -top) : max(0, size[0] - top), max(0, -left) : max(0, size[1] - left)]
            left, top = max(0, left), max(0, top)
            mask[top : top + stamp.shape[0], left : left + stamp.shape[1]] |= stamp
        else:
            mask |= draw_polygons([_outline(part)], size)
    return mask


def format_labelme(name: str, label: str, mask: Mask) -> str:
    """LabelMe's JSON of one photo: its mask as a shape of kind "mask", since polygons have no holes."""
    left, top, width, height = find_bounding_box(mask)
    stamp = io.BytesIO()
    Image.fromarray(hard_object(mask[top : top + height, left : left + width])).save(stamp, "PNG")
    shape: dict[str, Any] = {
        "label": label, "shape_type": "mask", "group_id": None, "description": "", "flags": {},
        "points": [[left, top], [left + width - 1, top + height - 1]],
        "mask": base64.b64encode(stamp.getvalue()).decode(),
    }  # fmt: skip
    about: dict[str, Any] = {"version": "5.4.1", "flags": {}, "imagePath": name, "imageData": None}
    size = {"imageHeight": mask.shape[0], "imageWidth": mask.shape[1]}
    return json.dumps({**about, **size, "shapes": [shape] if width else []}, indent=1)
