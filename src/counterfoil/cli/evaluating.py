"""Finished pictures before models: `evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.cli.config import config_option
from counterfoil.cli.options import chosen_options, model_options
from counterfoil.cli.running import command_line, print_models, tell, workers_option
from counterfoil.pipeline import Evaluation, collection_at, run_evaluation
from counterfoil.pipeline.collected.opening import full_address, told
from counterfoil.pipeline.recorded.papers import paper_tables


@click.command()
@click.argument("collection")
@click.option("--model", "models", multiple=True, required=True, help="Model address; may be given several times.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the report and the tables.")
@click.option("--limit", type=int, help="Use only so many photos with all of their pictures, the classes in turn.")
@workers_option
@click.option("--batch-size", type=int, default=16, show_default=True, help="Pictures per call of a model.")
@click.option("--scoring", type=click.Choice(["all", "subset"]),
              help="Whether columns of no class compete [default: as the collection says].")  # fmt: skip
@model_options
@config_option
def evaluate(collection: str, models: tuple[str, ...], out: Path, **options: Any) -> None:
    """Show finished pictures to your models: a frozen benchmark, a workspace, or NAME:PATH of a published archive."""
    asked = {name: options[name] for name in ("limit", "workers", "batch_size", "scoring", "classes")}
    opened = collection_at(collection)
    for line in told(collection, opened):
        click.echo(line)
    evaluation = Evaluation(
        opened, models, options=chosen_options(options), address=full_address(collection),
        command=command_line(), **asked,
    )  # fmt: skip
    tell(run_evaluation(evaluation, out, print_models, paper_tables))
