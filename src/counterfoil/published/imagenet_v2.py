"""ImageNet-V2: folders 0 to 999 whose names are the classes' indices, however they sort."""

from __future__ import annotations

from counterfoil.errors import UserError
from counterfoil.labels import imagenet1k
from counterfoil.published.archive import ORIGINAL, Archive, Found, exhibits_of
from counterfoil.published.finding import PICTURE, Findings, find, partial_note, refuse_none, stray_rows
from counterfoil.published.tree import Tree

NAME = "imagenet-v2"
EXPECTED = "folders 0 to 999, each of ten pictures"
PICTURES = 10_000
_TELLING = 500  # class folders; one's own sets have numbers for names too, and are not ImageNet for that
_LAYOUT = rf"(?P<index>\d{{1,4}})/(?P<name>{PICTURE})"


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive: many folders of plain numbers; 01, as in ImageNet-E, is none of them."""
    folders = find(tree, _LAYOUT).folders("index")
    return len(folders) >= _TELLING and all(name == str(int(name)) for name in folders)


def read(tree: Tree) -> Archive:
    """The pictures; a folder's name is read as a number, since 10 sorts before 2 as a text."""
    findings = find(tree, _LAYOUT)
    refuse_none(findings.places, NAME, EXPECTED, tree)
    _refuse_other_numbers(findings, tree)
    labels = imagenet1k().labels
    numbered = [(int(place.parts["index"]), place) for place in findings.places]
    found = [
        Found(place.file, f"{number}/{place.parts['name']}", labels[number], ORIGINAL) for number, place in numbered
    ]
    folders = findings.folders("index")
    notes = [
        *partial_note("pictures", len(found), PICTURES),
        *partial_note("class folders", len(folders), len(labels)),
        "Folders are classes by their number; a loader that sorts their names as texts (0, 1, 10, 100, ...) scores"
        " nearly every picture by another class.",
    ]
    return Archive(
        NAME, tree, exhibits_of(NAME, found), imagenet1k(),
        skipped=tuple(stray_rows(NAME, findings.strays)), notes=tuple(notes),
    )  # fmt: skip


def _refuse_other_numbers(findings: Findings, tree: Tree) -> None:
    """Folders that count from 1, or that were numbered anew, would give every picture another class."""
    numbers = [int(name) for name in findings.folders("index")]
    if max(numbers) >= len(imagenet1k().labels):
        raise UserError(
            f"expected folders 0 to 999 of {NAME} at '{tree.where}', got a folder {max(numbers)}: they count from 1 or"
            " belong to another benchmark"
        )
    if len(set(numbers)) < len(numbers):
        raise UserError(f"expected each class once at '{tree.where}', got two folders of one number, such as 7 and 007")
