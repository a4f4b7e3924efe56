"""ImageNet-9, the Backgrounds challenge: foregrounds and backgrounds apart and mixed, in nine super-classes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from counterfoil.labels import imagenet9
from counterfoil.published.archive import Archive
from counterfoil.published.exhibits import ORIGINAL, Found, Kind, exhibits_of, once
from counterfoil.published.finding import Place, find, partial_note, refuse_none, shown_as_they_are, stray_rows
from counterfoil.published.tree import Tree
from counterfoil.types import Skipped

NAME = "imagenet-9"
SIDE = 224  # pixels
EXPECTED = "original, mixed_same, mixed_rand and so on, each val/00_dog/<name>.JPEG to val/08_fish"
KINDS: dict[str, Kind] = {
    "original": ORIGINAL,
    "mixed_same": Kind("background", "mixed", "same"),
    "mixed_rand": Kind("background", "mixed", "rand"),
    "mixed_next": Kind("background", "mixed", "next"),
    "only_fg": Kind("background", "only-fg", "black"),
    "no_fg": Kind("presence", "no-fg", "black"),
    "only_bg_b": Kind("presence", "only-bg", "black"),
    "only_bg_t": Kind("presence", "only-bg", "tiled"),
}
_LAYOUT = rf"(?P<variation>{'|'.join(KINDS)})/(?:val/)?0(?P<number>[0-8])_[^/]+/"
_BESIDE = r"fg_mask/.*\.npy|in_to_in9\.json|.*/train/.*"
_SOURCE = re.compile(r"(?:fg_)?(?P<source>n\d{8}_\d+)")  # of a mixed picture's two, the foreground's


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(find(tree, _LAYOUT).places)


def read(tree: Tree) -> Archive:
    """Every variation's pictures, joined by the photo that the foreground is from."""
    findings = find(tree, _LAYOUT, beside=_BESIDE)
    refuse_none(findings.places, NAME, EXPECTED, tree)
    exhibits, twice = once(exhibits_of(NAME, tree.sizes.path, map(_found, findings.places)))
    variations = findings.folders("variation")
    return Archive(
        NAME, tree, exhibits, imagenet9(),
        skipped=(*_missing(variations), *twice, *stray_rows(NAME, findings.strays)), notes=tuple(_notes(variations)),
    )  # fmt: skip


def _found(place: Place) -> Found:
    label = imagenet9().labels[int(place.parts["number"])]
    return Found(place.at, f"{label}/{source_of(place.name)}", label, KINDS[place.parts["variation"]])


def source_of(name: str) -> str:
    """The photo that a foreground is from: of "fg_n02085620_16757_bg_n01532829_06835.JPEG" it is n02085620_16757."""
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
    partial = [note for name in there for note in partial_note(f"pictures in {name}", variations[name], most)]
    return [shown_as_they_are(SIDE), *partial]
