"""The command `repair`: make a better model, and judge it on photos that it has not seen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_model, complete_recipe
from counterfoil.cli.config_file import config_option
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import chosen_options, limit_option, model_options, workers_option
from counterfoil.cli.terminal_output import command_line
from counterfoil.errors import UserError
from counterfoil.remedies.remedy_advice import advise_run
from counterfoil.remedies.repair_config import FITTING_RECIPE, METHODS, RECIPE, RepairConfig
from counterfoil.remedies.repair_result import RepairResult, record_result
from counterfoil.remedies.repairer import choose_photos, execute_repair
from counterfoil.report.words import format_bounds, format_number
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.source_loaders import open_source
from counterfoil.study.runs import open_runs

_PATH = PATH


@click.command()
@click.argument("run", type=_PATH, required=False)
@click.option(
    "--model", shell_complete=complete_model, help="Address of the model [default: the run's, where it has one]."
)
@click.option(
    "--method", type=click.Choice(METHODS), help="What is done [default: all that apply; the best is judged]."
)
@click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE",
              help="A setting of the method, such as epochs=10 of train; may be given again.")  # fmt: skip
@click.option("--out", type=_PATH, help="Folder for model.onnx, model.json, repair.json, report.html.")
@click.option("--advice", is_flag=True, help="Run nothing: say what usually helps against what costs the run's models.")
@click.option("--images", type=_PATH, help="Other photos than the run's: class folders, or FORMAT:PATH.")
@click.option("--masks", type=_PATH, help="Parallel folder of masks for --images.")
@click.option("--pictures", help="Workspace or benchmark whose pictures last-layer and train are fitted on too.")
@click.option("--elsewhere", type=_PATH, help="Photos of other classes, which must not suffer [default: demo photos].")
@click.option(
    "--recipe",
    default=RECIPE,
    show_default=True,
    shell_complete=complete_recipe,
    help="Edits that are judged: a recipe, or a YAML file.",
)
@click.option("--fitting-recipe", default=FITTING_RECIPE, show_default=True, shell_complete=complete_recipe,
              help="Edits that last-layer and train are fitted on: a recipe, or a YAML file.")  # fmt: skip
@click.option("--allow-loss", type=float, default=1.0, show_default=True,
              help="Points that unedited and other photos may lose, by the interval.")  # fmt: skip
@click.option("--parts", type=_PATH, help="A split of your own: JSON with `parts`, three lists of photo ids.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other edits and parts.")
@limit_option
@workers_option
@model_options
@config_option
def repair(run: Path | None, out: Path | None, advice: bool, **options: Any) -> None:
    """Make a model that edits break less, and judge it on photos it has not seen: exit 0 repaired, 1 not, 3, 4."""
    if advice:
        print_advice(run)
        return
    if out is None:
        raise UserError("expected --out, the folder for the repaired model; or --advice with the folder of a run")
    if options["classes"]:
        raise UserError("expected photos of the model's own classes, got --classes; repair does not regroup columns")
    source, model = choose_photos(run, options["model"], options["images"], options["masks"])
    elsewhere = options["elsewhere"]
    config = RepairConfig(
        source=source, model=model, command=command_line(), options=chosen_options(options),
        elsewhere=DemoSource() if elsewhere is None else open_source(elsewhere, None),
        **{name: options[name] for name in (
            "method", "recipe", "fitting_recipe", "allow_loss", "parts", "pictures", "seed", "limit", "workers")},
    )  # fmt: skip
    result = execute_repair(config.with_settings(split_settings(options["settings"])), out)
    print_repair(result)
    emit({**record_result(result), "command": "repair", "folder": result.folder.absolute()})
    sys.exit(result.verdict.status)


def print_advice(run: Path | None) -> None:
    """Print what usually helps against each attribute that costs a model of the run accuracy."""
    if run is None:
        raise UserError("expected the folder of a run before --advice, got none")
    rows = advise_run(open_runs([run]))
    for row in rows:
        click.echo(row.sentence)
    if not rows:
        click.echo("no attribute costs a model of this run accuracy significantly: nothing to repair is shown")
    else:
        click.echo(f"try it: counterfoil repair {run} --model ADDRESS --out repaired")


def split_settings(given: Sequence[str]) -> dict[str, str]:
    """Names and values; raises `UserError` where there is no value."""
    for text in given:
        if "=" not in text:
            raise UserError(f"expected --setting NAME=VALUE, such as epochs=10, got '{text}'")
    return {name.strip().replace("-", "_"): value for name, _, value in (text.partition("=") for text in given)}


def print_repair(result: RepairResult) -> None:
    """Print the verdict, its reasons, the five columns and where the model is."""
    for row in result.rows:
        edited, among, unedited = (_points(change.change) for change in (row.edited, row.among, row.unedited))
        others = "not measured" if row.others is None else _points(row.others.change)
        click.echo(
            f"{row.name}: edited {edited}, with only the photos' classes {among}, unedited {unedited},"
            f" other classes {others}, {result.milliseconds_before:.0f} to {row.milliseconds:.0f} ms a picture"
        )
    for line in result.sentences:
        click.echo(line)
    click.echo(f"model: onnx:{result.model}")
    click.echo(f"report: {result.folder / 'report.html'}")


def _points(change: Any) -> str:
    sign = "+" if change.value > 0 else ""
    return f"{sign}{format_number(change.value)} {format_bounds(change.ci_low, change.ci_high)}"
