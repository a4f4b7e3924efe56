"""The commands `evaluate` and `leaderboard`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_model
from counterfoil.cli.config_file import config_option
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import (
    FOLDER,
    MODEL,
    chosen_execution,
    chosen_options,
    engine_options,
    model_options,
    workers_option,
)
from counterfoil.cli.terminal_output import command_line, end_unjudged, print_models, print_result, print_shard
from counterfoil.evaluation import EvaluationConfig, evaluate_shard, run_evaluation
from counterfoil.progress import show_stage
from counterfoil.published.catalogue import describe_collection, full_address, make_paper_tables, open_collection
from counterfoil.published.leaderboard import build_leaderboard, render_html, render_json, render_markdown, render_text
from counterfoil.published.published_numbers import MANY, Leaderboard
from counterfoil.store.files import write_atomically


@click.command()
@click.argument("collection")
@click.option("--model", "models", multiple=True, required=True, shell_complete=complete_model, help=MODEL)
@click.option("--out", required=True, type=FOLDER, help="Folder for the report and the tables.")
@click.option(
    "--limit", type=int, help="Use at most this many photos with all their pictures, taken from the classes in turn."
)
@workers_option
@click.option("--batch-size", type=int, default=16, show_default=True, help="Pictures per call of a model.")
@click.option("--scoring", type=click.Choice(["all", "subset"]),
              help="Whether columns of other classes compete [default: as the collection says].")  # fmt: skip
@engine_options
@model_options
@config_option
def evaluate(collection: str, models: tuple[str, ...], out: Path, **options: Any) -> None:
    """Show finished pictures to your models: a frozen benchmark, a workspace, or NAME:PATH of a published archive."""
    asked = {name: options[name] for name in ("limit", "workers", "batch_size", "scoring", "classes")}
    with show_stage("listing the pictures"):
        opened = open_collection(collection)
    for line in describe_collection(collection, opened):
        click.echo(line)
    execution = chosen_execution(options)
    evaluation = EvaluationConfig(
        collection=opened, models=models, options=chosen_options(options), address=full_address(collection),
        command=command_line(), execution=execution, **asked,
    )  # fmt: skip
    if execution.shard is not None:
        evaluate_shard(evaluation, out)
        print_shard(execution.shard, out)
        return
    result = run_evaluation(evaluation, out, print_models, make_paper_tables)
    emit(print_result(result))
    end_unjudged(result.judgements, result.headline)


_FORMS = {"text": render_text, "markdown": render_markdown, "json": render_json, "html": render_html}


@click.command(name="leaderboard")
@click.argument("benchmark")
@click.argument("runs", nargs=-1, type=PATH)
@click.option("--format", "form", type=click.Choice(list(_FORMS)), default="text", show_default=True,
              help="html is one page that sorts and filters.")  # fmt: skip
@click.option("--numbers", "files", multiple=True, type=PATH,
              help="JSON file with rows of your own; may be repeated.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Every published row in the terminal, however many.")
@click.option("--out", type=PATH, help="File to write [default: the terminal].")
def leaderboard_command(
    benchmark: str, runs: tuple[Path, ...], form: str, files: tuple[Path, ...], every: bool, out: Path | None
) -> None:
    """Show what was published of a benchmark, your own runs first."""
    board = build_leaderboard(benchmark, runs, files)
    emit({**json.loads(render_json(board)), "file": None if out is None else out.absolute()})
    text = _for_the_terminal(board, every) if form == "text" and out is None else _FORMS[form](board)
    click.echo(text if out is None else write_atomically(out, text), nl=out is not None)


def _for_the_terminal(board: Leaderboard, every: bool) -> str:
    """As wide as the terminal, and a part of a long board; whole rows, and all, where a program reads them."""
    if not sys.stdout.isatty():
        return render_text(board)
    return render_text(board, shutil.get_terminal_size().columns, None if every else MANY)
