"""Reader of ObjectNet: the classes that are also in ImageNet, without the red border."""

from __future__ import annotations

import json
from typing import Any

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import imagenet_d
from counterfoil.labels.label_space import LabelSpace, imagenet1k
from counterfoil.published.archive import ORIGINAL, Archive, ArchivePicture, collect_pictures
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import match_layout, note_partial, read_text, require_pictures, skip_strays
from counterfoil.types import Skipped

NAME = "objectnet"
EXPECTED = "images/<folder>/<name>.png and mappings/objectnet_to_imagenet_1k.json"
OVERLAP = 113  # classes that are also in ImageNet
BORDER = 2  # pixels of the red border, which marks these pictures as not for training
_LAYOUT = r"images/(?P<folder>[^/]+)/"


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(match_layout(tree, _LAYOUT).places) and any("mappings/" in path for path in tree.sizes)


def read(tree: Tree) -> Archive:
    """Read the pictures of the classes that are also in ImageNet."""
    findings = match_layout(tree, _LAYOUT, beside=r"mappings/.*")
    require_pictures(findings.places, NAME, EXPECTED, tree)
    space, label_of = _classes(tree, findings.root)
    pictures = [
        ArchivePicture(place.at, f"{place.parts['folder']}/{place.name}", label_of[place.parts["folder"]], ORIGINAL)
        for place in findings.places.where(lambda parts: parts["folder"] in label_of)
    ]
    folders = findings.folders("folder")
    other = [
        Skipped(f"{name}/", "source", "", f"{folders[name]:,} pictures of a class that ImageNet has not")
        for name in sorted(folders)
        if name not in label_of
    ]
    if not pictures:
        raise UserError(f"expected folders of {NAME} that ImageNet has too at '{tree.where}', found none of {OVERLAP}")
    there = len({item.label for item in pictures})
    return Archive(
        name=NAME, tree=tree, pictures=collect_pictures(NAME, tree.sizes.path, pictures), space=space,
        skipped=(*other, *skip_strays(NAME, findings.strays)),
        notes=tuple(note_partial("classes that overlap with ImageNet", there, OVERLAP)), border=BORDER,
    )  # fmt: skip


def _classes(tree: Tree, root: str) -> tuple[LabelSpace, dict[str, str]]:
    """The overlapping classes with the ImageNet ids that count as each, and the class of each folder."""
    overlap = _mapping(tree, f"{root}mappings/objectnet_to_imagenet_1k.json")
    folders = _mapping(tree, f"{root}mappings/folder_to_objectnet_label.json")
    ids = {label: _ids(names) for label, names in overlap.items()}
    label_of = {folder: label for folder, label in folders.items() if label in ids}
    labels = sorted(set(label_of.values()))
    return LabelSpace(NAME, tuple(labels), tuple(labels), tuple(ids[label] for label in labels)), label_of


def _mapping(tree: Tree, path: str) -> dict[str, str]:
    if path not in tree.sizes:
        raise UserError(
            f"expected {path} in {NAME} at '{tree.where}', found none: it says which classes ImageNet has too"
        )
    try:
        content: Any = json.loads(read_text(tree, path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"expected JSON in {path} at '{tree.where}', got: {error}") from error
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise UserError(f"expected names by name in {path} at '{tree.where}', got something else")
    return content


def _ids(names: str) -> tuple[str, ...]:
    """The ids of "analog clock; digital clock"; for a name that ImageNet has twice, the id in ImageNet-D's overlap."""
    ids = []
    for name in names.split(";"):
        candidates = imagenet1k().lookup(name.split(",")[0].strip()) or imagenet1k().lookup(name.strip())
        if len(candidates) > 1:
            overlap = {wnid for label in imagenet_d().labels for wnid in imagenet_d().ids_of(label)}
            candidates = tuple(wnid for wnid in candidates if wnid in overlap)
        if len(candidates) != 1:
            raise UserError(f"expected one ImageNet class in the mapping of {NAME}, got '{name.strip()}'")
        ids.append(candidates[0])
    return tuple(ids)
