"""Reader of ImageNet-9: variations of foreground and background in nine super-classes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from counterfoil.labels.benchmark_classes import imagenet9
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
    MatchedFile,
    match_layout,
    note_partial,
    note_unresized,
    require_pictures,
    skip_strays,
)
from counterfoil.types import Skipped

NAME = "imagenet-9"
SIDE = 224  # pixels
EXPECTED = "original, mixed_same, mixed_rand and so on, each val/00_dog/<name>.JPEG to val/08_fish"
KINDS: dict[str, ArchiveCondition] = {
    "original": ORIGINAL,
    "mixed_same": ArchiveCondition("background", "mixed", "same"),
    "mixed_rand": ArchiveCondition("background", "mixed", "rand"),
    "mixed_next": ArchiveCondition("background", "mixed", "next"),
    "only_fg": ArchiveCondition("background", "only-fg", "black"),
    "no_fg": ArchiveCondition("presence", "no-fg", "black"),
    "only_bg_b": ArchiveCondition("presence", "only-bg", "black"),
    "only_bg_t": ArchiveCondition("presence", "only-bg", "tiled"),
}
_LAYOUT = rf"(?P<variation>{'|'.join(KINDS)})/(?:val/)?0(?P<number>[0-8])_[^/]+/"
_BESIDE = r"fg_mask/.*\.npy|in_to_in9\.json|.*/train/.*"
_SOURCE = re.compile(r"(?:fg_)?(?P<source>n\d{8}_\d+)")  # the foreground's photo, where a picture mixes two


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(match_layout(tree, _LAYOUT).places)


def read(tree: Tree) -> Archive:
    """Read every variation's pictures, joined by the photo of the foreground."""
    findings = match_layout(tree, _LAYOUT, beside=_BESIDE)
    require_pictures(findings.places, NAME, EXPECTED, tree)
    pictures, twice = drop_duplicates(collect_pictures(NAME, tree.sizes.path, map(_read_picture, findings.places)))
    variations = findings.folders("variation")
    return Archive(
        name=NAME, tree=tree, pictures=pictures, space=imagenet9(),
        skipped=(*_missing(variations), *twice, *skip_strays(NAME, findings.strays)), notes=tuple(_notes(variations)),
    )  # fmt: skip


def _read_picture(place: MatchedFile) -> ArchivePicture:
    label = imagenet9().labels[int(place.parts["number"])]
    return ArchivePicture(place.at, f"{label}/{source_photo(place.name)}", label, KINDS[place.parts["variation"]])


def source_photo(name: str) -> str:
    """The photo of a foreground: "fg_n02085620_16757_bg_n01532829_06835.JPEG" gives n02085620_16757."""
    match = _SOURCE.match(name)
    return match["source"] if match else name.rpartition(".")[0]


def _missing(variations: Mapping[str, int]) -> list[Skipped]:
    return [
        Skipped("every photo", "source", KINDS[name].edit, f"the folder {name} is missing")
        for name in KINDS
        if name not in variations
    ]


def _notes(variations: Mapping[str, int]) -> list[str]:
    most = max(variations.values())
    there = [name for name in KINDS if name in variations]
    partial = [note for name in there for note in note_partial(f"pictures in {name}", variations[name], most)]
    return [note_unresized(SIDE), *partial]
