"""ImageNet's validation pictures: in class folders, or flat with a file of labels beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import Unusable, UserError
from counterfoil.labels import imagenet1k
from counterfoil.published.archive import Archive
from counterfoil.published.exhibits import ORIGINAL, Found, exhibits_of
from counterfoil.published.finding import PICTURE, Findings, find, partial_note, refuse_none, stray_rows
from counterfoil.published.tree import Tree
from counterfoil.published.validation_labels import Labels, read_labels
from counterfoil.types import Skipped

NAME = "imagenet-val"
EXPECTED = "1,000 class folders by WordNet id, or ILSVRC2012_val_<number>.JPEG beside a file of labels"
PICTURES = 50_000
_IN_FOLDERS = r"(?P<wnid>n\d{8})/"
_VALIDATION = r"ILSVRC2012_val_\d{8}\.(?i:jpe?g|png)"
_LABEL_FILE = r"[^/]+\.(?:txt|csv)"
_KIT = r"(?:.*/)?ILSVRC2012_devkit_[^/]+/.*"  # the development kit, whose archive may lie beside the pictures'
_LABEL_BYTES = 100_000_000


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return any(find(tree, folders, _VALIDATION).places for folders in (_IN_FOLDERS, ""))


def read(tree: Tree) -> Archive:
    """The pictures with the labels of their folders or of the file."""
    for names in (_VALIDATION, PICTURE):  # by name first: train may lie beside val
        findings = find(tree, _IN_FOLDERS, names)
        if findings.places:
            return _in_folders(tree, findings)
    findings = find(tree, "", _VALIDATION, beside=f"{_LABEL_FILE}|{_KIT}")
    refuse_none(findings.places, NAME, EXPECTED, tree)
    return _flat(tree, findings)


def _in_folders(tree: Tree, findings: Findings) -> Archive:
    known = imagenet1k()
    other = sorted(wnid for wnid in findings.folders("wnid") if wnid not in known)
    if other:
        raise UserError(f"expected the 1,000 classes of ImageNet at '{tree.where}', got a folder {other[0]}")
    found = [Found(place.at, place.name, place.parts["wnid"], ORIGINAL) for place in findings.places]
    if len({item.sample for item in found}) < len(found):
        found = [item._replace(sample=f"{item.label}/{item.sample}") for item in found]
    notes = partial_note("class folders", len(findings.folders("wnid")), len(known.labels))
    return _archive(tree, found, findings, notes)


def _flat(tree: Tree, findings: Findings) -> Archive:
    names = [place.name for place in findings.places]
    file, labels = _labels(tree, findings.root, names)
    found = [
        Found(place.at, place.name, labels.ids[stem], ORIGINAL)
        for place in findings.places
        if (stem := _stem(place.name)) in labels.ids
    ]
    unlabelled = [
        Skipped(name, "source", "", "the picture has no label in the file")
        for name in names
        if _stem(name) not in labels.ids
    ]
    notes = [f"The numbers of {file} were read as {labels.counted}."] if labels.counted else []
    return _archive(tree, found, findings, notes, unlabelled)


def _archive(
    tree: Tree, found: list[Found], findings: Findings, notes: list[str], skipped: Sequence[Skipped] = ()
) -> Archive:
    return Archive(
        NAME, tree, exhibits_of(NAME, tree.sizes.path, found), imagenet1k(),
        skipped=(*skipped, *stray_rows(NAME, findings.strays)),
        notes=(*partial_note("pictures", len(found), PICTURES), *notes),
    )  # fmt: skip


def _labels(tree: Tree, root: str, names: Sequence[str]) -> tuple[str, Labels]:
    """The file of labels that speaks of most of these pictures, by its name: in the archive, else beside it."""
    inside = [path for path in tree.sizes if re.fullmatch(rf"{re.escape(root)}{_LABEL_FILE}|{_KIT}\.txt", path)]
    texts = {path: _told(tree, path) for path in inside}
    beside = tree.where.parent if tree.where.is_file() else tree.where / root
    for path in [*sorted(beside.glob("*.txt")), *sorted(beside.glob("*.csv"))]:
        if not path.is_file() or path.stat().st_size > _LABEL_BYTES:  # other people's files may lie there too
            continue
        texts.setdefault(path.name, _told_beside(path))
    stems = {_stem(name) for name in names}
    known: list[tuple[str, Labels]] = []
    refused: list[UserError] = []
    for called, text in texts.items():
        try:
            known.append((called, read_labels(called, text)))
        except UserError as error:  # other people's numbers, perhaps: another file may hold the labels
            refused.append(error)
    best = max(known, key=lambda file: len(stems & file[1].ids.keys()), default=None)
    if best is not None and stems & best[1].ids.keys():
        return best
    if refused:
        raise refused[0]
    raise UserError(
        f"expected a file of labels beside the {len(names):,} pictures at '{tree.where}', with lines such as"
        f" 'ILSVRC2012_val_00000001.JPEG 65' or '... n01751748', or one WordNet id a line;"
        f" found {', '.join(texts) or 'none'}"
    )


def _told(tree: Tree, path: str) -> str:
    """A text, or nothing where it cannot be read: another file may hold the labels."""
    try:
        return tree.read(path).decode("utf-8-sig", "replace")
    except Unusable:
        return ""


def _told_beside(path: Path) -> str:
    """The same of a file beside the archive."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _stem(name: str) -> str:
    return name.partition(".")[0]
