"""Reader of ImageNet-V2: class folders by number."""

from __future__ import annotations

from collections import Counter

from counterfoil.errors import UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.archive import ORIGINAL, Archive, ArchivePicture, collect_pictures
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import (
    LayoutFiles,
    MatchedFile,
    match_layout,
    note_partial,
    require_pictures,
    skip_strays,
)

NAME = "imagenet-v2"
EXPECTED = "folders 0 to 999, each of ten pictures"
PICTURES = 10_000
_TELLING = 500  # class folders; a user's own data may have a few numbered folders too
_LAYOUT = r"(?P<index>\d{1,4})/"


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive: many folders of plain numbers; 01, as in ImageNet-E, is not plain."""
    folders = match_layout(tree, _LAYOUT).folders("index")
    return len(folders) >= _TELLING and all(name == str(int(name)) for name in folders)


def read(tree: Tree) -> Archive:
    """Read the pictures; folder names are read as numbers, since 10 sorts before 2 as text."""
    findings = match_layout(tree, _LAYOUT)
    require_pictures(findings.places, NAME, EXPECTED, tree)
    _refuse_other_numbers(findings, tree)
    _refuse_several(tree)
    labels = imagenet1k().labels
    folders = findings.folders("index")
    notes = [
        *([f"The pictures are those of {findings.root.rstrip('/')}."] if findings.root else []),
        *note_partial("pictures", len(findings.places), PICTURES),
        *note_partial("class folders", len(folders), len(labels)),
        "Folders are classes by their number; a loader that sorts their names as texts (0, 1, 10, 100, ...) scores"
        " nearly every picture by another class.",
    ]
    return Archive(
        name=NAME,
        tree=tree,
        pictures=collect_pictures(NAME, tree.sizes.path, map(_read_picture, findings.places)),
        space=imagenet1k(),
        skipped=tuple(skip_strays(NAME, findings.strays)),
        notes=tuple(notes),
    )


def _read_picture(place: MatchedFile) -> ArchivePicture:
    number = int(place.parts["index"])
    return ArchivePicture(place.at, f"{number}/{place.name}", imagenet1k().labels[number], ORIGINAL)


def _refuse_several(tree: Tree) -> None:
    """Raise `UserError` where several of its three variants are present: each is a benchmark of its own."""
    classes = Counter(root for root, _ in match_layout(tree, _LAYOUT, any_root=True).places.folders("root", "index"))
    variants = sorted(root.rstrip("/") for root, many in classes.items() if many >= _TELLING)
    if len(variants) > 1:
        raise UserError(
            f"expected one variant of {NAME} at '{tree.where}', got {len(variants)}: {', '.join(variants)}; give one of"
            " them alone"
        )


def _refuse_other_numbers(findings: LayoutFiles, tree: Tree) -> None:
    """Raise `UserError` where folders count from 1 or were renumbered: every picture would get a wrong class."""
    numbers = [int(name) for name in findings.folders("index")]
    if max(numbers) >= len(imagenet1k().labels):
        raise UserError(
            f"expected folders 0 to 999 of {NAME} at '{tree.where}', got a folder {max(numbers)}: they count from 1 or"
            " belong to another benchmark"
        )
    if len(set(numbers)) < len(numbers):
        raise UserError(f"expected each class once at '{tree.where}', got two folders of one number, such as 7 and 007")
