"""The commands `demo` and `run`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.builder import encode_png
from counterfoil.cli.config_file import config_option, typed_arguments
from counterfoil.cli.shared_options import chosen_options, model_options
from counterfoil.edits.painted import PaintedComplexity
from counterfoil.errors import UserError
from counterfoil.models.vlm import read_usage
from counterfoil.progress import Extent, show_progress
from counterfoil.rendering import resize_to_working_size
from counterfoil.run_config import RunConfig
from counterfoil.run_result import PreparedWork, Result
from counterfoil.runner import run_config
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.files import write_atomically
from counterfoil.types import Picture, Preprocessing, Sample
from counterfoil.worker_pool import cores

MODELS = ("embedded:efficientnet-lite0", "embedded:efficientnet-lite2", "embedded:pp-lcnetv2")
PAINTED = (  # photos with a background worth painting
    "n02110341/imagenet_16_251.jpg", "n02422699/ffffff7f34180000_0352.png", "n02028035/ffdfc7f0e1e0e1c1_0141.png",
)  # fmt: skip
GUIDANCES = (-20, 20)
SIDE = 256
CAPTIONS = ("photo", "lambda -20: plainer", "lambda 20: more complex")  # of the columns
CAPTION_HEIGHT = 28  # pixels above the pictures


def demo_job(limit: int | None, workers: int | None, command: str) -> RunConfig:
    """Three networks of two families over the demo photos."""
    return RunConfig(
        source=DemoSource(), models=MODELS, recipe="attributes", limit=limit, workers=workers, command=command
    )


def paint_demo(out: Path, photos: Sequence[str] = PAINTED) -> Path:
    """A few photos with their backgrounds made plainer and more complex, side by side in one picture."""
    source = DemoSource()
    chosen = [sample for sample in source.samples()[0] if sample.id in photos]
    with ThreadPoolExecutor(cores()) as threads:
        made = threads.map(lambda sample: _row(source, sample), chosen)
        rows = list(show_progress(made, Extent(0, len(chosen), " photos")))
    path = out / "painted.png"
    write_atomically(path, encode_png(Picture(np.vstack([_captions(), *rows]), np.zeros((1, 1), np.uint8))))
    return path


def _captions() -> NDArray[np.uint8]:
    """A strip that says what each column is."""
    strip = np.full((CAPTION_HEIGHT, SIDE * len(CAPTIONS), 3), 255, np.uint8)
    for column, text in enumerate(CAPTIONS):
        place = (column * SIDE + 8, CAPTION_HEIGHT - 9)
        cv2.putText(strip, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (30, 30, 30), 1, cv2.LINE_AA)
    return strip


def _row(source: DemoSource, sample: Sample) -> NDArray[np.uint8]:
    """The photo, then one painting per guidance, squeezed to squares."""
    image, mask = source.read(sample)
    assert mask is not None
    picture = resize_to_working_size(Picture(image, mask), SIDE)
    made = [PaintedComplexity(guidance)(picture, np.random.default_rng(0)).image for guidance in GUIDANCES]
    return np.hstack([np.asarray(cv2.resize(each, (SIDE, SIDE)), np.uint8) for each in (picture.image, *made)])


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
    print_result(run_config(demo_job(limit, workers, command_line()), folder, print_models))
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
    job = RunConfig(
        source=open_source(images, masks),
        models=models,
        command=command_line(),
        options=chosen_options(options),
        **asked,
    )
    print_result(run_config(job, out or Path("out"), print_models))


def command_line() -> str:
    """The command as it was typed, with the options of its --config file written out."""
    return shlex.join(["counterfoil", *typed_arguments()])


def print_result(result: Result) -> None:
    """Write the report beside the tables and print what was found."""
    report = result.report(result.folder)
    for line in result.headline:
        click.echo(line)
    _print_counts(result)
    click.echo(f"report: {report}")
    if not len(result.answers.samples):
        raise UserError(f"expected at least one photo that can be used, got none; see {result.folder / 'skipped.csv'}")


def print_models(prepared: PreparedWork) -> None:
    """What was loaded, before the work begins."""
    print_lost(prepared)
    for classifier in prepared.classifiers:
        told = "" if classifier.scoring in classifier.name else f"; {classifier.scoring}"
        click.echo(f"{classifier.name}: {_told(classifier.preprocessing)}{told}")


def print_lost(prepared: PreparedWork) -> None:
    """The classes of which nothing is left, before the work begins."""
    if prepared.lost:
        click.echo(f"no photo can be used of {', '.join(prepared.lost)}: skipped.csv says why of each")


def _print_counts(result: Result) -> None:
    """Nothing is left out in silence, and what models have to say of their run is said."""
    for classifier in result.prepared.classifiers:
        if note := classifier.note:
            click.echo(f"{classifier.name}: {note}")
    for usage in read_usage(result.folder).values():
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
