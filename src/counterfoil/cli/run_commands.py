"""The commands `run` and `demo`: edit photos, ask models, report what each attribute costs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.builder import encode_png
from counterfoil.cli.config_file import config_option
from counterfoil.cli.shared_options import (
    IMAGES,
    MODEL,
    chosen_options,
    limit_option,
    mask_options,
    model_options,
    workers_option,
)
from counterfoil.cli.terminal_output import command_line, end_unjudged, print_models, print_result
from counterfoil.edits.painted import PaintedComplexity
from counterfoil.progress import Extent, ProgressMeter, count_progress, open_meter
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.files import write_atomically
from counterfoil.types import Picture, Sample
from counterfoil.variant_renderer import resize_to_working_size
from counterfoil.worker_pool import cores


@click.command()
@click.option("--images", required=True, type=click.Path(path_type=Path), help=IMAGES)
@click.option("--masks", type=click.Path(path_type=Path), help="Parallel folder of masks (PNG, same stem).")
@click.option("--model", "models", multiple=True, required=True, help=MODEL)
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
    help="Whether columns of classes without photos compete.",
)
@mask_options
@model_options
@config_option
def run(images: Path, masks: Path | None, models: tuple[str, ...], out: Path | None, **options: Any) -> None:
    """Edit your photos, ask your models, and write a report on what each attribute costs."""
    names = ("recipe", "limit", "workers", "batch_size", "seed", "classes", "scoring", "segmenter", "doubtful_masks")
    settings = {name: options[name] for name in names}
    source, how = open_source(images, masks), chosen_options(options)
    config = RunConfig(source=source, models=models, command=command_line(), options=how, **settings)
    result = execute(config, out or Path("out"), print_models)
    print_result(result)
    end_unjudged(result.judgements, result.headline)


MODELS = ("Lite0=embedded:efficientnet-lite0", "Lite2=embedded:efficientnet-lite2", "LCNetV2=embedded:pp-lcnetv2")
PAINTED = (  # photos with a background worth painting
    "n02110341/imagenet_16_251.jpg", "n02422699/ffffff7f34180000_0352.png", "n02028035/ffdfc7f0e1e0e1c1_0141.png",
)  # fmt: skip
GUIDANCES = (-20, 20)
SIDE = 256
CAPTIONS = ("photo", "lambda -20: plainer", "lambda 20: more complex")  # of the columns
CAPTION_HEIGHT = 28  # pixels above the pictures


def demo_config(limit: int | None, workers: int | None, command: str) -> RunConfig:
    """Three networks of two families over the demo photos."""
    return RunConfig(
        source=DemoSource(), models=MODELS, recipe="attributes", limit=limit, workers=workers, command=command
    )


def paint_demo(out: Path, photos: Sequence[str] = PAINTED) -> Path:
    """A few photos with their backgrounds made plainer and more complex, side by side in one picture."""
    source = DemoSource()
    chosen = [sample for sample in source.samples()[0] if sample.id in photos]
    extent = Extent(stage="painting backgrounds", unit="pictures", total=len(chosen) * len(GUIDANCES))
    with ThreadPoolExecutor(cores()) as threads, open_meter(count_progress(extent)) as meter:
        rows = list(threads.map(lambda sample: _row(source, sample, meter), chosen))
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


def _row(source: DemoSource, sample: Sample, meter: ProgressMeter) -> NDArray[np.uint8]:
    """The photo, then one painting per guidance, squeezed to squares."""
    image, mask = source.read(sample)
    assert mask is not None
    picture = resize_to_working_size(Picture(image, mask), SIDE)
    images = [picture.image]
    for guidance in GUIDANCES:
        images.append(PaintedComplexity(guidance)(picture, np.random.default_rng(0)).image)
        meter.add()
    return np.hstack([np.asarray(cv2.resize(image, (SIDE, SIDE)), np.uint8) for image in images])


@click.command()
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report and the tables [default: demo].")
@limit_option
@workers_option
def demo(out: Path | None, limit: int | None, workers: int | None) -> None:
    """Run three networks over the demo photos, offline after the first time, and write a report."""
    folder = out or Path("demo")
    print_result(execute(demo_config(limit, workers, command_line()), folder, print_models))
    click.echo("painting the backgrounds of three photos anew: up to a minute")
    painted = paint_demo(folder)
    click.echo(f"painted: {painted}, photos with backgrounds made plainer (lambda -20) and more complex (lambda 20)")
