"""The main job: `demo` and `run`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.config import config_option, typed_arguments
from counterfoil.cli.options import chosen_options, model_options
from counterfoil.errors import UserError
from counterfoil.pipeline import Job, Result, demo_job, paint_demo, run_job, source_at
from counterfoil.pipeline.result import Work
from counterfoil.pipeline.spent import usage_of
from counterfoil.types import Preprocessing

IMAGES = "Folder of class folders with photos, or FORMAT:PATH (`counterfoil list sources`)."
limit_option = click.option("--limit", type=int, help="Use only so many photos, the classes in turn.")
workers_option = click.option("--workers", type=int, help="Threads that work on photos [default: one per core].")


@click.command()
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report and the tables [default: demo].")
@limit_option
@workers_option
def demo(out: Path | None, limit: int | None, workers: int | None) -> None:
    """Run three networks over the demo photos, offline after the first time, and write a report."""
    folder = out or Path("demo")
    tell(run_job(demo_job(limit, workers, command_line()), folder, print_models))
    click.echo("painting the backgrounds of three photos anew: up to a minute")
    painted = paint_demo(folder)
    click.echo(f"painted: {painted}, photos with backgrounds made plainer (lambda -20) and more complex (lambda 20)")


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
    asked = {name: options[name] for name in names}
    job = Job(source_at(images, masks), models, command=command_line(), options=chosen_options(options), **asked)
    tell(run_job(job, out or Path("out"), print_models))


def command_line() -> str:
    """The command as it was typed, with the options of its --config file written out."""
    return shlex.join(["counterfoil", *typed_arguments()])


def tell(result: Result) -> None:
    """Write the report beside the tables and print what was found."""
    report = result.report(result.folder)
    for line in result.headline:
        click.echo(line)
    _print_counts(result)
    click.echo(f"report: {report}")
    if not len(result.answers.samples):
        raise UserError(f"expected at least one photo that can be used, got none; see {result.folder / 'skipped.csv'}")


def print_models(prepared: Work) -> None:
    """What was loaded, before the work begins."""
    print_lost(prepared)
    for classifier in prepared.classifiers:
        told = "" if classifier.scoring in classifier.name else f"; {classifier.scoring}"
        click.echo(f"{classifier.name}: {_told(classifier.preprocessing)}{told}")


def print_lost(prepared: Work) -> None:
    """The classes of which nothing is left, before the work begins."""
    if prepared.lost:
        click.echo(f"no photo can be used of {', '.join(prepared.lost)}: skipped.csv says why of each")


def _print_counts(result: Result) -> None:
    """Nothing is left out in silence, and what models have to say of their run is said."""
    for classifier in result.prepared.classifiers:
        if note := classifier.note:
            click.echo(f"{classifier.name}: {note}")
    for usage in usage_of(result.folder).values():
        click.echo(usage.sentence)
    if result.skipped:
        click.echo(skipped_line(len(result.skipped), result.folder))


def skipped_line(skipped: int, folder: Path) -> str:
    """How many pictures could not be used, and where the reasons stand."""
    if not skipped:
        return "skipped: none"
    told = "1 picture, with its reason" if skipped == 1 else f"{skipped} pictures, each with its reason"
    return f"skipped: {told} in {folder / 'skipped.csv'}"


def _told(preprocessing: Preprocessing | None) -> str:
    if preprocessing is None:
        return "prepares its pictures itself"
    p = preprocessing
    geometry = f"squeeze to {p.size}" if p.resize is None else f"resize {p.resize}, centre crop {p.size}"
    return f"{geometry}, {p.interpolation}, mean {p.mean}, std {p.std}, {p.colour_order}"
