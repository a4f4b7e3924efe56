"""Freeze a workspace: select its pictures, add label, licence and verdict to each, and write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from counterfoil import __version__
from counterfoil.benchmark.frozen_benchmark import Benchmark, open_benchmark
from counterfoil.benchmark.layouts import LAYOUTS, LayoutName
from counterfoil.benchmark.licences import JOINED, PATH_SETTINGS, PhotoLicences, has_path, is_redistributable
from counterfoil.benchmark.manifest import ManifestRow
from counterfoil.benchmark.picture_selection import BenchmarkSelection
from counterfoil.benchmark.writer import BenchmarkDraft, FreezeResult, Title, write_benchmark
from counterfoil.errors import UserError, expect_choice, expect_kind, expect_path
from counterfoil.labels.benchmark_classes import SPACES, load_label_space
from counterfoil.labels.label_space import LabelSpace, custom_label_space
from counterfoil.store.workspace import Workspace
from counterfoil.types import Decision, StoredVariant, Variant

_NOT_FREE = "whose licence forbids passing on or is not known"


@dataclass(frozen=True, kw_only=True)
class FreezeConfig:
    """Which pictures of a workspace become a benchmark, and in which form; None follows what was done there."""

    title: Title
    layout: LayoutName = "folder"
    mined: bool | None = None
    verified: bool | None = None
    originals: bool = True
    redistributable_only: bool = False
    licence: str = ""  # of photos whose source names no licence
    classes: str | None = None
    scoring: Literal["all", "subset"] = "all"
    previous: Path | None = None
    shard_bytes: int = 256 << 20


@dataclass(frozen=True)
class _Pictures:
    """The workspace's files by entry; their bytes are copied unchanged."""

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


def freeze_workspace(workspace: Workspace, job: FreezeConfig, out: Path) -> FreezeResult:
    """Write the benchmark of a workspace."""
    choice = BenchmarkSelection(workspace, job.mined, job.verified, job.originals)
    kept, left_out = choice.kept()
    space = _choose_space(kept, job.classes or _painted_classes(workspace))
    entries = _describe_rows(kept, choice.decisions, PhotoLicences(workspace, job.licence), space)
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
    licence = "; --licence says the licence of photos whose source names none" if left_out.get(_NOT_FREE) else ""
    return (
        f"expected at least one edited or painted picture of '{workspace.folder}' for the benchmark, got none:"
        f" {reasons or 'the workspace holds only originals and controls'}{licence}"
    )


def _describe_rows(
    kept: Sequence[StoredVariant], decisions: Mapping[str, Decision], photos: PhotoLicences, space: LabelSpace
) -> tuple[ManifestRow, ...]:
    """The pictures with label, licence, origin and verdict."""
    entries = []
    for stored in kept:
        origin, licence = photos.describe(stored)
        public = replace(stored, variant=_without_paths(stored.variant), file=stored.file.removeprefix("pictures/"))
        name = space.name_of(stored.variant.label)
        entries.append(ManifestRow(public, name, origin, licence, decisions.get(stored.variant.id)))
    return tuple(entries)


def _keep_redistributable(entries: Sequence[ManifestRow]) -> tuple[ManifestRow, ...]:
    """The pictures that may be redistributed; references only where a picture that needs them is left."""
    free = [entry for entry in entries if is_redistributable(entry.licence.split(JOINED))]
    served = {entry.variant.sample_id for entry in free if entry.split == "test"}
    return tuple(entry for entry in free if entry.variant.sample_id in served)


def _without_paths(variant: Variant) -> Variant:
    """The variant without paths of the machine that made it."""
    settings = json.loads(variant.settings or "{}")
    if not has_path(settings):
        return variant
    return replace(variant, settings=json.dumps(_shorten_paths(settings), sort_keys=True))


def _shorten_paths(settings: Any) -> Any:
    if isinstance(settings, list):
        return [_shorten_paths(item) for item in settings]
    if not isinstance(settings, dict):
        return settings
    return {
        name: Path(value).name if name in PATH_SETTINGS and isinstance(value, str) else _shorten_paths(value)
        for name, value in settings.items()
    }


def _painted_classes(workspace: Workspace) -> str | None:
    """The classes of painted pictures, where their recipe names a known label space."""
    classes = workspace.record.get("classes")
    return str(classes) if classes in SPACES else None


def _choose_space(kept: Sequence[StoredVariant], classes: str | None) -> LabelSpace:
    """Choose the named space, else the known one that has all the labels, else the labels themselves."""
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
    """The tool and what made the pictures, without paths of the machine."""
    wanted = ("recipe_digest", "seed", "environment")
    record = workspace.record
    pictures = {name: record[name] for name in wanted if name in record}
    return {"counterfoil": __version__, "recipe": Path(str(record.get("recipe", ""))).name, "pictures": pictures}


def freeze(
    workspace: Workspace | str | Path,
    out: str | Path,
    *,
    name: str,
    version: str,
    description: str = "",
    layout: LayoutName = "folder",
    mined: bool | None = None,
    verified: bool | None = None,
    originals: bool = True,
    redistributable_only: bool = False,
    licence: str = "",
    classes: str | None = None,
    scoring: Literal["all", "subset"] = "all",
    previous: str | Path | None = None,
) -> Benchmark:
    """Write a workspace as a benchmark that nobody can change unnoticed.

    Args:
        workspace: What `build` returned, or its folder.
        out: New folder for the benchmark.
        name: Name of the benchmark.
        version: Its version, such as "1.0.0".
        description: What the benchmark is, for the card.
        layout: Pictures as files ("folder"), in "parquet" or in "webdataset" shards.
        mined: Only what mining kept; if there was mining, where not given.
        verified: Only what people confirmed; if there are verdicts, where not given.
        originals: Whether originals and controls are in it, to compare with.
        redistributable_only: Leave out pictures that may not be redistributed.
        licence: Licence of photos whose source names none.
        classes: The classes of the labels: a benchmark's by name, or a classes.json.
        scoring: Whether columns of other classes compete.
        previous: The previous version, for the changelog.

    Returns:
        The benchmark, opened and verified; `evaluate` takes its folder.

    Raises:
        UserError: The workspace holds no picture to freeze, or the folder is there already.

    Examples:
        >>> import numpy as np, tempfile
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> from counterfoil import build
        >>> workspace = build([(image, "red", mask)], tempfile.mkdtemp(), edits=["object-grayscale"])
        >>> freeze(workspace, tempfile.mkdtemp() + "/bench", name="Reds", version="1.0.0").name
        'Reds 1.0.0'
    """
    expect_choice(layout, tuple(LAYOUTS), "layout")
    expect_choice(scoring, ("all", "subset"), "scoring")
    expect_kind(licence, str, "licence= as a text")
    expect_kind(classes, (str, type(None)), "classes= as the name of a benchmark or a classes.json")
    title = Title(name, version, description)
    job = FreezeConfig(
        title=title, layout=layout, mined=mined, verified=verified, originals=originals,
        redistributable_only=redistributable_only, licence=licence, classes=classes, scoring=scoring,
        previous=None if previous is None else expect_path(previous, "the previous version"),
    )  # fmt: skip
    opened = workspace if isinstance(workspace, Workspace) else Workspace(expect_path(workspace, "a workspace"))
    freeze_workspace(opened, job, expect_path(out, "the folder to write"))
    return open_benchmark(out)
