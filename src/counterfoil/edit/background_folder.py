"""A background from a folder of pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.base import Edit, Subject, Supplied
from counterfoil.edit.cutting import cover
from counterfoil.edit.folder_pictures import FolderFile, chosen_file, files_of, folder_picture
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Picture

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class BackgroundFolder(Edit):
    """Put the object before a picture from a folder; brick, grass or gravel unless one is given."""

    attribute: ClassVar[Attribute] = "background"
    places: ClassVar[tuple[str, ...]] = ("folder",)  # settings that say where, not what: no part of a seed
    folder: str | None = None
    fit: Literal["cover", "tile"] = "cover"  # scaled to cover, or at its own size and mirrored where it ends
    file: str | None = None  # the picture inside the folder and its hash; chosen by the seed unless given
    sha256: str | None = None

    def __post_init__(self) -> None:
        if (self.file is None) != (self.sha256 is None):
            raise UserError("file, sha256: expected both or none")
        if self.folder is not None and self.file is None:
            files_of(self.folder)

    @property
    def level(self) -> str:
        """The name of the folder."""
        return "texture" if self.folder is None else Path(self.folder).name

    def choose(self, seed: int) -> BackgroundFolder:
        """Decide the picture: the settings alone make the variant again."""
        if self.file is not None:
            return self
        one = chosen_file(self.folder, seed)
        return replace(self, file=one.file, sha256=one.sha256)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Take the picture that was chosen, or choose one."""
        decided = self.choose(int(rng.integers(2**63)))
        image = folder_picture(self.folder, FolderFile(str(decided.file), str(decided.sha256)))
        height, width = subject.picture.alpha.shape
        if self.fit == "cover":
            return subject.on_background(cover(image, (height, width)))
        return subject.on_background(_tiled(image, (height, width), rng))


def _tiled(image: Bytes, shape: tuple[int, int], rng: np.random.Generator) -> Bytes:
    """The picture at its own size from a place drawn at random, mirrored where it ends."""
    indices = []
    for length, own in zip(shape, image.shape, strict=False):
        along = (np.arange(length) + rng.integers(2 * own)) % (2 * own)
        indices.append(np.minimum(along, 2 * own - 1 - along))
    return np.ascontiguousarray(image[indices[0]][:, indices[1]])
