"""Archives that are plain class folders by WordNet id: ImageNet-A, -R, -Sketch and the validation pictures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from counterfoil.errors import UserError
from counterfoil.labels import LabelSpace, imagenet1k, imagenet_a, imagenet_r
from counterfoil.published.archive import ORIGINAL, Archive, Found, exhibits_of
from counterfoil.published.finding import PICTURE, Findings, find, partial_note, refuse_none, stray_rows
from counterfoil.published.tree import Tree

_LAYOUT = rf"(?P<wnid>n\d{{8}})/(?P<name>{PICTURE})"


@dataclass(frozen=True)
class ClassFolders:
    """How one such archive is told from the others, and how it is scored."""

    name: str
    space: LabelSpace
    pictures: int | None  # of the release, where its authors state it
    names: re.Pattern[str]  # as its files are called
    scoring: Literal["all", "subset"] = "all"

    @cached_property
    def expected(self) -> str:
        """What a reader looks for, in words."""
        return f"{len(self.space.labels):,} class folders such as {self.space.labels[0]}/<name>.JPEG"

    def fits(self, tree: Tree) -> bool:
        """Whether a tree looks like this archive: just its classes, or some of them and files called as its are."""
        findings = find(tree, _LAYOUT)
        wnids = set(findings.folders("wnid"))
        if not wnids or not wnids <= set(self.space.labels):
            return False
        validation = all(place.parts["name"].startswith("ILSVRC2012_val_") for place in findings.places)
        own_classes = self.space != imagenet1k() and len(wnids) == len(self.space.labels) and not validation
        return own_classes or all(self.names.fullmatch(place.parts["name"]) for place in findings.places)

    def read(self, tree: Tree) -> Archive:
        """The pictures with their folders' labels."""
        findings = find(tree, _LAYOUT)
        refuse_none(findings.places, self.name, self.expected, tree)
        self._refuse_other_classes(findings, tree)
        found = [
            Found(place.file, f"{place.parts['wnid']}/{place.parts['name']}", place.parts["wnid"], ORIGINAL)
            for place in findings.places
        ]
        return Archive(
            self.name, tree, exhibits_of(self.name, found), self.space, self.scoring,
            tuple(stray_rows(self.name, findings.strays)), tuple(self._notes(findings)),
        )  # fmt: skip

    def _refuse_other_classes(self, findings: Findings, tree: Tree) -> None:
        other = sorted(wnid for wnid in findings.folders("wnid") if wnid not in self.space)
        if other:
            raise UserError(
                f"expected only classes of {self.name} at '{tree.where}', got {len(other)} others, such as {other[0]}:"
                f" this is another benchmark or a mixture of several"
            )

    def _notes(self, findings: Findings) -> list[str]:
        there = len(findings.places)
        return [
            *partial_note("pictures", there, there if self.pictures is None else self.pictures),
            *partial_note("class folders", len(findings.folders("wnid")), len(self.space.labels)),
        ]


IMAGENET_A = ClassFolders("imagenet-a", imagenet_a(), None, re.compile(r"\d\.\d+_.*"), "subset")
IMAGENET_R = ClassFolders("imagenet-r", imagenet_r(), 30_000, re.compile(r"[a-z]+_\d+\..*"), "subset")
IMAGENET_SKETCH = ClassFolders("imagenet-sketch", imagenet1k(), None, re.compile(r"sketch_\d+\..*"))
