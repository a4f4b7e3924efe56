"""manifest.parquet of a benchmark: a row per picture with its provenance and the place of its bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

from counterfoil.errors import UserError
from counterfoil.store.files import MANIFEST
from counterfoil.store.parquet import Kind, read_table, write_table
from counterfoil.store.prediction_tables import read_variants
from counterfoil.types import Decision, StoredVariant, Variant

Split: TypeAlias = Literal["test", "reference"]
Verdict: TypeAlias = Literal["confirmed", "unasked"]
REFERENCES = ("original", "control")  # attributes of the pictures that drops are measured against
COLUMNS: dict[str, Kind] = {
    "file": "text", "member": "text", "offset": "int", "size": "int", "file_sha256": "text", "pixel_sha256": "text",
    "split": "text", "id": "text", "sample_id": "text", "label": "text", "class_name": "text", "attribute": "text",
    "edit": "text", "level": "text", "settings": "text", "seed": "unsigned", "donor_id": "text", "replicate": "int",
    "object_share": "double", "source_digest": "text", "painter": "text", "prompt": "text", "origin": "text",
    "licence": "text", "verdict": "text", "answers": "text", "decided": "text",
}  # fmt: skip
SHOWN_COLUMNS = (
    "label",
    "class_name",
    "attribute",
    "edit",
    "level",
    "sample_id",
    "id",
    "licence",
)  # beside every picture


@dataclass(frozen=True)
class ManifestRow:
    """One picture of a benchmark with its provenance."""

    stored: StoredVariant  # its file is the path below the split
    class_name: str
    origin: str = ""
    licence: str = ""
    decision: Decision | None = None

    @property
    def variant(self) -> Variant:
        """The variant that the picture shows."""
        return self.stored.variant

    @property
    def split(self) -> Split:
        """Whether the picture tests models or is a reference that drops are measured against."""
        return "reference" if self.variant.attribute in REFERENCES else "test"

    @property
    def verdict(self) -> Verdict:
        """People's verdict on the picture; rejected pictures are not in a benchmark."""
        return "unasked" if self.decision is None else "confirmed"

    @cached_property
    def shown(self) -> dict[str, str]:
        """The text columns that other programs see beside the picture."""
        row = self.row()
        return {name: str(row[name]) for name in SHOWN_COLUMNS}

    def row(self) -> dict[str, Any]:
        """The columns of the manifest's row that are the same in every layout."""
        variant, decision = self.variant, self.decision
        painted = json.loads(variant.settings or "{}")
        return {
            "pixel_sha256": self.stored.sha256, "split": self.split, "id": variant.id,
            "sample_id": variant.sample_id or "", "label": variant.label, "class_name": self.class_name,
            "attribute": variant.attribute, "edit": variant.edit, "level": variant.level,
            "settings": variant.settings, "seed": variant.seed, "donor_id": variant.donor_id or "",
            "replicate": variant.replicate, "object_share": self.stored.object_share,
            "source_digest": self.stored.sample_digest, "painter": str(painted.get("painter") or ""),
            "prompt": str(painted.get("prompt") or ""), "origin": self.origin, "licence": self.licence,
            "verdict": self.verdict, "answers": _json(decision.answers if decision else {}),
            "decided": _json(decision.decided if decision else {}),
        }  # fmt: skip


@dataclass(frozen=True)
class FileLocation:
    """Where the bytes of a picture lie in the benchmark's folder."""

    file: str
    member: str  # name inside the shard; "" where the file is the picture
    offset: int
    size: int
    file_sha256: str  # of the picture's bytes, in a shard or not


def sort_rows(entries: Sequence[ManifestRow]) -> tuple[ManifestRow, ...]:
    """Sort by sample, its original first, then its control."""
    rank = {"original": 0, "control": 1}

    def key(entry: ManifestRow) -> tuple[object, ...]:
        variant = entry.variant
        first = rank.get(variant.attribute, 2)
        return (variant.sample_id or "", first, variant.edit, variant.level, variant.replicate, variant.id)

    return tuple(sorted(entries, key=key))


def write_manifest(folder: Path, entries: Sequence[ManifestRow], places: Sequence[FileLocation]) -> Path:
    """Write the manifest of these pictures."""
    rows = [{**vars(place), **entry.row()} for entry, place in zip(entries, places, strict=True)]
    return write_table(folder / MANIFEST, COLUMNS, {name: [row[name] for row in rows] for name in COLUMNS})


@dataclass(frozen=True)
class Manifest:
    """The manifest, read back."""

    table: Mapping[str, Any]
    variants: tuple[Variant, ...]

    @property
    def places(self) -> tuple[FileLocation, ...]:
        """Where each picture lies."""
        columns = (self.table[name] for name in ("file", "member", "offset", "size", "file_sha256"))
        rows = zip(*columns, strict=True)
        return tuple(
            FileLocation(str(file), str(member), int(offset), int(size), str(digest))
            for file, member, offset, size, digest in rows
        )

    @property
    def pictures(self) -> tuple[StoredVariant, ...]:
        """The pictures for the evaluation."""
        rows = zip(
            self.variants, self.places, self.table["pixel_sha256"], self.table["source_digest"],
            self.table["object_share"], strict=True,
        )  # fmt: skip
        return tuple(
            StoredVariant(variant, f"{place.file}/{place.member}".rstrip("/"), str(pixels), str(source), float(share))
            for variant, place, pixels, source, share in rows
        )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a benchmark folder; raises `UserError` where it cannot be read."""
    path = folder / MANIFEST
    try:
        table = read_table(path)
        missing = [name for name in COLUMNS if name not in table]
        if missing:
            raise UserError(f"expected the column {missing[0]} in {path}, found none; another program wrote it")
        for file in set(table["file"]):
            check_inside(str(file), path)
        if min([*table["offset"], *table["size"]], default=0) < 0:
            raise UserError(f"expected offsets of 0 or more in {path}, got a negative one; do not use it")
        return Manifest(table, tuple(read_variants(table)))
    except OSError as error:
        raise UserError(f"expected the manifest of a benchmark in {path}: {error.strerror}") from error


def check_inside(file: str, named_by: Path) -> None:
    """Raise `UserError` where a path leads out of the benchmark's folder."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\\" in file or not path.parts:
        raise UserError(f"expected paths inside the benchmark in {named_by}, got '{file}'; do not use it")


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
