"""PASCAL VOC: JPEGImages/ with masks in SegmentationClass/, whose values are classes and 255 a void border."""

from __future__ import annotations

import hashlib
import io
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, UnidentifiedImageError

from counterfoil.errors import Unusable, UserError
from counterfoil.source.formats.listed import Listed, ListedSource, Mask, file_bytes, largest, lines_of
from counterfoil.types import Skipped

CLASSES = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "dining table",
    "dog", "horse", "motorbike", "person", "potted plant", "sheep", "sofa", "train", "tv monitor",
)  # fmt: skip
_VOID = 255
_BORDER = 11  # pixels across: void this near to the object is its own doubtful border
_PICTURES = (".jpg", ".jpeg", ".png")


def voc_source(path: Path) -> ListedSource:
    """The photos of a VOC folder that have a mask; one's own classes stand in classes.txt, background first."""
    photos, masks = path / "JPEGImages", path / "SegmentationClass"
    if not photos.is_dir() or not masks.is_dir():
        raise UserError(
            f"expected JPEGImages/ and SegmentationClass/ in '{path}', as PASCAL VOC has them; check the path"
        )
    names = _names(path)
    found = [_listed(photos, file, names) for file in sorted(masks.glob("*.png"))]
    listed = tuple(entry for entry in found if isinstance(entry, Listed))
    return ListedSource(f"voc:{path}", listed, tuple(entry for entry in found if isinstance(entry, Skipped)))


def _names(path: Path) -> tuple[str, ...]:
    file = path / "classes.txt"
    if not file.is_file():
        return CLASSES
    return tuple(line for line in lines_of(file) if line)


def _listed(photos: Path, file: Path, names: tuple[str, ...]) -> Listed | Skipped:
    photo = next((path for ending in _PICTURES if (path := photos / f"{file.stem}{ending}").is_file()), None)
    if photo is None:
        return Skipped(file.name, "source", "", f"there is no photo {file.stem}.jpg in JPEGImages")
    try:
        data = file.read_bytes()
        values, counts = np.unique(_indices(data), return_counts=True)
    except (OSError, Unusable) as error:
        return Skipped(file.name, "source", "", f"the mask cannot be used: {error}")
    areas = {int(value): int(count) for value, count in zip(values, counts, strict=True) if value not in (0, _VOID)}
    if not areas:
        return Skipped(file.name, "source", "", "the mask shows no object")
    if max(areas) >= len(names):
        return Skipped(file.name, "source", "", f"the mask has the class {max(areas)} of {len(names)}; see classes.txt")
    label = largest({names[value]: count for value, count in areas.items()})
    mask = partial(_drawn, data, names.index(label))
    digest = hashlib.sha256(data).hexdigest()
    return Listed(f"{label}/{photo.name}", label, f"JPEGImages/{photo.name}", file_bytes(photo), mask, digest)


def _indices(data: bytes) -> Mask:
    """The palette's indices, which are the classes; the palette's colours mean nothing."""
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as picture:
            if picture.mode not in ("P", "L"):
                raise Unusable(f"it is a PNG of mode {picture.mode}, where a palette or gray values were expected")
            return np.array(picture, np.uint8)
    except UnidentifiedImageError:
        raise Unusable("it is no PNG") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise Unusable(f"it is no PNG that can be read: {error}") from error


def _drawn(data: bytes, value: int, size: tuple[int, int]) -> Mask:
    """The class's pixels; the void around them is unknown, 128, to be estimated."""
    indices = _indices(data)
    mask = np.where(indices == value, 255, 0).astype(np.uint8)
    near = cv2.dilate(mask, np.ones((_BORDER, _BORDER), np.uint8)) > 0
    mask[near & (indices == _VOID)] = 128
    return mask


def voc_mask(mask: Mask, value: int) -> bytes:
    """A mask as VOC writes it: a palette whose index is the class, unknown pixels void."""
    indices = np.where(mask >= 128, value, 0).astype(np.uint8)
    graded = len(np.unique(mask)) > 3
    indices[(mask > 0) & (mask < 255) & (not graded)] = _VOID
    picture = Image.fromarray(indices, mode="P")
    picture.putpalette(_palette())
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _palette() -> list[int]:
    """VOC's colours: the bits of the index, three by three, from the highest bit of each channel down."""
    colours = np.zeros((256, 3), np.int64)
    for bit in range(8):
        for channel in range(3):
            colours[:, channel] |= ((np.arange(256) >> (3 * bit + channel)) & 1) << (7 - bit)
    return [int(value) for value in colours.ravel()]
