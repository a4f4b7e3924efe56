"""A workspace as a collection: the pictures that `build` or `paint` made, before they are frozen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable
from counterfoil.evaluate import CollectionBase
from counterfoil.labels import LabelSpace, imagenet1k, space_named
from counterfoil.store import Workspace
from counterfoil.store.results import read_skipped
from counterfoil.types import Exhibit, Skipped


@dataclass(frozen=True)
class WorkspaceCollection(CollectionBase):
    """Every picture of a workspace; who chose among them is known once they were mined."""

    workspace: Workspace
    scoring: Literal["all", "subset"] = "all"

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.workspace.folder.resolve().name

    @property
    def digest(self) -> str:
        """Hash over every picture's id and pixels."""
        return self.workspace.digest

    @cached_property
    def space(self) -> LabelSpace | None:
        """The classes it was painted for, else ImageNet's where every label is in it, else the first model's own."""
        painted_for = self.workspace.record.get("classes")
        if painted_for:
            return space_named(str(painted_for))
        known = imagenet1k()
        return known if all(exhibit.variant.label in known for exhibit in self.exhibits) else None

    @property
    def surrogates(self) -> Mapping[str, str]:
        """The models that mining asked, with the digests of their weights."""
        mined = self.workspace.mined
        return {} if mined is None else mined.surrogates

    @property
    def notes(self) -> Sequence[str]:
        """That all pictures are shown, where mining kept some of them alone."""
        mined = self.workspace.mined
        if mined is None:
            return ()
        return (f"Mining kept {len(mined.kept)} of the {len(self.exhibits)} pictures; all of them are shown here.",)

    @property
    def exhibits(self) -> Sequence[Exhibit]:
        """Every picture in the order of the manifest."""
        return self.workspace.exhibits

    @cached_property
    def skipped(self) -> Sequence[Skipped]:
        """What could not be made."""
        return tuple(read_skipped(self.workspace.folder))

    def read(self, exhibit: Exhibit) -> NDArray[np.uint8]:
        """The pixels, checked to be those that the manifest names."""
        image = self.workspace.read(exhibit)
        if exhibit.sha256 and hashlib.sha256(image.tobytes()).hexdigest() != exhibit.sha256:
            raise Unusable(f"{exhibit.file} has other pixels than the manifest says: it was changed since it was made")
        return image
