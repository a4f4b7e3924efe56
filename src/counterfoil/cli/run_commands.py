"""The command `run`: edit photos, ask models, report what each attribute costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from counterfoil.cli.command_output import emit
from counterfoil.cli.completion import complete_model, complete_source
from counterfoil.cli.config_file import RUN_FILE, config_option, write_run_file
from counterfoil.cli.shared_options import (
    FOLDER,
    IMAGES,
    MODEL,
    PLACE,
    chosen_execution,
    chosen_options,
    engine_options,
    limit_option,
    mask_options,
    model_options,
    recipe_option,
    workers_option,
)
from counterfoil.cli.terminal_output import command_line, end_unjudged, print_models, print_result, print_shard
from counterfoil.report.integrations import TRACKERS
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute, process_shard
from counterfoil.sources.source_loaders import open_source


@click.command()
@click.option("--images", required=True, type=PLACE, shell_complete=complete_source, help=IMAGES)
@click.option("--masks", type=PLACE, help="Parallel folder of masks (PNG, same stem).")
@click.option("--model", "models", multiple=True, required=True, shell_complete=complete_model, help=MODEL)
@recipe_option
@click.option("--out", type=FOLDER, help="Folder for the report and the tables [default: out].")
@limit_option
@workers_option
@click.option("--batch-size", type=int, default=16, show_default=True, help="Pictures per call of a model.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other random edits.")
@click.option(
    "--scoring",
    type=click.Choice(["all", "subset"]),
    default="all",
    show_default=True,
    help="Whether columns of classes without photos compete.",
)
@engine_options
@click.option(
    "--render-device",
    default="",
    help="Compose the pictures with torch there: cuda, cuda:NUMBER or cpu [default: OpenCV, exact].",
)
@mask_options
@model_options
@click.option("--log", "trackers", multiple=True, type=click.Choice(list(TRACKERS)), help="Log to a tracker.")
@config_option
def run(
    images: str | Path, masks: str | Path | None, models: tuple[str, ...], out: Path | None, **options: Any
) -> None:
    """Edit your photos, ask your models, and write a report on what each attribute costs."""
    names = ("recipe", "limit", "workers", "batch_size", "seed", "classes", "scoring", "segmenter", "doubtful_masks")
    settings = {name: options[name] for name in (*names, "render_device")}
    source, how = open_source(images, masks), chosen_options(options)
    execution = chosen_execution(options)
    config = RunConfig(
        source=source, models=models, command=command_line(), options=how, execution=execution, **settings
    )
    if execution.shard is not None:
        process_shard(config, out or Path("out"))
        print_shard(execution.shard, out or Path("out"))
        return
    result = execute(config, out or Path("out"), print_models)
    write_run_file(result.folder / RUN_FILE)
    document = print_result(result)
    for tracker in options["trackers"]:
        result.log(tracker)
    emit(document)
    end_unjudged(result.judgements, result.headline)
