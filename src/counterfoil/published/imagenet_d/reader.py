"""Reader of ImageNet-D: generated pictures by category, and the questions that come with them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import imagenet_d
from counterfoil.published.archive import Archive, ArchiveCondition, ArchivePicture, collect_pictures
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import match_layout, note_partial, read_text, require_pictures, skip_strays
from counterfoil.types import Skipped

NAME = "imagenet-d"
EXPECTED = "background, texture and material, each <category>/<id>.png, and questions/<factor>.csv"
KINDS: dict[str, ArchiveCondition] = {
    "background": ArchiveCondition("background", "background", "generated"),
    "texture": ArchiveCondition("texture", "texture", "generated"),
    "material": ArchiveCondition("material", "material", "generated"),
}
COUNTS = {"background": 3764, "texture": 498, "material": 573}  # pictures of the release
_LAYOUT = rf"(?P<factor>{'|'.join(KINDS)})/(?P<category>[^/]+)/"
_QUESTIONS = rf"questions/(?:{'|'.join(KINDS)})\.csv"
_COLUMNS = ["image_dir", "gt_category", "top1_pred_cate", "top2_pred_cate"]


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return any(category in _categories() for category in map(_folded, match_layout(tree, _LAYOUT).folders("category")))


def read(tree: Tree) -> Archive:
    """Read the archive's pictures; a factor may lack the folder of a category."""
    findings = match_layout(tree, _LAYOUT, beside=_QUESTIONS)
    require_pictures(findings.places, NAME, EXPECTED, tree)
    known = {name: label for name in findings.folders("category") if (label := _categories().get(_folded(name)))}
    if not known:
        raise UserError(
            f"expected categories of {NAME} such as 'alarm_clock' below {', '.join(KINDS)} at '{tree.where}',"
            f" got '{min(findings.folders('category'))}'"
        )
    pictures = (
        ArchivePicture(place.at, _sample(place.file), known[place.parts["category"]], KINDS[place.parts["factor"]])
        for place in findings.places.where(lambda parts: parts["category"] in known)
    )
    foreign = findings.places.where(lambda parts: parts["category"] not in known).files()
    factors = findings.folders("factor")
    return Archive(
        name=NAME, tree=tree, pictures=collect_pictures(NAME, tree.sizes.path, pictures), space=imagenet_d(),
        skipped=(*_missing(factors), *skip_strays(NAME, [*findings.strays, *foreign])),
        notes=tuple(note for kind in KINDS for note in note_partial(f"{kind} pictures", factors[kind], COUNTS[kind])),
        distractors=_distractors(tree, findings.root),
    )  # fmt: skip


def _sample(file: str) -> str:
    return "/".join(PurePosixPath(file).parts[-3:])


def _missing(factors: Mapping[str, int]) -> list[Skipped]:
    return [
        Skipped("every photo", "source", kind, f"the folder {kind} is missing") for kind in KINDS if not factors[kind]
    ]


def _distractors(tree: Tree, root: str) -> dict[str, str]:
    """The wrong answer that the release offers beside the true one (CLIP's best wrong answer), by picture path."""
    distractors: dict[str, str] = {}
    for factor in KINDS:
        path = f"{root}questions/{factor}.csv"
        if path in tree.sizes:
            distractors |= _read_questions(path, read_text(tree, path))
    return distractors


def _read_questions(path: str, text: str) -> dict[str, str]:
    try:
        return _questions(path, text)
    except csv.Error as error:
        raise UserError(f"expected a table divided by tabs in {path}, which cannot be read: {error}") from error


def _questions(path: str, text: str) -> dict[str, str]:
    table = csv.DictReader(text.splitlines(), delimiter="\t")
    if table.fieldnames != _COLUMNS:
        raise UserError(
            f"expected the columns {', '.join(_COLUMNS)}, divided by tabs, in {path}, got {table.fieldnames}"
        )
    distractors = {}
    for number, row in enumerate(table, 2):
        truth, *answers = (_categories().get(_folded(row[name] or "")) for name in _COLUMNS[1:])
        wrong = next((answer for answer in answers if answer and answer != truth), None)
        if wrong is None:
            cells = ", ".join(str(text) for text in list(row.values())[1:])
            raise UserError(f"expected a wrong category of {NAME} in line {number} of {path}, got {cells}")
        distractors[_sample(row["image_dir"])] = wrong
    return distractors


@cache
def _categories() -> dict[str, str]:
    """The category by every spelling that folders, questions and prompts use."""
    space = imagenet_d()
    return {_folded(text): label for label in space.labels for text in (label, space.name_of(label))}


def _folded(text: str) -> str:
    return " ".join(text.lower().replace("_", " ").replace("-", " ").replace("/", " or ").split())
