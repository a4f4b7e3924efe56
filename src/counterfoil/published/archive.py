"""A published archive as a collection: its pictures in a fixed order, read one by one from where they lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.evaluate import CollectionBase
from counterfoil.labels import LabelSpace
from counterfoil.published.exhibits import Exhibits
from counterfoil.published.pixels import pixels
from counterfoil.published.tree import Tree
from counterfoil.types import Exhibit, Model, Skipped


@dataclass(frozen=True)
class Archive(CollectionBase):
    """A published benchmark, read where it lies."""

    name: str
    tree: Tree = field(repr=False)
    exhibits: Exhibits = field(repr=False)
    space: LabelSpace | None = None
    scoring: Literal["all", "subset"] = "all"
    skipped: tuple[Skipped, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    surrogates: Mapping[str, str] = field(default_factory=dict)
    border: int = 0  # pixels cropped from every side
    distractors: Mapping[str, str] = field(default_factory=dict, repr=False)  # wrong answers to offer, by sample

    @cached_property
    def digest(self) -> str:
        """Hash over every picture's path, size in bytes and label.

        The bytes themselves are not hashed: that would read gigabytes at every start. A run hashes the pixels of
        every picture that it shows, so a picture that was changed to the same size is found out there.
        """
        about = json.dumps([self.name, self.border, sorted(self.distractors.items()), []])
        hashed = hashlib.sha256(about.removesuffix("]]").encode())
        for number, (at, label, name) in enumerate(self.exhibits.by_file()):
            row = (self.exhibits.file_at(at), self.size(at), label, name)
            hashed.update(f"{', ' if number else ''}{json.dumps(row)}".encode())
        hashed.update(b"]]")
        return hashed.hexdigest()

    def size(self, at: int) -> int:
        """Bytes of the file at a place."""
        return self.tree.sizes.size(at)

    def read(self, exhibit: Exhibit) -> NDArray[np.uint8]:
        """The pixels of one picture, (height, width, 3), RGB; raises `Unusable` where that fails."""
        image = pixels(self.tree.read(exhibit.file))
        if not self.border:
            return image
        if min(image.shape[:2]) <= 2 * self.border:
            raise Unusable(f"the picture is not larger than its border of {self.border} pixels")
        return np.ascontiguousarray(image[self.border : -self.border, self.border : -self.border])

    def adapt(self, model: Model) -> Model:
        """The model, offered the wrong answers that the archive ships."""
        return model.offering(self.distractors)
