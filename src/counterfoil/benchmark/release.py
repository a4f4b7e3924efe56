"""Freeze a workspace into a benchmark: configuration, checks, selection, writing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from counterfoil import __version__
from counterfoil.benchmark.layouts import LayoutName
from counterfoil.benchmark.manifest import ManifestRow
from counterfoil.benchmark.picture_selection import BenchmarkSelection, is_redistributable
from counterfoil.benchmark.writer import BenchmarkDraft, FreezeResult, Title, write_benchmark
from counterfoil.edits.registry import EDITS
from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import SPACES, load_label_space
from counterfoil.labels.label_space import LabelSpace, custom_label_space
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.workspace import Workspace
from counterfoil.types import Decision, Provenance, Sample, StoredVariant, Variant

UNKNOWN = "unknown"
_NOT_FREE = "licence forbids passing on, or is not known"
_JOINED = " + "  # between the licences of a photo and of the one that lends its background
_PATH_SETTINGS = {name for edit in EDITS.values() for name in edit.places}  # settings that say where


@dataclass(frozen=True, kw_only=True)
class FreezeConfig:
    """Which pictures of a workspace become a benchmark, and in which form; None decides by what was done there."""

    title: Title
    layout: LayoutName = "folder"
    mined: bool | None = None
    verified: bool | None = None
    originals: bool = True
    redistributable_only: bool = False
    licence: str = ""  # of photos whose source names none
    classes: str | None = None
    scoring: Literal["all", "subset"] = "all"
    previous: Path | None = None
    shard_bytes: int = 256 << 20


@dataclass(frozen=True)
class _Pictures:
    """The workspace's files by entry; the bytes go into the benchmark as they are."""

    workspace: Workspace

    def path(self, entry: ManifestRow) -> Path:
        return self.workspace.folder / "pictures" / entry.stored.file

    def size(self, entry: ManifestRow) -> int:
        try:
            return self.path(entry).stat().st_size
        except FileNotFoundError as error:
            raise UserError(
                f"expected {self.path(entry)}, which the workspace's manifest names, but it is not there;"
                " run the command that built the workspace again"
            ) from error

    def read(self, entry: ManifestRow) -> bytes:
        return self.path(entry).read_bytes()


def freeze(workspace: Workspace, job: FreezeConfig, out: Path) -> FreezeResult:
    """Write the benchmark of a workspace."""
    choice = BenchmarkSelection(workspace, job.mined, job.verified, job.originals)
    kept, left_out = choice.kept()
    space = _choose_space(kept, job.classes or _painted_classes(workspace))
    entries = _describe_rows(kept, choice.decisions, _Photos(workspace, job.licence), space)
    if job.redistributable_only:
        free = _keep_redistributable(entries)
        left_out[_NOT_FREE] = len(entries) - len(free)
        entries = free
    if not any(entry.split == "test" for entry in entries):
        raise UserError(_describe_empty(workspace, left_out))
    draft = BenchmarkDraft(
        title=job.title,
        layout=job.layout,
        entries=entries,
        space=space,
        scoring=job.scoring,
        mined=choice.mined,
        verified=choice.verified,
        left_out=left_out,
        made_with=_describe_origin(workspace),
    )
    return write_benchmark(draft, _Pictures(workspace), out, job.previous, job.shard_bytes)


