"""The command `run`: edit photos, ask models, report what each attribute costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.cli.config_file import config_option
from counterfoil.cli.shared_options import IMAGES, chosen_options, limit_option, model_options, workers_option
from counterfoil.cli.terminal_output import command_line, print_models, print_result
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.source_loaders import open_source


@click.command()
@click.option("--images", required=True, type=click.Path(path_type=Path), help=IMAGES)
@click.option("--masks", type=click.Path(path_type=Path), help="Parallel folder of masks (PNG, same stem).")
@click.option("--model", "models", multiple=True, required=True, help="Model address; may be given several times.")
@click.option("--recipe", default="attributes", show_default=True, help="Recipe by name, or a YAML file.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report and the tables [default: out].")
@limit_option
@workers_option
@click.option("--batch-size", type=int, default=16, show_default=True, help="Pictures per call of a model.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other random edits.")
@click.option(
    "--scoring",
    type=click.Choice(["all", "subset"]),
    default="all",
    show_default=True,
    help="Whether columns of no photo's class compete.",
)
@model_options
@config_option
def run(images: Path, masks: Path | None, models: tuple[str, ...], out: Path | None, **options: Any) -> None:
    """Edit your photos, ask your models, and write a report on what each attribute costs."""
    names = ("recipe", "limit", "workers", "batch_size", "seed", "classes", "scoring")
    settings = {name: options[name] for name in names}
    source, how = open_source(images, masks), chosen_options(options)
    config = RunConfig(source=source, models=models, command=command_line(), options=how, **settings)
    print_result(execute(config, out or Path("out"), print_models))
