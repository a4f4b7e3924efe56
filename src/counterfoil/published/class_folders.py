"""Readers of ImageNet-A, ImageNet-R and ImageNet-Sketch: class folders by WordNet id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import imagenet_a, imagenet_r
from counterfoil.labels.label_space import LabelSpace, imagenet1k
from counterfoil.published.archive import ORIGINAL, Archive, ArchivePicture, collect_pictures
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import (
    LayoutFiles,
    match_layout,
    note_partial,
    require_pictures,
    skip_strays,
)

_LAYOUT = r"(?P<wnid>n\d{8})/"
_OWN_PER_FOREIGN = 3  # classes of its own per foreign class; with fewer, the folder is another benchmark or a mixture
_RENDITIONS = (  # file names of ImageNet-R begin with these
    "art|cartoon|deviantart|embroidery|graffiti|graphic|misc|origami|painting|pattern|plastic|plush|sculpture|sketch"
    "|sticker|tattoo|toy|videogame"
)


@dataclass(frozen=True)
class ClassFolders:
    """How one such archive is recognised among the others, and how it is scored."""

    name: str
    space: LabelSpace
    pictures: int | None  # of the release, where its authors state the number
    names: re.Pattern[str]  # pattern of its file names
    scoring: Literal["all", "subset"] = "all"

    @cached_property
    def expected(self) -> str:
        """The expected files, in words."""
        return f"{len(self.space.labels):,} class folders such as {self.space.labels[0]}/<name>.JPEG"

    def fits(self, tree: Tree) -> bool:
        """Whether a tree looks like this archive: exactly its classes, or some of them with its file names."""
        findings = match_layout(tree, _LAYOUT)
        wnids = set(findings.folders("wnid"))
        if not self._mostly_own(wnids):
            return False
        validation = all(place.name.startswith("ILSVRC2012_val_") for place in findings.places)
        own_classes = self.space != imagenet1k() and wnids == set(self.space.labels) and not validation
        return own_classes or all(self.names.fullmatch(place.name) for place in findings.places)

    def may_fit(self, tree: Tree) -> bool:
        """Whether the class folders of a tree are mostly this archive's, whatever the file names."""
        return self._mostly_own(set(match_layout(tree, _LAYOUT).folders("wnid")))

    def _mostly_own(self, wnids: set[str]) -> bool:
        foreign = sum(wnid not in self.space for wnid in wnids)
        return bool(wnids) and len(wnids) - foreign >= _OWN_PER_FOREIGN * foreign

    def read(self, tree: Tree) -> Archive:
        """Read the pictures with their folders' labels; pictures of a few other classes are strays."""
        findings = match_layout(tree, _LAYOUT)
        require_pictures(findings.places, self.name, self.expected, tree)
        foreign = sorted(wnid for wnid in findings.folders("wnid") if wnid not in self.space)
        self._refuse_other_classes(findings, foreign, tree)
        findings = _exclude_classes(findings, foreign)
        pictures = (
            ArchivePicture(place.at, f"{place.parts['wnid']}/{place.name}", place.parts["wnid"], ORIGINAL)
            for place in findings.places
        )
        return Archive(
            name=self.name,
            tree=tree,
            pictures=collect_pictures(self.name, tree.sizes.path, pictures),
            space=self.space,
            scoring=self.scoring,
            skipped=tuple(skip_strays(self.name, findings.strays)),
            notes=tuple(self._notes(findings, foreign)),
        )

    def _refuse_other_classes(self, findings: LayoutFiles, foreign: list[str], tree: Tree) -> None:
        wnids = set(findings.folders("wnid"))
        if not self._mostly_own(wnids):
            raise UserError(
                f"expected only classes of {self.name} at '{tree.where}', got {_describe_others(foreign)}, beside"
                f" {len(wnids) - len(foreign)} of its own: this is another benchmark or a mixture of several"
            )

    def _notes(self, findings: LayoutFiles, foreign: list[str]) -> list[str]:
        there = len(findings.places)
        return [
            *([f"Left out, since {self.name} has no such classes: {', '.join(foreign)}."] if foreign else []),
            *note_partial("pictures", there, there if self.pictures is None else self.pictures),
            *note_partial("class folders", len(findings.folders("wnid")), len(self.space.labels)),
        ]


def _exclude_classes(findings: LayoutFiles, foreign: list[str]) -> LayoutFiles:
    """Return the findings with the files of foreign classes moved to the strays."""
    if not foreign:
        return findings

    strays = findings.places.where(lambda parts: parts["wnid"] in foreign).files()
    own = findings.places.where(lambda parts: parts["wnid"] not in foreign)
    return LayoutFiles(own, (*findings.strays, *strays), findings.root)


def _describe_others(foreign: list[str]) -> str:
    return f"{len(foreign)} other{'' if len(foreign) == 1 else 's'}, such as {foreign[0]}"


IMAGENET_A = ClassFolders("imagenet-a", imagenet_a(), None, re.compile(r"\d\.\d+_.*"), "subset")
IMAGENET_R = ClassFolders("imagenet-r", imagenet_r(), 30_000, re.compile(rf"(?:{_RENDITIONS})_\d+\..*"), "subset")
IMAGENET_SKETCH = ClassFolders("imagenet-sketch", imagenet1k(), None, re.compile(r"sketch_\d+\..*"))
