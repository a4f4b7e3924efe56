"""The commands `merge` and `status`: the parts of a run made into tables, and how far they are."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path

import click

from counterfoil.builder import complete_workspace
from counterfoil.cli.command_output import emit
from counterfoil.cli.shared_options import FOLDER
from counterfoil.cli.terminal_output import describe_skipped, describe_study, end_unjudged
from counterfoil.errors import UserError
from counterfoil.pieces import refuse_missing
from counterfoil.progress import show_stage
from counterfoil.published.catalogue import make_paper_tables, picture_reader
from counterfoil.report.content import build_content
from counterfoil.report.csv_tables import skipped_to_csv
from counterfoil.report.headline import write_headline
from counterfoil.report.page import write_report
from counterfoil.run_status import describe_status, open_plan, read_status
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_lock import hold_folder
from counterfoil.store.folder_mirror import describe_place
from counterfoil.store.merged_tables import write_merged_tables
from counterfoil.store.parts import PartStore
from counterfoil.store.run_checksums import record_checksums, refuse_changed
from counterfoil.store.sealed_record import read_sealed
from counterfoil.store.workspace import Workspace
from counterfoil.study.runs import open_runs
from counterfoil.study.thumbnails import ThumbnailCache


@click.command()
@click.argument("run", type=FOLDER)
def merge(run: Path) -> None:
    """Write the tables and the report of a run whose shards are done."""
    plan, store = open_plan(run), PartStore(run / "work" / "parts")
    with hold_folder(run):
        refuse_changed(run)
        refuse_missing(plan, store, f"`{_find_command(run)}` makes them")
        (run / "summary.json").unlink(missing_ok=True)  # of an earlier report, whose record would be read
        with show_stage("writing the tables"):
            merged = write_merged_tables(run, plan, store)
        write_atomically(run / "skipped.csv", skipped_to_csv(list(merged.skipped)))
        record_checksums(run)
    for note in merged.notes:
        click.echo(note)
    if plan.command == "build":
        complete_workspace(run)
        click.echo(f"manifest: {describe_place(run / 'variants.parquet')}")
        click.echo(describe_skipped(len(merged.skipped), run))
        emit({"folder": run.absolute(), "pictures": len(Workspace(run).pictures), "skipped": len(merged.skipped)})
        return
    _report(run)


def _report(run: Path) -> None:
    study = open_runs((run,), ())
    with show_stage("making the report"):
        cache = ThumbnailCache(study.folders, picture_reader(study), keep=run)
        page = write_report(run, build_content(study, cache, make_paper_tables))
    lines = [finding.text for finding in write_headline(study)]
    for line in lines:
        click.echo(line)
    click.echo(f"report: {describe_place(page)}")
    click.echo(describe_skipped(len(study.skipped), run))
    emit(describe_study(study, run, page))
    end_unjudged(study.judgements, lines)


def _find_command(run: Path) -> str:
    """The command that began the run, without its shard."""
    if not (run / "run.json").is_file():
        raise UserError(f"expected the record of a run in '{run}', which has no run.json")
    words = shlex.split(str(read_sealed(run / "run.json").get("command", "")))
    if "--shard" in words:
        place = words.index("--shard")
        words = [*words[:place], *words[place + 2 :]]
    return shlex.join(word for word in words if not word.startswith("--shard="))


@click.command()
@click.argument("run", type=FOLDER)
def status(run: Path) -> None:
    """Say how far a run is: parts done, pace, time left, failed pieces with their reasons, machine time."""
    state = read_status(run)
    for line in describe_status(state):
        click.echo(line)
    emit(asdict(state))
