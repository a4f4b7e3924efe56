"""Reader of ImageNet-E: a folder per edit, labels in labels.txt."""

from __future__ import annotations

import re
from collections.abc import Mapping

from counterfoil.errors import UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.archive import (
    ORIGINAL,
    Archive,
    ArchiveCondition,
    ArchivePicture,
    collect_pictures,
    drop_duplicates,
)
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import (
    LayoutFiles,
    match_layout,
    note_partial,
    read_text,
    require_pictures,
    skip_strays,
)
from counterfoil.types import Skipped

NAME = "imagenet-e"
EXPECTED = "labels.txt and the folders ori, rec, full, 20_smooth, 20_hard, 20_adv, random_bg, 01, 008, 005, rp, rd"
KINDS: dict[str, ArchiveCondition] = {
    "ori": ORIGINAL,
    "rec": ArchiveCondition("control", "control", "rec"),
    "20_smooth": ArchiveCondition("background", "background-complexity", "-20"),
    "20_hard": ArchiveCondition("background", "background-complexity", "20"),
    "20_adv": ArchiveCondition("background", "background-complexity", "20-adv"),
    "random_bg": ArchiveCondition("background", "background-random", "random"),
    "full": ArchiveCondition("size", "size", "full"),
    "01": ArchiveCondition("size", "size", "0.1"),
    "008": ArchiveCondition("size", "size", "0.08"),
    "005": ArchiveCondition("size", "size", "0.05"),
    "rp": ArchiveCondition("position", "position", "random"),
    "rd": ArchiveCondition("direction", "direction", "random"),
}
REFERENCES = {  # what a kind is compared with, where it went through more than its own change
    **dict.fromkeys(("20_smooth", "20_hard", "20_adv"), "rec"),  # the same painting with lambda 0
    **dict.fromkeys(("rp", "rd"), "005"),  # moved and turned at the rate of 005
}
_LAYOUT = rf"(?P<kind>{'|'.join(KINDS)})/"
_TELLING = {"20_smooth", "20_hard", "20_adv", "random_bg"}  # folder names that no other benchmark has


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    findings = match_layout(tree, _LAYOUT)
    kinds = findings.folders("kind")
    return not _TELLING.isdisjoint(kinds) or ("ori" in kinds and f"{findings.root}labels.txt" in tree.sizes)


def read(tree: Tree) -> Archive:
    """Read the archive's pictures with the labels of labels.txt."""
    findings = match_layout(tree, _LAYOUT, beside=r"labels\.txt")
    require_pictures(findings.places, NAME, EXPECTED, tree)
    kinds = findings.folders("kind")
    if "ori" not in kinds:
        raise UserError(f"expected the folder ori in {NAME} at '{tree.where}', found only {', '.join(sorted(kinds))}")
    labels = _labels(tree, f"{findings.root}labels.txt")
    found, unlabelled = _label_pictures(findings, labels)
    pictures, twice = drop_duplicates(collect_pictures(NAME, tree.sizes.path, found))
    if not pictures:
        raise UserError(f"expected the pictures' names in labels.txt of '{tree.where}', found none of them there")
    return Archive(
        name=NAME, tree=tree, pictures=pictures, space=imagenet1k(),
        skipped=(*_missing(kinds), *unlabelled, *twice, *skip_strays(NAME, findings.strays)),
        notes=tuple(_notes(kinds)),
        references={KINDS[kind].place: KINDS[other].place for kind, other in REFERENCES.items()},
    )  # fmt: skip


def _labels(tree: Tree, path: str) -> dict[str, str]:
    """The class of each stem; blank lines are ignored."""
    if path not in tree.sizes:
        raise UserError(f"expected labels.txt beside the folder ori in {NAME} at '{tree.where}', found none")
    known = imagenet1k().labels
    labels: dict[str, str] = {}
    for number, line in enumerate(read_text(tree, path).splitlines(), 1):
        if not line.strip():
            continue
        name, _, index = line.strip().rpartition("\t")
        if not name or not re.fullmatch(r"0*[0-9]{1,3}", index.strip()) or int(index) >= len(known):
            raise UserError(
                f"expected NAME, a tab and a class from 0 to {len(known) - 1} in line {number} of labels.txt,"
                f" got '{line.strip()[:60]}'"
            )
        labels[_stem(name)] = known[int(index)]
    return labels


def _label_pictures(findings: LayoutFiles, labels: Mapping[str, str]) -> tuple[list[ArchivePicture], list[Skipped]]:
    pictures, unlabelled = [], []
    for place in findings.places:
        stem, kind = _stem(place.name), place.parts["kind"]
        if stem in labels:
            pictures.append(ArchivePicture(place.at, stem, labels[stem], KINDS[kind]))
        else:
            unlabelled.append(Skipped(stem, "source", kind, "the picture has no line in labels.txt"))
    return pictures, unlabelled


def _missing(kinds: Mapping[str, int]) -> list[Skipped]:
    return [
        Skipped("every photo", "source", KINDS[kind].edit, f"the folder {kind} is missing")
        for kind in KINDS
        if kind not in kinds
    ]


def _notes(kinds: Mapping[str, int]) -> list[str]:
    """Notes on differences between the folders of one copy."""
    there = [kind for kind in KINDS if kind in kinds]
    notes = [note for kind in there for note in note_partial(f"pictures in {kind}", kinds[kind], kinds["ori"])]
    absent = [kind for kind in KINDS if kind not in kinds]
    if absent:
        notes.append(f"The folders {', '.join(absent)} are missing: a mean over kinds is not the paper's.")
    return notes


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name
