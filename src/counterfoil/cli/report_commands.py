"""The commands `report` and `compare`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.terminal_output import end_unjudged
from counterfoil.errors import UserError
from counterfoil.progress import show_stage
from counterfoil.published.catalogue import make_paper_tables, picture_reader
from counterfoil.report.comparison_tables import (
    comparison_to_csv,
    comparison_to_json,
    comparison_to_text,
    describe_comparison,
)
from counterfoil.report.comparison_words import conclude
from counterfoil.report.content import ReportContent, build_content
from counterfoil.report.exports import EXPORTS, export_files, parse_export_names
from counterfoil.report.headline import write_headline
from counterfoil.report.integrations import TRACKERS
from counterfoil.report.page import write_report
from counterfoil.report.summary_json import contrast_record
from counterfoil.report.words import SURROGATE_MEANING
from counterfoil.store.files import write_atomically
from counterfoil.study.comparison import compare_runs
from counterfoil.study.judgements import NOT_JUDGED
from counterfoil.study.runs import open_runs
from counterfoil.study.thumbnails import ThumbnailCache

_COMPARED = {
    "drops": "drops in points, above zero the second loses less",
    "accuracies": "accuracies in percent, above zero the first is right more often",
}
run_folder = click.Path(path_type=Path)
names_option = click.option(
    "--as", "names", multiple=True, help="Name of a run, once per run: tells equal models apart."
)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=run_folder)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the report.")
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
        TRACKERS[tracker](content, page)
    lines = [finding.text for finding in write_headline(study)]
    for line in lines:
        click.echo(line)
    click.echo(f"report: {page}")
    end_unjudged(study.judgements, lines)


def _write_exports(out: Path, content: ReportContent, wanted: list[str]) -> None:
    for name in wanted:
        files = export_files(content, [name])
        for path, data in files.items():
            write_atomically(out / path, data)
        if not files:
            click.echo(f"{name}: no file written, since there is nothing to show: too few photos were scored")


@click.command()
@click.argument("runs", nargs=-1, type=run_folder, metavar="FIRST_RUN SECOND_RUN")
@names_option
@click.option("--first", help="Model of the first run, where it holds several.")
@click.option("--second", help="Model of the second run, where it holds several.")
@click.option("--json", "form", flag_value="json", help="Print JSON instead of a table.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV instead of a table.")
def compare(runs: tuple[Path, ...], form: str | None, **options: Any) -> None:
    """Compare two models photo by photo: what they get right on edited photos, then what each attribute costs."""
    if len(runs) != 2:
        raise UserError(
            f"expected two runs, got {len(runs)}: `counterfoil compare FIRST_RUN SECOND_RUN`; of two models in one run,"
            " name it twice with --first MODEL --second MODEL"
        )
    with show_stage("comparing the models"):
        found = compare_runs(runs, **options)
    judged = all(judgement.is_judged for judgement in found.judgements.values())
    sentence = conclude(found) if judged else ""
    if form == "json":
        document = comparison_to_json(
            found.accuracy, found.attributes, found.levels, kind=found.kind, surrogates=found.surrogates
        )
        edited = None if found.edited is None else contrast_record(found.edited)
        verdicts = {model: judgement.verdict for model, judgement in found.judgements.items()}
        document |= {"edited": edited, "judgements": verdicts, "conclusion": sentence}
        click.echo(json.dumps(document, indent=1, allow_nan=False))
    elif form == "csv":
        click.echo(comparison_to_csv([*found.attributes, *found.levels]), nl=False)
    else:
        click.echo(describe_comparison(found.accuracy, found.kind))
        for model in found.surrogates:
            click.echo(f"{model} – {SURROGATE_MEANING}.")
        click.echo(f"\nfirst {found.first}, second {found.second}; {_COMPARED[found.kind]}\n")
        click.echo(comparison_to_text([*found.attributes, *found.levels]))
        click.echo(f"\n{sentence}" if sentence else "")  # of models that are not judged, only that
        end_unjudged(found.judgements)
    if not judged:
        sys.exit(NOT_JUDGED)
