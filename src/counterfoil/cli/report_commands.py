"""The commands `report` and `compare`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.shared_options import FOLDER
from counterfoil.cli.terminal_output import describe_study, end_unjudged
from counterfoil.errors import UserError
from counterfoil.progress import show_stage
from counterfoil.published.catalogue import make_paper_tables, picture_reader
from counterfoil.report.comparison_tables import (
    comparison_to_csv,
    comparison_to_text,
)
from counterfoil.report.content import ReportContent, build_content
from counterfoil.report.exports import EXPORTS, export_files, parse_export_names
from counterfoil.report.headline import write_headline
from counterfoil.report.integrations import TRACKERS, log_to_tracker
from counterfoil.report.page import write_report
from counterfoil.report.words import SURROGATE_MEANING
from counterfoil.run_verdicts import compare as compare_models
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_mirror import describe_place
from counterfoil.study.judgements import status_of
from counterfoil.study.runs import open_runs
from counterfoil.study.thumbnails import ThumbnailCache

_COMPARED = {
    "drops": "drops in points, above zero the second loses less",
    "accuracies": "accuracies in percent, above zero the first is right more often",
}
names_option = click.option(
    "--as", "names", multiple=True, help="Name of a run, once per run: tells equal models apart."
)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=FOLDER)
@click.option("--out", required=True, type=FOLDER, help="Folder for the report.")
@names_option
@click.option("--export", "exports", default="", help=f"Also write {', '.join(EXPORTS)} (comma between), or all.")
@click.option("--log", "trackers", multiple=True, type=click.Choice(list(TRACKERS)), help="Log to a tracker.")
def report(runs: tuple[Path, ...], out: Path, names: tuple[str, ...], exports: str, trackers: tuple[str, ...]) -> None:
    """Make the report of a finished run again, or one comparison of several runs over the same pictures."""
    wanted = parse_export_names(exports) if exports else []
    study = open_runs(runs, names)
    with show_stage("making the report"):
        content = build_content(study, ThumbnailCache(study.folders, picture_reader(study)), make_paper_tables)
        page = write_report(out, content)
    if "csv" in wanted:
        content = replace(content, top5_drops=study.top5_drops)
    _write_exports(out, content, wanted)
    for tracker in trackers:
        log_to_tracker(tracker, content, page)
    lines = [finding.text for finding in write_headline(study)]
    for line in lines:
        click.echo(line)
    click.echo(f"report: {describe_place(page)}")
    emit(describe_study(study, out, page))
    end_unjudged(study.judgements, lines)


def _write_exports(out: Path, content: ReportContent, wanted: list[str]) -> None:
    for name in wanted:
        files = export_files(content, [name])
        for path, data in files.items():
            write_atomically(out / path, data)
        if not files:
            click.echo(f"{name}: no file written, since there is nothing to show: too few photos were scored")


@click.command()
@click.argument("runs", nargs=-1, type=FOLDER, metavar="FIRST_RUN SECOND_RUN")
@names_option
@click.option("--first", help="Model of the first run, where it holds several.")
@click.option("--second", help="Model of the second run, where it holds several.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
def compare(runs: tuple[Path, ...], as_csv: bool, **options: Any) -> None:
    """Compare two models photo by photo: what they get right on edited photos, then what each attribute costs."""
    if len(runs) != 2:
        raise UserError(
            f"expected two runs, got {len(runs)}: `counterfoil compare FIRST_RUN SECOND_RUN`; of two models in one run,"
            " name it twice with --first MODEL --second MODEL"
        )
    compared = compare_models(
        *runs, first_model=options["first"], second_model=options["second"], names=options["names"]
    )
    found = compared.found
    emit(compared.to_json())
    if as_csv:
        click.echo(comparison_to_csv([*found.attributes, *found.levels]), nl=False)
    else:
        click.echo(compared.accuracy_sentence)
        for model in found.surrogates:
            click.echo(f"{model} – {SURROGATE_MEANING}.")
        click.echo(f"\nfirst {found.first}, second {found.second}; {_COMPARED[found.kind]}\n")
        click.echo(comparison_to_text([*found.attributes, *found.levels]))
        click.echo(f"\n{compared.sentence}" if compared.sentence else "")  # of models that are not judged, only that
        end_unjudged(found.judgements)
    if status := status_of(found.judgements.values()):
        sys.exit(status)
