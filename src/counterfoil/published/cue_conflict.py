"""Reader of the cue conflicts of Geirhos et al.: the shape of one class with the texture of another."""

from __future__ import annotations

import re
from collections.abc import Sequence

from counterfoil.labels.benchmark_classes import entry_classes
from counterfoil.published.archive import Archive, ArchiveCondition, ArchivePicture, collect_pictures, drop_duplicates
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import (
    MatchedFile,
    match_layout,
    note_partial,
    require_pictures,
    skip_strays,
)
from counterfoil.report.content import PaperTable
from counterfoil.study.cue_conflicts import measure_shape_decisions
from counterfoil.study.runs import Study
from counterfoil.types import Skipped

NAME = "cue-conflict"
EXPECTED = "<shape>/<shape><number>-<texture><number>.png of 16 classes, such as airplane/airplane1-bicycle2.png"
PICTURES = 1_280  # of the release
KIND = ArchiveCondition("texture", NAME, "another class")
_CLASSES = "|".join(entry_classes().labels)
_LAYOUT = rf"(?P<shape>{_CLASSES})/|session-\d+/"  # by shape, or as model-vs-human keeps it
_NAME = rf"(?:[^/.][^/]*_)?(?P<cues>(?P<shape>{_CLASSES})\d+-(?:{_CLASSES})\d+)\.(?i:png|jpe?g)"


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(match_layout(tree, _LAYOUT, _NAME).places)


def read(tree: Tree) -> Archive:
    """Read the pictures; the label is the shape, and the texture is in the sample's name."""
    findings = match_layout(tree, _LAYOUT, _NAME)
    require_pictures(findings.places, NAME, EXPECTED, tree)
    found = [(place, _read_picture(place)) for place in findings.places]
    pictures, twice = drop_duplicates(
        collect_pictures(NAME, tree.sizes.path, (own for place, own in found if _agrees(place, own)))
    )
    wrong = [
        Skipped(place.file, "source", "", f"lies in the folder of another shape than {own.label}")
        for place, own in found
        if not _agrees(place, own)
    ]
    return Archive(
        name=NAME,
        tree=tree,
        pictures=pictures,
        space=entry_classes(),
        scoring="subset",
        skipped=(*wrong, *twice, *skip_strays(NAME, findings.strays)),
        notes=tuple(note_partial("pictures", len(pictures), PICTURES)),
    )


def tables(study: Study) -> Sequence[PaperTable]:
    """Shape bias by the authors' rule."""
    rows = measure_shape_decisions(study.details)
    if not rows:
        return ()
    return (
        PaperTable(
            title="Cue conflict: shape bias",
            rule="Shape decisions / (shape + texture decisions), in percent, with Wilson's interval. The score of each"
            " of the 16 classes is the mean over its ImageNet columns; pictures whose shape and texture are of one"
            " class, and answers that name neither, are left out.",
            columns=("model", "shape bias", "low", "high", "shape or texture", "neither"),
            rows=tuple((own.model, *own.bias[:3], float(own.bias.n), float(own.neither)) for own in rows),
        ),
    )


def _read_picture(place: MatchedFile) -> ArchivePicture:
    match = re.fullmatch(_NAME, place.name)
    if match is None:
        raise ValueError(f"expected the layout to accept cue conflicts only, got {place.name}")
    return ArchivePicture(place.at, f"{match['shape']}/{match['cues']}", match["shape"], KIND)


def _agrees(place: MatchedFile, picture: ArchivePicture) -> bool:
    """Whether the folder is that of the picture's shape, where folders are by shape."""
    return place.parts["shape"] in ("", picture.label)