def _describe_empty(workspace: Workspace, left_out: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{number} {reason}" for reason, number in left_out.items() if number)
    licence = "; --licence speaks for photos whose source names none" if left_out.get(_NOT_FREE) else ""
    return (
        f"expected at least one edited or painted picture of '{workspace.folder}' for the benchmark, none is left:"
        f" {reasons or 'the workspace holds originals and controls alone'}{licence}"
    )


@dataclass(frozen=True)
class _Photos:
    """Where the photos of a workspace come from: its manifest says so; an older one leaves it to their source."""

    workspace: Workspace
    otherwise: str  # the licence of photos whose source names none

    def describe(self, stored: StoredVariant) -> Provenance:
        """Origin and licence of a picture: of its photo and of the one that lends its background."""
        photos = stored.photos or self._from_source(stored)
        origins = [photo.origin for photo in photos if photo.origin]
        licences = [photo.licence or self.otherwise or UNKNOWN for photo in photos]
        if _has_path(json.loads(stored.variant.settings or "{}")):
            licences.append(UNKNOWN)  # a background from a folder, of which nobody said a licence
        return Provenance(_JOINED.join(dict.fromkeys(origins)), _JOINED.join(dict.fromkeys(licences)))

    def _from_source(self, stored: StoredVariant) -> tuple[Provenance, ...]:
        variant = stored.variant
        photo = self._samples.get(variant.sample_id or "")
        if photo is not None and photo.digest != stored.sample_digest:
            photo = None  # another photo under the same name
        samples = [photo, *([self._samples.get(variant.donor_id)] if variant.donor_id else [])]
        return tuple(sample.provenance if sample is not None else Provenance() for sample in samples)

    @cached_property
    def _samples(self) -> dict[str, Sample]:
        """The samples of the source that the workspace was built from; one that is gone leaves licences unknown."""
        record = self.workspace.record
        images = str(record.get("images") or "")
        try:
            found = open_source(images, record.get("masks")).samples()[0] if images else ()
        except UserError:
            if Path(images).is_dir():
                raise
            found = ()
        return {sample.id: sample for sample in found}


def _describe_rows(
    kept: Sequence[StoredVariant], decisions: Mapping[str, Decision], photos: _Photos, space: LabelSpace
) -> tuple[ManifestRow, ...]:
    """The pictures with what is known of them."""
    entries = []
    for stored in kept:
        origin, licence = photos.describe(stored)
        settled = replace(stored, variant=_without_paths(stored.variant), file=stored.file.removeprefix("pictures/"))
        name = space.name_of(stored.variant.label)
        entries.append(ManifestRow(settled, name, origin, licence, decisions.get(stored.variant.id)))
    return tuple(entries)


def _keep_redistributable(entries: Sequence[ManifestRow]) -> tuple[ManifestRow, ...]:
    """The pictures that may be passed on; references only where a picture is left that they serve."""
    free = [entry for entry in entries if is_redistributable(entry.licence.split(_JOINED))]
    served = {entry.variant.sample_id for entry in free if entry.split == "test"}
    return tuple(entry for entry in free if entry.variant.sample_id in served)


def _without_paths(variant: Variant) -> Variant:
    """The variant without the paths of the machine that made it."""
    settings = json.loads(variant.settings or "{}")
    if not _has_path(settings):
        return variant
    return replace(variant, settings=json.dumps(_shorten_paths(settings), sort_keys=True))


def _has_path(settings: Any) -> bool:
    """Whether an edit, or one within it, took something from a place outside."""
    if isinstance(settings, list):
        return any(_has_path(item) for item in settings)
    if not isinstance(settings, dict):
        return False
    return any((name in _PATH_SETTINGS and value is not None) or _has_path(value) for name, value in settings.items())


def _shorten_paths(settings: Any) -> Any:
    if isinstance(settings, list):
        return [_shorten_paths(item) for item in settings]
    if not isinstance(settings, dict):
        return settings
    return {
        name: Path(value).name if name in _PATH_SETTINGS and isinstance(value, str) else _shorten_paths(value)
        for name, value in settings.items()
    }


def _painted_classes(workspace: Workspace) -> str | None:
    """The classes that painted pictures are of, where their recipe names a known space."""
    classes = workspace.record.get("classes")
    return str(classes) if classes in SPACES else None


def _choose_space(kept: Sequence[StoredVariant], classes: str | None) -> LabelSpace:
    """The space that was named, else the known one that has all the labels, else the labels themselves."""
    labels = sorted({stored.variant.label for stored in kept})
    if classes is None:
        known = (space() for space in SPACES.values())
        own = custom_label_space("own classes", labels)
        return next((space for space in known if all(label in space for label in labels)), own)
    space = load_label_space(classes)
    missing = [label for label in labels if label not in space]
    if missing:
        raise UserError(f"expected every label of the pictures in {space.name}, but '{missing[0]}' is not there")
    return space


def _describe_origin(workspace: Workspace) -> dict[str, Any]:
    """The tool, and what the pictures were made by; no paths of the machine."""
    wanted = ("recipe_digest", "seed", "environment")
    record = workspace.record
    made = {name: record[name] for name in wanted if name in record}
    return {"counterfoil": __version__, "recipe": Path(str(record.get("recipe", ""))).name, "pictures": made}
