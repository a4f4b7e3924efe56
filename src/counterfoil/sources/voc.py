"""Photos and masks in the folders of PASCAL VOC, read and written."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.errors import Unusable, UserError
from counterfoil.object_mask import UNKNOWN, hard_object, object_trace
from counterfoil.sources.annotations import (
    AnnotatedPhoto,
    AnnotationSource,
    choose_largest,
    make_file_reader,
    read_lines,
)
from counterfoil.sources.bounded_reads import read_user_file
from counterfoil.sources.coco_masks import Mask
from counterfoil.sources.folder_entries import list_entries
from counterfoil.sources.pixels import open_bounded_picture
from counterfoil.types import Skipped

CLASSES = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "dining table",
    "dog", "horse", "motorbike", "person", "potted plant", "sheep", "sofa", "train", "tv monitor",
)  # fmt: skip
_VOID = 255
_BORDER = 11  # pixels across: void this near to the object counts as its uncertain border
_PICTURES = (".jpg", ".jpeg", ".png")


def open_voc(path: Path) -> AnnotationSource:
    """The photos of a VOC folder that have a mask; custom classes are in classes.txt, background first."""
    photos, masks = path / "JPEGImages", path / "SegmentationClass"
    if not photos.is_dir() or not masks.is_dir():
        raise UserError(
            f"expected JPEGImages/ and SegmentationClass/ in '{path}', as PASCAL VOC has them; check the path"
        )
    classes = _read_classes(path)
    listed = [
        Skipped(entry.path.name, "source", "", entry.fault) if entry.fault else _list_photo(photos, entry.path, classes)
        for entry in list_entries(masks)
        if entry.fault or entry.path.suffix == ".png"
    ]
    return AnnotationSource(f"voc:{path}", tuple(listed))


@dataclass(frozen=True)
class _Classes:
    """The classes by index, and the colour of each as one number, red first."""

    names: tuple[str, ...]
    colours: tuple[int, ...]

    @property
    def background(self) -> int:
        """The index of the background: the first, unless the list names it elsewhere."""
        return self.names.index(CLASSES[0]) if CLASSES[0] in self.names else 0


def _read_classes(path: Path) -> _Classes:
    """The classes from our classes.txt, the labelmap.txt of Datumaro and CVAT, or VOC's own."""
    ours, theirs = path / "classes.txt", path / "labelmap.txt"
    if ours.is_file():
        return _number_classes([line for line in read_lines(ours) if line])
    if not theirs.is_file():
        return _number_classes(CLASSES)
    rows = [line.split(":") for line in read_lines(theirs) if line and not line.startswith("#")]
    plain = _number_classes([row[0] for row in rows])
    colours = [
        _parse_colour(row[1]) if len(row) > 1 and row[1] else plain.colours[index] for index, row in enumerate(rows)
    ]
    return _Classes(plain.names, tuple(colours))


def _number_classes(names: Sequence[str]) -> _Classes:
    if len(names) > _VOID:
        raise UserError(f"expected at most {_VOID} classes, background included, as VOC's masks have, got {len(names)}")
    return _Classes(tuple(names), tuple(int(colour) for colour in _pack_colours(_make_palette())[: len(names)]))


def _parse_colour(text: str) -> int:
    try:
        red, green, blue = map(int, text.split(","))
    except ValueError as error:
        raise UserError(f"expected colours such as 128,0,64 in labelmap.txt, got '{text}'") from error
    return red << 16 | green << 8 | blue


