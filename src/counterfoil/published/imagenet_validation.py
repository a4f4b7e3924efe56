"""Reader of the ImageNet validation set: class folders, or flat files labelled by a file beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from counterfoil.errors import Unusable, UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.archive import ORIGINAL, Archive, ArchivePicture, collect_pictures
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import (
    PICTURE,
    LayoutFiles,
    match_layout,
    note_partial,
    require_pictures,
    skip_strays,
)
from counterfoil.types import Skipped

_ORDER = Path(__file__).parent / "imagenet_val_order.csv"
# Index among the sorted WordNet ids for each number of the development kit, which counts from 1.
INDICES = tuple(map(int, _ORDER.read_text("ascii").split()[1:]))

_FIRST = (65, 970, 230, 809, 516, 57, 334, 415, 674, 332)  # indices of ILSVRC2012_val_00000001 and the nine after it
_NAME = re.compile(r"ILSVRC2012_val_(?P<number>\d{8})")
_WNID = re.compile(r"n\d{8}")
_NUMBERINGS: dict[str, Callable[[int], int]] = {  # from a file's number to the index among sorted WordNet ids
    "indices 0 to 999 of the sorted WordNet ids": lambda number: number,
    "places 1 to 1000 of the sorted WordNet ids": lambda number: number - 1,
    "ILSVRC2012_ID of the development kit, which has an order of its own": lambda number: INDICES[number - 1],
}


class ValidationLabels(NamedTuple):
    """The content of a label file: WordNet ids by the pictures' stems, and how its numbers were read."""

    ids: Mapping[str, str]
    counted: str = ""  # empty where the file names WordNet ids


