"""Reader of ImageNet-C: fifteen corruptions at five severities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.archive import (
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

NAME = "imagenet-c"
EXPECTED = "<corruption>/<severity 1 to 5>/<wnid>/<name>.JPEG, such as gaussian_noise/1/n01440764/..."
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")  # of extra.tar: not part of mCE
SIDE = 224  # pixels
PER_CONDITION = 50_000  # pictures of the release in each corruption at each severity
_LAYOUT = rf"(?P<corruption>{'|'.join((*CORRUPTIONS, *EXTRA))})/(?P<severity>[1-5])/(?P<wnid>n\d{{8}})/"


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return bool(match_layout(tree, _LAYOUT, any_root=True).places)


def read(tree: Tree) -> Archive:
    """Read every corruption's pictures; the extra four are left out, since mCE does not include them."""
    findings = match_layout(tree, _LAYOUT, any_root=True)
    require_pictures(findings.places, NAME, EXPECTED, tree)
    used = findings.places.where(lambda parts: parts["corruption"] in CORRUPTIONS)
    known = used.where(lambda parts: parts["wnid"] in imagenet1k())
    pictures, twice = drop_duplicates(collect_pictures(NAME, tree.sizes.path, map(_read_picture, known)))
    foreign = used.where(lambda parts: parts["wnid"] not in imagenet1k()).files()
    extra = {name: many for name, many in findings.folders("corruption").items() if name in EXTRA}
    return Archive(
        name=NAME, tree=tree, pictures=pictures, space=imagenet1k(),
        skipped=(*_extra_rows(extra), *twice, *skip_strays(NAME, [*findings.strays, *foreign])),
        notes=tuple(_notes(used.folders("corruption", "severity"))),
    )  # fmt: skip


def _read_picture(place: MatchedFile) -> ArchivePicture:
    parts = place.parts
    sample = f"{parts['wnid']}/{place.name.rpartition('.')[0]}"
    return ArchivePicture(place.at, sample, parts["wnid"], corruption_kind(parts["corruption"], parts["severity"]))


@cache
def corruption_kind(corruption: str, severity: str) -> ArchiveCondition:
    """A corruption at a severity, named like this program's own corruptions."""
    return ArchiveCondition("corruption", f"corruption-{corruption.replace('_', '-')}", severity)


def _extra_rows(extra: Mapping[str, int]) -> list[Skipped]:
    return [
        Skipped(
            f"{name}/",
            "source",
            corruption_kind(name, "").edit,
            f"{count:,} pictures of a corruption that mCE leaves out",
        )
        for name, count in sorted(extra.items())
    ]


def _notes(there: Counter[tuple[str, ...]]) -> list[str]:
    whole = [(name, severity) for name in CORRUPTIONS for severity in "12345"]
    absent = [f"{name}/{severity}" for name, severity in whole if (name, severity) not in there]
    notes = [note_unresized(SIDE), *note_partial("pictures", sum(there.values()), PER_CONDITION * len(whole))]
    if absent:
        more = f" and {len(absent) - 4} more" if len(absent) > 4 else ""
        notes.append(f"Missing: {', '.join(absent[:4])}{more}: a mean over corruptions is not the paper's mCE.")
    return notes