def _list_photo(photos: Path, file: Path, classes: _Classes) -> AnnotatedPhoto | Skipped:
    names = classes.names
    photo = next((path for ending in _PICTURES if (path := photos / f"{file.stem}{ending}").is_file()), None)
    if photo is None:
        return Skipped(file.name, "source", "", f"there is no photo {file.stem}.jpg in JPEGImages")
    try:
        encoded = read_user_file(file)
        values, counts = np.unique(_decode_indices(encoded, classes), return_counts=True)
    except Unusable as error:
        return Skipped(file.name, "source", "", f"the mask cannot be used: {error}")
    nothing = (classes.background, _VOID)
    areas = {int(value): int(count) for value, count in zip(values, counts, strict=True) if value not in nothing}
    if not areas:
        return Skipped(file.name, "source", "", "the mask shows no object")
    if max(areas) >= len(names):
        return Skipped(file.name, "source", "", f"the mask has the class {max(areas)} of {len(names)}; see classes.txt")
    label = choose_largest({names[value]: count for value, count in areas.items()})
    mask = partial(_draw_mask, encoded, classes, names.index(label))
    digest = hashlib.sha256(encoded).hexdigest()
    return AnnotatedPhoto(
        f"{label}/{photo.name}", label, f"JPEGImages/{photo.name}", make_file_reader(photo), mask, digest
    )


def _decode_indices(encoded: bytes, classes: _Classes) -> Mask:
    """The class indices: those of a palette (its colours are ignored), or those of true colours."""
    try:
        with open_bounded_picture(encoded, ("PNG",), "it is no PNG") as picture:
            if picture.mode == "RGB":
                return _match_colours(np.array(picture, np.int64), classes)
            if picture.mode not in ("P", "L"):
                raise Unusable(f"it is a PNG of mode {picture.mode}, where a palette, gray or colours were expected")
            return np.array(picture, np.uint8)
    except (OSError, SyntaxError, ValueError) as error:
        raise Unusable(f"it is no PNG that can be read: {error}") from error


def _match_colours(pixels: NDArray[np.int64], classes: _Classes) -> Mask:
    known = {
        **{int(_pack_colours(_make_palette())[_VOID]): _VOID},
        **{colour: at for at, colour in enumerate(classes.colours)},
    }
    used, places = np.unique(_pack_colours(pixels), return_inverse=True)
    strange = [colour for colour in used.tolist() if colour not in known]
    if strange:
        red, green, blue = strange[0] >> 16, strange[0] >> 8 & 255, strange[0] & 255
        raise Unusable(f"it has the colour {red},{green},{blue}, which is no class's; see labelmap.txt")
    return np.array([known[colour] for colour in used.tolist()], np.uint8)[places.reshape(pixels.shape[:2])]


def _draw_mask(encoded: bytes, classes: _Classes, value: int, size: tuple[int, int]) -> Mask:
    """The class's pixels as 255; the void around them as 128, unknown."""
    indices = _decode_indices(encoded, classes)
    mask = np.where(indices == value, 255, 0).astype(np.uint8)
    near = cv2.dilate(mask, np.ones((_BORDER, _BORDER), np.uint8)) > 0
    mask[near & (indices == _VOID)] = UNKNOWN
    return mask


def list_voc_classes(labels: Sequence[str]) -> tuple[str, ...]:
    """The classes for these labels, background first; raises where one byte cannot number them."""
    return _number_classes(["background", *labels]).names


def encode_voc_mask(mask: Mask, value: int) -> bytes:
    """A mask as VOC writes it: a palette whose index is the class, unknown pixels void."""
    indices = np.where(hard_object(mask), value, 0).astype(np.uint8)
    graded = len(np.unique(mask)) > 3
    indices[object_trace(mask) & (mask < 255) & (not graded)] = _VOID
    picture = Image.fromarray(indices, mode="P")
    picture.putpalette(_make_palette().ravel().tolist())
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _make_palette() -> NDArray[np.int64]:
    """VOC's colours, (256, 3): the bits of the index, three by three, from the highest bit of each channel down."""
    colours = np.zeros((256, 3), np.int64)
    for bit in range(8):
        for channel in range(3):
            colours[:, channel] |= ((np.arange(256) >> (3 * bit + channel)) & 1) << (7 - bit)
    return colours


def _pack_colours(colours: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(colours @ np.array([1 << 16, 1 << 8, 1]), np.int64)