def read_labels(path: str, text: str) -> ValidationLabels:
    """Read the labels of "NAME 65", "NAME,n01751748 111 ...", or one id or number a line; empty for other files."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(_WNID.fullmatch(line) or re.fullmatch(r"[0-9]{1,4}", line) for line in lines):
        _refuse_other_order(path, lines)
        return _resolve_labels(path, dict(enumerate(lines, 1)))
    labels: dict[int, str] = {}
    for line in lines:
        name, *rest = re.split(r"[\s,]+", line)
        if rest and (match := _NAME.search(name)) and re.fullmatch(r"n\d{8}|[0-9]{1,4}", rest[0]):
            labels[int(match["number"])] = rest[0]
    return _resolve_labels(path, labels)


def _refuse_other_order(path: str, lines: Sequence[str]) -> None:
    """Raise `UserError` where ids without names do not begin with those of the first pictures: it may list classes."""
    first = [imagenet1k().labels[index] for index in _FIRST]
    for number, (line, known) in enumerate(zip(lines, first, strict=False), 1):
        if not line.isdecimal() and line != known:
            raise UserError(
                f"expected the WordNet id of every validation picture in order in {path}, where"
                f" {_label_file_stem(number)} is {known}; got {line}: write the pictures' names before their ids"
            )


def _resolve_labels(path: str, labels: Mapping[int, str]) -> ValidationLabels:
    known = imagenet1k()
    named = {number: text for number, text in labels.items() if text in known}
    counted = {number: int(text) for number, text in labels.items() if text.isdecimal()}
    if not counted:
        return ValidationLabels({_label_file_stem(number): text for number, text in named.items()})
    numbering = _detect_numbering(path, counted)
    index = _NUMBERINGS[numbering]
    return ValidationLabels(
        {_label_file_stem(number): known.labels[index(value)] for number, value in counted.items()}, numbering
    )


def _detect_numbering(path: str, counted: Mapping[int, int]) -> str:
    """Return the only numbering that gives the first pictures their known classes; raises `UserError` without one."""
    first = {number: counted[number] for number in range(1, len(_FIRST) + 1) if number in counted}
    numberings = [numbering for numbering in _NUMBERINGS if _possible(numbering, counted) and _fits(numbering, first)]
    if len(numberings) == 1:
        return numberings[0]
    shown = ", ".join(f"{_label_file_stem(number)} {value}" for number, value in list(first.items())[:3])
    numbers = f"numbers from {min(counted.values())} to {max(counted.values())} and none of the first ten pictures"
    raise UserError(
        f"expected labels in {path} that count as {'; or as '.join(_NUMBERINGS)}, where"
        f" {_label_file_stem(1)} is 65, 66 or 490; got {shown or numbers}: use WordNet ids instead"
    )


def _possible(numbering: str, counted: Mapping[int, int]) -> bool:
    low = 0 if numbering.startswith("indices 0") else 1
    return low <= min(counted.values()) and max(counted.values()) < low + len(INDICES)


def _fits(numbering: str, first: Mapping[int, int]) -> bool:
    return all(_NUMBERINGS[numbering](value) == _FIRST[number - 1] for number, value in first.items())


def _label_file_stem(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


NAME = "imagenet-val"
EXPECTED = "1,000 class folders by WordNet id, or ILSVRC2012_val_<number>.JPEG beside a file of labels"
PICTURES = 50_000
_IN_FOLDERS = r"(?P<wnid>n\d{8})/"
_VALIDATION = r"ILSVRC2012_val_\d{8}\.(?i:jpe?g|png)"
_LABEL_FILE = r"[^/]+\.(?:txt|csv)"
_KIT = r"(?:.*/)?ILSVRC2012_devkit_[^/]+/.*"  # the development kit, whose archive may lie beside that of the pictures
_LABEL_BYTES = 100_000_000


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return any(match_layout(tree, folders, _VALIDATION).places for folders in (_IN_FOLDERS, ""))


def read(tree: Tree) -> Archive:
    """Read the pictures with the labels of their folders or of the label file."""
    for names in (_VALIDATION, PICTURE):  # validation names first: train may lie beside val
        findings = match_layout(tree, _IN_FOLDERS, names)
        if findings.places:
            return _read_folders(tree, findings)
    findings = match_layout(tree, "", _VALIDATION, beside=f"{_LABEL_FILE}|{_KIT}")
    require_pictures(findings.places, NAME, EXPECTED, tree)
    return _read_flat(tree, findings)


def _read_folders(tree: Tree, findings: LayoutFiles) -> Archive:
    known = imagenet1k()
    other = sorted(wnid for wnid in findings.folders("wnid") if wnid not in known)
    if other:
        raise UserError(f"expected the 1,000 classes of ImageNet at '{tree.where}', got a folder {other[0]}")
    pictures = [ArchivePicture(place.at, place.name, place.parts["wnid"], ORIGINAL) for place in findings.places]
    if len({item.sample for item in pictures}) < len(pictures):
        pictures = [item._replace(sample=f"{item.label}/{item.sample}") for item in pictures]
    notes = note_partial("class folders", len(findings.folders("wnid")), len(known.labels))
    return _archive(tree, pictures, findings, notes)


def _read_flat(tree: Tree, findings: LayoutFiles) -> Archive:
    names = [place.name for place in findings.places]
    file, labels = _find_labels(tree, findings.root, names)
    pictures = [
        ArchivePicture(place.at, place.name, labels.ids[stem], ORIGINAL)
        for place in findings.places
        if (stem := _stem(place.name)) in labels.ids
    ]
    unlabelled = [
        Skipped(name, "source", "", "the picture has no label in the file")
        for name in names
        if _stem(name) not in labels.ids
    ]
    notes = [f"The numbers of {file} were read as {labels.counted}."] if labels.counted else []
    return _archive(tree, pictures, findings, notes, unlabelled)


def _archive(
    tree: Tree, pictures: list[ArchivePicture], findings: LayoutFiles, notes: list[str], skipped: Sequence[Skipped] = ()
) -> Archive:
    return Archive(
        name=NAME, tree=tree, pictures=collect_pictures(NAME, tree.sizes.path, pictures), space=imagenet1k(),
        skipped=(*skipped, *skip_strays(NAME, findings.strays)),
        notes=(*note_partial("pictures", len(pictures), PICTURES), *notes),
    )  # fmt: skip


def _find_labels(tree: Tree, root: str, names: Sequence[str]) -> tuple[str, ValidationLabels]:
    """Find the label file, and its name, that covers most of these pictures: in the archive, else beside it."""
    inside = [path for path in tree.sizes if re.fullmatch(rf"{re.escape(root)}{_LABEL_FILE}|{_KIT}\.txt", path)]
    texts = {path: _read_text(tree, path) for path in inside}
    beside = tree.where.parent if tree.where.is_file() else tree.where / root
    for path in [*sorted(beside.glob("*.txt")), *sorted(beside.glob("*.csv"))]:
        if not path.is_file() or path.stat().st_size > _LABEL_BYTES:  # unrelated files may lie there too
            continue
        texts.setdefault(path.name, _read_label_file(path))
    stems = {_stem(name) for name in names}
    known: list[tuple[str, ValidationLabels]] = []
    refused: list[UserError] = []
    for called, text in texts.items():
        try:
            known.append((called, read_labels(called, text)))
        except UserError as error:  # perhaps an unrelated file: another one may hold the labels
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


def _read_text(tree: Tree, path: str) -> str:
    """Return a text, or "" where it cannot be read: another file may hold the labels."""
    try:
        return tree.read(path).decode("utf-8-sig", "replace")
    except Unusable:
        return ""


def _read_label_file(path: Path) -> str:
    """Read a label file beside the archive in the same way."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _stem(name: str) -> str:
    return name.partition(".")[0]
