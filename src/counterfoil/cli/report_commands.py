"""The commands `report`, `compare`, `gate` and `plan`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from counterfoil.errors import UserError
from counterfoil.published.catalogue import make_paper_tables, picture_reader
from counterfoil.report.comparison_tables import (
    comparison_to_csv,
    comparison_to_json,
    comparison_to_text,
    describe_comparison,
)
from counterfoil.report.content import ReportContent, build_content
from counterfoil.report.exports import EXPORTS, export_files, parse_export_names
from counterfoil.report.gate import (
    EXIT_STATUS,
    SHOWN_FIRST,
    Bound,
    combine_verdicts,
    judge_accuracies,
    judge_drops,
    parse_max_drop,
    to_junit,
)
from counterfoil.report.headline import write_headline
from counterfoil.report.integrations import TRACKERS
from counterfoil.report.page import write_report
from counterfoil.report.words import SURROGATE_MEANING
from counterfoil.statistics.power import Discordance, discordance_from_accuracy, discordance_from_total, photos_needed
from counterfoil.store.files import write_atomically
from counterfoil.study.comparison import compare_runs
from counterfoil.study.runs import open_runs
from counterfoil.study.thumbnails import ThumbnailCache

_ALPHA = 0.05


@click.command()
@click.option("--drop", type=click.FloatRange(0, 100, min_open=True), required=True, help="the drop to see, in points")
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="with which probability it is to be seen",
)
@click.option(
    "--accuracy",
    type=click.FloatRange(0, 100),
    default=80.0,
    show_default=True,
    help="accuracy on the originals, percent",
)
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="of right answers before and after the edit",
)
@click.option(
    "--discordance",
    type=click.FloatRange(0, 100, min_open=True),
    default=None,
    help="percent of photos whose answer changes; from a trial run, instead of accuracy and correlation",
)
@click.option(
    "--comparisons",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="rows of the table that Holm's adjustment is over",
)
def plan(
    drop: float, power: float, accuracy: float, correlation: float, discordance: float | None, comparisons: int
) -> None:  # fmt: skip
    """Say how many photos are needed to see a drop."""
    if discordance is None:
        change = discordance_from_accuracy(drop / 100, accuracy / 100, correlation)
    else:
        change = discordance_from_total(drop / 100, discordance / 100)
    needed = photos_needed(change, power=power, alpha=_ALPHA / comparisons)
    click.echo(_sentence(needed, change, power, comparisons))


def _sentence(needed: int, change: Discordance, power: float, comparisons: int) -> str:
    lost, gained = 100 * change.lost, 100 * change.gained
    among = f", among {comparisons} comparisons" if comparisons > 1 else ""
    return (
        f"{needed:,} photos: a drop of {lost - gained:g} points ({lost:.1f} % of photos lost, {gained:.1f} % gained) "
        f"then has p < {_ALPHA:g} by McNemar's exact test{among} with probability {power:g}."
    )


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
    content = build_content(study, ThumbnailCache(study.folders, picture_reader(study)), make_paper_tables)
    page = write_report(out, content)
    if "csv" in wanted:
        content = replace(content, top5_drops=study.top5_drops)
    _write_exports(out, content, wanted)
    for tracker in trackers:
        TRACKERS[tracker](content, page)
    for finding in write_headline(study):
        click.echo(finding.text)
    click.echo(f"report: {page}")


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
    """Compare two models photo by photo: drop of the first minus drop of the second, with 95 % intervals."""
    if len(runs) != 2:
        raise UserError(
            f"expected two runs, got {len(runs)}: `counterfoil compare FIRST_RUN SECOND_RUN`; of two models in one run,"
            " name it twice with --first MODEL --second MODEL"
        )
    found = compare_runs(runs, **options)
    if form == "json":
        document = comparison_to_json(
            found.accuracy, found.attributes, found.levels, kind=found.kind, surrogates=found.surrogates
        )
        click.echo(json.dumps(document, indent=1, allow_nan=False))
    elif form == "csv":
        click.echo(comparison_to_csv([*found.attributes, *found.levels]), nl=False)
    else:
        click.echo(describe_comparison(found.accuracy, found.kind))
        for model in found.surrogates:
            click.echo(f"{model} – {SURROGATE_MEANING}.")
        click.echo(f"\nfirst {found.first}, second {found.second}; {_COMPARED[found.kind]}\n")
        click.echo(comparison_to_text([*found.attributes, *found.levels]))


@click.command()
@click.argument("run", type=run_folder)
@click.option("--max-drop", "drops", multiple=True, help="background=5, size:0.05=20, background-swap=10, any=15.")
@click.option("--min-accuracy", type=float, help="Least accuracy on the unedited photos, in percent.")
@click.option("--bound", type=click.Choice(["upper", "lower", "point"]), default="upper", show_default=True,
              help="upper: prove that it holds; lower: prove that it is violated; point: no proof.")  # fmt: skip
@click.option("--model", help="Judge only this model.")
@click.option("--junit", "xml", type=click.Path(path_type=Path), help="Also write the checks as JUnit XML.")
def gate(run: Path, drops: tuple[str, ...], min_accuracy: float | None, bound: Bound, **options: Any) -> None:
    """Hold a run to bounds: exit 0 where they hold, 1 where one is violated, 3 where the data cannot tell."""
    if not drops and min_accuracy is None:
        raise UserError("expected a bound, got none; give --max-drop background=5 or --min-accuracy 70")
    rules = [parse_max_drop(text) for text in drops]
    study = open_runs([run]).select_model(options["model"])
    checks = judge_drops(study.drops, rules, bound)
    if min_accuracy is not None:
        checks += judge_accuracies(study.overall_accuracies, min_accuracy, bound)
    if options["xml"]:
        write_atomically(options["xml"], to_junit(checks))
    for check in sorted(checks, key=lambda check: SHOWN_FIRST.index(check.verdict)):
        click.echo(f"{check.verdict}: {check.message}")
    sys.exit(EXIT_STATUS[combine_verdicts(checks)])
