"""Quality control of a workspace: blank and repeated pictures are removed from its manifest.

No picture is deleted: removed rows are in quality/removed.parquet, and a run with other bounds starts from all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError
from counterfoil.generation.near_duplicates import BITS, find_blank_fault, find_near_duplicates, hash_perceptually
from counterfoil.progress import Extent, show_progress
from counterfoil.report.csv_tables import skipped_to_csv
from counterfoil.store.files import write_atomically
from counterfoil.store.parquet import Kind, read_table, write_table
from counterfoil.store.prediction_tables import MANIFEST_COLUMNS, read_skipped
from counterfoil.store.run_checksums import forget_checksums, record_checksums
from counterfoil.store.workspace import Workspace
from counterfoil.types import Skipped, StoredVariant
from counterfoil.worker_pool import cores

_PREFIX = "quality: "  # prefix of this stage's reasons in skipped.csv
_REMOVED, _RECORD = "quality/removed.parquet", "quality/quality.json"


@dataclass(frozen=True)
class QualityBounds:
    """The bounds that pictures must meet."""

    most_bits: int = 4  # two pictures of one class whose hashes differ by at most this are near-duplicates
    keep_all: bool = False  # check, but remove nothing

    def __post_init__(self) -> None:
        if not 0 <= self.most_bits < BITS:
            raise UserError(f"expected a distance of 0 to {BITS - 1} bits, got {self.most_bits}")


@dataclass(frozen=True)
class Removal:
    """One picture removed from the manifest."""

    variant_id: str
    kind: str  # blank, noise, unreadable, near-duplicate, no counterpart
    reason: str
    like: str = ""  # the id of the picture it repeats


class QualityResult(NamedTuple):
    """The pictures that quality control checked, and those it removed."""

    pictures: tuple[StoredVariant, ...]  # all that were checked, kept or not
    removals: tuple[Removal, ...]

    @property
    def unreadable(self) -> set[str]:
        """The ids of pictures whose files are broken."""
        return {removal.variant_id for removal in self.removals if removal.kind == "unreadable"}

    @property
    def counts(self) -> dict[str, int]:
        """How many pictures were removed, by kind of reason."""
        return dict(Counter(removal.kind for removal in self.removals))


def read_removals(folder: Path) -> dict[str, str]:
    """The ids and reasons of pictures that an earlier quality control removed."""
    path = folder / _RECORD
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        removed = [] if record["bounds"]["keep_all"] else record["removed"]
        return {row["variant_id"]: _PREFIX + row["reason"] for row in removed}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"expected the record of quality control in {path}, which is damaged: remove it") from error


def control_quality(folder: Path, bounds: QualityBounds) -> QualityResult:
    """Check every picture of a workspace, and remove blank and repeated ones from its manifest."""
    workspace = _restore_removed(folder)
    pictures = workspace.pictures
    with ThreadPoolExecutor(cores()) as pool:
        extent = Extent(stage="checking the pictures", unit="pictures", total=len(pictures), brief=True)
        seen = list(show_progress(pool.map(lambda stored: _examine(workspace, stored), pictures), extent))
    faulty = [
        Removal(stored.variant.id, kind, reason)
        for stored, (kind, reason, _) in zip(pictures, seen, strict=True)
        if kind
    ]
    removals = [*faulty, *_find_orphans(pictures, faulty)]
    gone = {removal.variant_id for removal in removals}
    left = [(stored, fault[2]) for stored, fault in zip(pictures, seen, strict=True) if stored.variant.id not in gone]
    result = QualityResult(pictures, (*removals, *_find_repeats(left, _list_photos(workspace), bounds)))
    _write_decision(folder, result, bounds)
    return result


def _restore_removed(folder: Path) -> Workspace:
    """Return the workspace with everything that an earlier control removed back in its manifest."""
    Workspace(folder)
    if (folder / _REMOVED).is_file():
        manifest, removed = (read_table(folder / name) for name in ("variants.parquet", _REMOVED))
        back = ~np.isin(removed["id"].astype(str), manifest["id"].astype(str))
        columns = _columns(manifest.keys() & removed.keys())
        rows = {name: np.concatenate([manifest[name], removed[name][back]]) for name in columns}
        forget_checksums(folder)
        write_table(folder / "variants.parquet", columns, rows)
    return Workspace(folder)


def _columns(there: Collection[str]) -> dict[str, Kind]:
    """The manifest's columns that exist: older versions wrote fewer."""
    return {name: kind for name, kind in MANIFEST_COLUMNS.items() if name in there}


