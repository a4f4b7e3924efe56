"""The commands `freeze`, `check` and `diff`."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from counterfoil.benchmark.benchmark_json import read_benchmark_record
from counterfoil.benchmark.diff import BenchmarkDiff, compare_versions, describe_diff, read_version
from counterfoil.benchmark.integrity import find_differences, find_pixel_differences
from counterfoil.benchmark.layouts import LAYOUTS
from counterfoil.benchmark.licences import UNKNOWN
from counterfoil.benchmark.release import FreezeConfig, freeze_workspace
from counterfoil.benchmark.writer import IN_DOUBT, FreezeResult, Title
from counterfoil.cli.command_output import emit
from counterfoil.cli.path_option import PATH
from counterfoil.errors import Unusable, UserError
from counterfoil.report.words import pluralize
from counterfoil.sources.pixels import hash_pixels
from counterfoil.store.files import RECORD
from counterfoil.store.parts import list_damaged_parts
from counterfoil.store.run_checksums import has_checksums, list_changed_files
from counterfoil.store.run_counts import count_run
from counterfoil.store.workspace import Workspace
from counterfoil.types import StoredVariant
from counterfoil.worker_pool import cores

_LICENCES = 10  # named on the terminal; all stand in the card
benchmark_folder = PATH


@click.command()
@click.argument("workspace", type=PATH)
@click.option("--name", required=True, help="Name of the benchmark.")
@click.option("--version", required=True, help="Its version, such as 1.0.0.")
@click.option("--out", required=True, type=PATH, help="New folder for the benchmark.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(list(LAYOUTS)),
    default="folder",
    show_default=True,
    help="Pictures as files, in Parquet or in WebDataset shards.",
)
@click.option("--mined/--not-mined", default=None, help="Only what mining kept [default: if there was mining].")
@click.option(
    "--verified/--unverified", default=None, help="Only what people confirmed [default: if there are verdicts]."
)
@click.option("--originals/--no-originals", default=True, help="Originals and controls as reference [default: in].")
@click.option("--redistributable-only", is_flag=True, help="Leave out pictures that may not be redistributed.")
@click.option("--licence", default="", help="Licence of photos whose source names none.")
@click.option("--classes", help="The classes of the labels: imagenet-d, imagenet-9, ximagenet-12, or a classes.json.")
@click.option(
    "--scoring",
    type=click.Choice(["all", "subset"]),
    default="all",
    show_default=True,
    help="Whether columns of other classes compete.",
)
@click.option("--description", default="", help="What the benchmark is, for the card.")
@click.option("--url", default="", help="Where it will be published.")
@click.option("--published", default="", help="Date of publication, YYYY-MM-DD.")
@click.option("--previous", type=benchmark_folder, help="The previous version, for the changelog.")
@click.option("--shard-mb", type=click.IntRange(1), default=256, show_default=True, help="Size of shards.")
def freeze(workspace: Path, out: Path, shard_mb: int, **options: Any) -> None:
    """Write a workspace as a benchmark that nobody can change unnoticed."""
    title = Title(*(options.pop(name) for name in ("name", "version", "description", "url", "published")))
    job = FreezeConfig(title=title, shard_bytes=shard_mb * 1_000_000, **options)
    frozen = freeze_workspace(Workspace(workspace), job, out)
    conserved = describe_conservation(frozen, len(Workspace(workspace).pictures))
    for line in (*describe_frozen(frozen), conserved, f"benchmark: {out}", *describe_notes(frozen)):
        click.echo(line)
    record = frozen.record
    emit({"folder": out.absolute(), "name": record.name, "version": record.version, "digest": record.digest,
          "counts": record.counts.model_dump(mode="json"), "licences": record.licences, "notes": record.notes,
          "changes": None if frozen.comparison is None else _describe_changes(frozen.comparison)})  # fmt: skip


def describe_frozen(frozen: FreezeResult) -> list[str]:
    """What was frozen, in words."""
    record, counts = frozen.record, frozen.record.counts
    return [
        f"pictures: {counts.test} of {len(record.labels.classes)} classes, and"
        f" {counts.reference} originals and controls to compare with",
        *(f"left out: {pluralize(number, 'picture')}, {reason}" for reason, number in counts.left_out.items()),
        *(
            f"licence: {licence} ({pluralize(number, 'picture')})"
            for licence, number in list(record.licences.items())[:_LICENCES]
        ),
        *(describe_diff(frozen.comparison)[-1:] if frozen.comparison else []),
        f"digest: {record.digest}",
    ]


def describe_conservation(frozen: FreezeResult, pictures: int) -> str:
    """What became of every picture of the workspace."""
    counts = frozen.record.counts
    kept, left_out = counts.test + counts.reference, sum(counts.left_out.values())
    unneeded = pictures - kept - left_out  # the selection has compared this with the originals and controls there are
    return (
        f"workspace: {pictures:,} pictures = {kept:,} frozen + {left_out:,} left out + {unneeded:,} originals and"
        " controls of no frozen picture"
    )


def describe_notes(frozen: FreezeResult) -> list[str]:
    """What to know about the benchmark, and what is doubtful, below the answer."""
    record = frozen.record
    unknown = record.licences.get(UNKNOWN, 0)
    return [
        *(f"{'WARNING' if note.startswith(IN_DOUBT) else 'note'}: {note}" for note in record.notes),
        *(
            [
                f"note: the licence of {pluralize(unknown, 'picture')} is not known: say it with --licence, or in"
                " licences.csv beside the photos"
            ]
            if unknown
            else []
        ),
    ]


def check_run(folder: Path, files_only: bool) -> None:
    """Verify the files, parts, pictures and counts of a run or workspace; exit status 1 where something differs."""
    lines = [*list_changed_files(folder), *list_damaged_parts(folder)]
    if not lines and not files_only and (folder / "pictures").is_dir():
        lines = find_changed_pictures(Workspace(folder))
    counts = count_run(folder) if not lines and (folder / "variants.parquet").is_file() else None
    if not has_checksums(folder):
        lines.append("no checksums: the run is unfinished, or an earlier version made it")
    lines += counts.faults if counts else []
    click.echo("\n".join(lines or [*(counts.sentences if counts else []), f"whole: {folder}"]))
    emit({"digest": None, "whole": not lines, "differences": lines, "counts": counts})
    sys.exit(1 if lines else 0)


def find_changed_pictures(workspace: Workspace) -> list[str]:
    """The pictures of a workspace whose pixels are not those of the manifest, one line each."""

    def describe(stored: StoredVariant) -> str:
        try:
            same = hash_pixels(workspace.read(stored)) == stored.sha256
        except Unusable as error:
            return str(error)
        return "" if same else f"{stored.file} has other pixels than the manifest says"

    with ThreadPoolExecutor(cores()) as pool:
        return [line for line in pool.map(describe, (row for row in workspace.pictures if row.sha256)) if line]


@click.command()
@click.argument("benchmark", metavar="FOLDER", type=benchmark_folder)
@click.option("--digest", help="The published digest; another one counts as a difference.")
@click.option("--files-only", is_flag=True, help="Check the files' hashes only, without decoding pictures.")
def check(benchmark: Path, digest: str | None, files_only: bool) -> None:
    """Verify every hash of a benchmark, run or workspace and name what differs; exit status 1 where something does."""
    if not (benchmark / RECORD).is_file() and (benchmark / "run.json").is_file():
        check_run(benchmark, files_only)
    wanted = None if digest is None else _digest(digest)
    found = find_differences(benchmark)
    if not found and not files_only:
        found = find_pixel_differences(benchmark)
    record = read_benchmark_record(benchmark)
    lines = [str(difference) for difference in found]
    if wanted not in (None, record.digest):
        about = "another benchmark: the digest expected is"
        if wanted == record.content_digest:
            about = (
                "pictures and labels match the card's digest of them; --digest takes the one that freeze prints: got"
            )
        lines.append(f"{about} {wanted}, the one here {record.digest}")
    whole = f"whole: {record.name} {record.version}, {record.counts.pictures} pictures, digest {record.digest}"
    click.echo("\n".join(lines or [whole]))
    emit({"digest": record.digest, "whole": not lines, "differences": lines, "counts": None})
    sys.exit(1 if lines else 0)


def _digest(text: str) -> str:
    """A digest as it was published, in capitals or not; half a digest would compare with nothing."""
    if not re.fullmatch(r"[0-9a-f]{64}", text.strip().lower()):
        raise UserError(f"expected a digest of 64 hexadecimal digits, as `freeze` prints it, got '{text}'")
    return text.strip().lower()


@click.command()
@click.argument("old", type=benchmark_folder)
@click.argument("new", type=benchmark_folder)
def diff(old: Path, new: Path) -> None:
    """Say what changed between two versions of a benchmark, and which step of the version is due."""
    comparison = compare_versions(read_version(old), read_version(new))
    click.echo("\n".join(describe_diff(comparison)))
    emit(_describe_changes(comparison))


def _describe_changes(comparison: BenchmarkDiff) -> dict[str, Any]:
    """Every picture that differs, and which part of the version must rise."""
    return {**asdict(comparison), "step": comparison.step, "step_made": comparison.step_made}
