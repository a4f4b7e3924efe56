"""The background taken from a folder of pictures, chosen by the variant's seed."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from counterfoil.assets.cache import fetch_asset
from counterfoil.edits.cutout import cover
from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, Picture

SHIPPED = "textures-scikit-image"  # brick, grass and gravel
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
MOST_PIXELS = 100_000_000  # beyond this a file counts as a decompression bomb
FORMATS = ("JPEG", "PNG", "WEBP")

Bytes = NDArray[np.uint8]


class FolderFile(NamedTuple):
    """One picture of a folder; the hash detects changes."""

    file: str  # path inside the folder
    sha256: str


def list_files(folder: str | None) -> Sequence[FolderFile]:
    """The pictures of a folder and its subfolders in a fixed order; None is brick, grass and gravel."""
    place = _folder_path(folder)
    if not place.is_dir():
        raise UserError(f"folder: expected a folder of pictures, got '{folder}'")
    files = _list_pictures(place, place.stat().st_mtime_ns)
    if not files:
        raise UserError(f"folder: expected pictures ({', '.join(SUFFIXES)}), found none in '{folder}'")
    return files


def _folder_path(folder: str | None) -> Path:
    return fetch_asset(SHIPPED) if folder is None else Path(folder)


@lru_cache(maxsize=16)
def _list_pictures(place: Path, changed: int) -> tuple[FolderFile, ...]:
    """The folder's pictures, hashed once and again only where `changed` differs."""
    paths = sorted(path for path in place.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    return tuple(
        FolderFile(path.relative_to(place).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths
    )


def choose_file(folder: str | None, seed: int) -> FolderFile:
    """The picture for this seed: the one with the highest hash, so that a new picture changes few choices."""
    return max(list_files(folder), key=lambda one: hashlib.sha256(f"{seed} {one.sha256}".encode()).digest())


def read_folder_picture(folder: str | None, wanted: FolderFile) -> Bytes:
    """The pixels of one picture, upright, (height, width, 3); raises `Unusable` where it is gone or has changed."""
    try:
        content = (_folder_path(folder) / wanted.file).read_bytes()
    except OSError as error:
        raise Unusable(f"the background {wanted.file} cannot be read: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != wanted.sha256:
        raise Unusable(f"the background {wanted.file} has changed since it was chosen")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise Unusable(f"the background {wanted.file} has more than {MOST_PIXELS:,} pixels")
            return np.array(ImageOps.exif_transpose(picture).convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise Unusable(f"the background {wanted.file} is no picture that can be read") from error


@dataclass(frozen=True)
class BackgroundFolder(Edit):
    """Put the object before a picture from a folder; brick, grass or gravel unless one is given."""

    attribute: ClassVar[Attribute] = "background"
    places: ClassVar[tuple[str, ...]] = ("folder",)  # settings that are file locations: no part of a seed
    folder: str | None = None
    fit: Literal["cover", "tile"] = "cover"  # scaled to cover, or at its own size and mirrored where it ends
    file: str | None = None  # the picture inside the folder and its hash; chosen by the seed unless given
    sha256: str | None = None

    def __post_init__(self) -> None:
        if (self.file is None) != (self.sha256 is None):
            raise UserError("file, sha256: expected both or none")
        if self.folder is not None and self.file is None:
            list_files(self.folder)

    @property
    def level(self) -> str:
        """The name of the folder."""
        return "texture" if self.folder is None else Path(self.folder).name

    def choose(self, seed: int) -> BackgroundFolder:
        """Choose the picture, so that the settings alone reproduce the variant."""
        if self.file is not None:
            return self
        one = choose_file(self.folder, seed)
        return replace(self, file=one.file, sha256=one.sha256)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Put the object before the chosen picture; choose one where none was chosen."""
        decided = self.choose(int(rng.integers(2**63)))
        image = read_folder_picture(self.folder, FolderFile(str(decided.file), str(decided.sha256)))
        height, width = subject.picture.alpha.shape
        if self.fit == "cover":
            return subject.on_background(cover(image, (height, width)))
        return subject.on_background(_tile_mirrored(image, (height, width), rng))


def _tile_mirrored(image: Bytes, shape: tuple[int, int], rng: np.random.Generator) -> Bytes:
    """The picture at its own size from a random offset, mirrored at its ends."""
    indices = []
    for length, own in zip(shape, image.shape, strict=False):
        along = (np.arange(length) + rng.integers(2 * own)) % (2 * own)
        indices.append(np.minimum(along, 2 * own - 1 - along))
    return np.ascontiguousarray(image[indices[0]][:, indices[1]])
