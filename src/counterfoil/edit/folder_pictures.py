"""The pictures of a folder to choose a background from; without a folder, the textures of the offline default."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from counterfoil.embedded.fetch import asset
from counterfoil.errors import Unusable, UserError

SHIPPED = "textures-scikit-image"  # brick, grass and gravel
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
MOST_PIXELS = 100_000_000  # past this a file is a decompression bomb
FORMATS = ("JPEG", "PNG", "WEBP")

Bytes = NDArray[np.uint8]


class FolderFile(NamedTuple):
    """One picture of a folder; the hash says that it is still the same one."""

    file: str  # path inside the folder
    sha256: str


def files_of(folder: str | None) -> Sequence[FolderFile]:
    """The pictures of a folder and its subfolders in a fixed order; None is brick, grass and gravel."""
    place = _place(folder)
    if not place.is_dir():
        raise UserError(f"folder: expected a folder of pictures, got '{folder}'")
    files = _listed(place, place.stat().st_mtime_ns)
    if not files:
        raise UserError(f"folder: expected pictures ({', '.join(SUFFIXES)}), found none in '{folder}'")
    return files


def _place(folder: str | None) -> Path:
    return asset(SHIPPED) if folder is None else Path(folder)


@lru_cache(maxsize=16)
def _listed(place: Path, changed: int) -> tuple[FolderFile, ...]:
    """The folder's pictures; hashed once, since a plan asks for every photo, and again when `changed` differs."""
    paths = sorted(path for path in place.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    return tuple(
        FolderFile(path.relative_to(place).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths
    )


def chosen_file(folder: str | None, seed: int) -> FolderFile:
    """The picture that this seed takes: the one with the highest hash, so that a new one changes few choices."""
    return max(files_of(folder), key=lambda one: hashlib.sha256(f"{seed} {one.sha256}".encode()).digest())


def folder_picture(folder: str | None, wanted: FolderFile) -> Bytes:
    """The pixels of one picture, upright, (height, width, 3); raises `Unusable` where it is gone or another one."""
    try:
        data = (_place(folder) / wanted.file).read_bytes()
    except OSError as error:
        raise Unusable(f"the background {wanted.file} cannot be read: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != wanted.sha256:
        raise Unusable(f"the background {wanted.file} has changed since it was chosen")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise Unusable(f"the background {wanted.file} has more than {MOST_PIXELS:,} pixels")
            return np.array(ImageOps.exif_transpose(picture).convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise Unusable(f"the background {wanted.file} is no picture that can be read") from error
