"""ImageNet's validation pictures: in class folders, or flat with a file of labels beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import Unusable, UserError
from counterfoil.labels import imagenet1k
from counterfoil.published.archive import ORIGINAL, Archive, Found, exhibits_of
from counterfoil.published.finding import PICTURE, Findings, find, partial_note, refuse_none, stray_rows
from counterfoil.published.tree import Tree
from counterfoil.types import Skipped

NAME = "imagenet-val"
EXPECTED = "1,000 class folders by WordNet id, or ILSVRC2012_val_<number>.JPEG beside a file of labels"
PICTURES = 50_000
_IN_FOLDERS = rf"(?P<wnid>n\d{{8}})/(?P<name>{PICTURE})"
_VALIDATION = r"ILSVRC2012_val_\d{8}\.(?i:jpe?g|png)"
_VALIDATION_IN_FOLDERS = rf"(?P<wnid>n\d{{8}})/(?P<name>{_VALIDATION})"
_FLAT = rf"(?P<name>{_VALIDATION})"
_LABEL_FILE = r"[^/]+\.(?:txt|csv)"
_WNID = re.compile(r"n\d{8}")
_LABEL_BYTES = 100_000_000


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(find(tree, _VALIDATION_IN_FOLDERS).places) or bool(find(tree, _FLAT).places)


def read(tree: Tree) -> Archive:
    """The pictures with the labels of their folders or of the file."""
    for layout in (_VALIDATION_IN_FOLDERS, _IN_FOLDERS):  # by name first: train may lie beside val
        findings = find(tree, layout)
        if findings.places:
            return _in_folders(tree, findings)
    findings = find(tree, _FLAT, beside=_LABEL_FILE)
    refuse_none(findings.places, NAME, EXPECTED, tree)
    return _flat(tree, findings)


def _in_folders(tree: Tree, findings: Findings) -> Archive:
    known = imagenet1k()
    other = sorted(wnid for wnid in findings.folders("wnid") if wnid not in known)
    if other:
        raise UserError(f"expected the 1,000 classes of ImageNet at '{tree.where}', got a folder {other[0]}")
    found = [Found(place.file, place.parts["name"], place.parts["wnid"], ORIGINAL) for place in findings.places]
    if len({item.sample for item in found}) < len(found):
        found = [item._replace(sample=f"{item.label}/{item.sample}") for item in found]
    notes = partial_note("class folders", len(findings.folders("wnid")), len(known.labels))
    return _archive(tree, found, findings, notes)


def _flat(tree: Tree, findings: Findings) -> Archive:
    names = [place.parts["name"] for place in findings.places]
    labels = _labels(tree, findings.root, names)
    found = [
        Found(place.file, place.parts["name"], labels[stem], ORIGINAL)
        for place in findings.places
        if (stem := _stem(place.parts["name"])) in labels
    ]
    unlabelled = [
        Skipped(name, "source", "", "the picture has no label in the file")
        for name in names
        if _stem(name) not in labels
    ]
    return _archive(tree, found, findings, [], unlabelled)


def _archive(
    tree: Tree, found: list[Found], findings: Findings, notes: list[str], skipped: Sequence[Skipped] = ()
) -> Archive:
    return Archive(
        NAME, tree, exhibits_of(NAME, found), imagenet1k(), skipped=(*skipped, *stray_rows(NAME, findings.strays)),
        notes=(*partial_note("pictures", len(found), PICTURES), *notes),
    )  # fmt: skip


def _labels(tree: Tree, root: str, names: Sequence[str]) -> dict[str, str]:
    """The first file of labels that speaks of these pictures: in the archive, else beside it."""
    inside = [path for path in tree.sizes if re.fullmatch(rf"{re.escape(root)}{_LABEL_FILE}", path)]
    texts = {path: _told(tree, path) for path in inside}
    beside = tree.where.parent if tree.where.is_file() else tree.where / root
    for path in [*sorted(beside.glob("*.txt")), *sorted(beside.glob("*.csv"))]:
        if not path.is_file() or path.stat().st_size > _LABEL_BYTES:  # other people's files may lie there too
            continue
        texts.setdefault(path.name, path.read_text(encoding="utf-8-sig", errors="replace"))
    stems = {_stem(name) for name in names}
    for text in texts.values():
        labels = _parsed(text)
        if stems & labels.keys():
            return labels
    _refuse_devkit(texts, tree.where)
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


def _parsed(text: str) -> dict[str, str]:
    """Stems to ids: "NAME 65", "NAME,n01751748 111 ...", or one id a line in the order of the pictures' numbers."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(_WNID.fullmatch(line) for line in lines):
        return {f"ILSVRC2012_val_{number:08d}": line for number, line in enumerate(lines, 1)}
    known = imagenet1k()
    labels = {}
    for line in lines:
        name, *rest = re.split(r"[\s,]+", line)
        if not rest or not name.startswith("ILSVRC2012_val_"):
            continue
        if rest[0] in known:
            labels[_stem(name)] = rest[0]
        elif re.fullmatch(r"[0-9]{1,3}", rest[0]):
            labels[_stem(name)] = known.labels[int(rest[0])]
    return labels


def _refuse_devkit(texts: dict[str, str], where: Path) -> None:
    """The development kit counts classes from 1 in an order of its own, which only its meta.mat tells."""
    for path, text in texts.items():
        lines = text.split()
        if lines and all(line.isdecimal() for line in lines):
            raise UserError(
                f"expected labels as WordNet ids or as indices 0 to 999 with the pictures' names at '{where}', got"
                f" {path} with numbers alone, which the development kit counts in an order of its own"
            )


def _stem(name: str) -> str:
    return name.partition(".")[0]