def _examine(workspace: Workspace, stored: StoredVariant) -> tuple[str, str, NDArray[np.uint8]]:
    """The fault of a picture (kind and words), and its hash."""
    try:
        image = workspace.read(stored)
    except Unusable as error:
        return "unreadable", str(error), np.zeros(BITS // 8, np.uint8)
    kind, reason = find_blank_fault(image) or ("", "")
    return kind, reason, hash_perceptually(image)


def _find_orphans(pictures: Sequence[StoredVariant], faulty: Sequence[Removal]) -> list[Removal]:
    """The pictures whose original was removed: they have no counterpart."""
    reasons = {removal.variant_id: removal.reason for removal in faulty}
    lost = {
        stored.variant.sample_id: reasons[stored.variant.id]
        for stored in pictures
        if stored.variant.attribute == "original" and stored.variant.id in reasons
    }
    return [
        Removal(stored.variant.id, "no counterpart", f"its original is {lost[stored.variant.sample_id]}")
        for stored in pictures
        if stored.variant.sample_id in lost and stored.variant.id not in reasons
    ]


def _list_photos(workspace: Workspace) -> dict[str, str]:
    """The photo that each variant was made from: edits of one photo are meant to look alike."""
    table = read_table(workspace.folder / "variants.parquet")
    pairs = zip(table["id"], table["image"], strict=True)
    return {str(name): str(image) or str(name) for name, image in pairs}


def _find_repeats(
    seen: Sequence[tuple[StoredVariant, NDArray[np.uint8]]], photos: Mapping[str, str], bounds: QualityBounds
) -> list[Removal]:
    """Near-duplicates within a class; originals and controls are not candidates."""
    removals: list[Removal] = []
    judged = [(stored, one) for stored, one in seen if stored.variant.attribute not in ("original", "control")]
    for label in sorted({stored.variant.label for stored, _ in judged}):
        members = [(stored.variant.id, one) for stored, one in judged if stored.variant.label == label]
        hashes = np.stack([one for _, one in members])
        repeats = find_near_duplicates(hashes, [photos[name] for name, _ in members], bounds.most_bits)
        for place, first in repeats.items():
            like = members[first][0]
            removals.append(Removal(members[place][0], "near-duplicate", f"a near-duplicate of {like}", like))
    return removals


def _write_decision(folder: Path, result: QualityResult, bounds: QualityBounds) -> None:
    """Write the record, then the manifest without the removed pictures, then the reasons."""
    record: dict[str, Any] = {
        "bounds": asdict(bounds), "looked_at": len(result.pictures), "counts": result.counts,
        "removed": [asdict(removal) for removal in result.removals],
    }  # fmt: skip
    forget_checksums(folder)  # a control that is stopped half way can be made again
    write_atomically(folder / _RECORD, json.dumps(record, indent=1))
    removed = read_removals(folder)
    table = read_table(folder / "variants.parquet")
    out = np.isin(table["id"].astype(str), list(removed))
    for name, chosen in ((_REMOVED, out), ("variants.parquet", ~out)):
        rows = {column: table[column][chosen] for column in _columns(table)}
        write_table(folder / name, _columns(table), rows)
    kept = [row for row in read_skipped(folder) if not row.reason.startswith(_PREFIX)]
    variants = {stored.variant.id: stored.variant for stored in result.pictures}
    reasons = [
        Skipped(str(variants[name].sample_id), "edit", variants[name].edit, reason) for name, reason in removed.items()
    ]
    write_atomically(folder / "skipped.csv", skipped_to_csv([*kept, *reasons]))
    record_checksums(folder)
