"""The command `demo`: a run over the demo photos, painted backgrounds, and the repair of one network."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder
from counterfoil.builder import encode_png
from counterfoil.cli.command_output import emit
from counterfoil.cli.path_option import PATH
from counterfoil.cli.shared_options import limit_option, workers_option
from counterfoil.cli.terminal_output import command_line, print_models, print_result
from counterfoil.edits.painted import PaintedComplexity
from counterfoil.progress import Extent, ProgressMeter, count_progress, open_meter
from counterfoil.recipes.edit_recipe import Recipe, Step
from counterfoil.remedies.photo_parts import FEWEST
from counterfoil.remedies.repair_config import RepairConfig
from counterfoil.remedies.repair_result import RepairResult
from counterfoil.remedies.repairer import execute_repair
from counterfoil.report.words import format_number
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.store.files import write_atomically
from counterfoil.store.result_cache import ResultCache, Stored, name_result, open_result_cache
from counterfoil.types import Picture, Sample
from counterfoil.variant_renderer import resize_to_working_size
from counterfoil.worker_pool import cores

MODELS = ("Lite0=embedded:efficientnet-lite0", "Lite2=embedded:efficientnet-lite2", "LCNetV2=embedded:pp-lcnetv2")
PAINTED = (  # photos with a background worth painting
    "n02110341/imagenet_16_251.jpg", "n02422699/ffffff7f34180000_0352.png", "n02028035/ffdfc7f0e1e0e1c1_0141.png",
)  # fmt: skip
GUIDANCES = (-20, 20)
SIDE = 256
CAPTIONS = ("photo", "lambda -20: plainer", "lambda 20: more complex")  # of the columns
CAPTION_HEIGHT = 28  # pixels above the pictures
REPAIRED = "embedded:efficientnet-lite0"
REPAIR_EDITS = Recipe(
    name="demo repair",
    about="Small objects. Patches fill the holes, unjudged: about a quarter of the time.",
    working_size=384,
    judge_fills=False,
    edits=(Step(edit="size", levels={"rate": [0.1, 0.05]}),),
)
ALLOWED_LOSS = 10.0  # points: 62 photos cannot show that less is lost


def demo_config(limit: int | None, workers: int | None, command: str) -> RunConfig:
    """Three networks of two families over the demo photos."""
    return RunConfig(
        source=DemoSource(), models=MODELS, recipe="attributes", limit=limit, workers=workers, command=command
    )


def paint_demo(out: Path, photos: Sequence[str] = PAINTED) -> Path:
    """A few photos with their backgrounds made plainer and more complex, side by side in one picture."""
    source = DemoSource()
    chosen = [sample for sample in source.samples()[0] if sample.id in photos]
    results = open_result_cache(cache_folder())
    extent = Extent(stage="painting backgrounds", unit="pictures", total=len(chosen) * len(GUIDANCES))
    with ThreadPoolExecutor(cores()) as threads, open_meter(count_progress(extent)) as meter:
        rows = list(threads.map(lambda sample: _row(source, sample, meter, results), chosen))
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


def _row(source: DemoSource, sample: Sample, meter: ProgressMeter, results: ResultCache) -> NDArray[np.uint8]:
    """The photo, then one painting per guidance, squeezed to squares."""
    image, mask = source.read(sample)
    assert mask is not None
    picture = resize_to_working_size(Picture(image, mask), SIDE)
    images = [picture.image]
    for guidance in GUIDANCES:
        images.append(_paint(picture, guidance, results))
        meter.add()
    return np.hstack([np.asarray(cv2.resize(image, (SIDE, SIDE)), np.uint8) for image in images])


def _paint(picture: Picture, guidance: int, results: ResultCache) -> NDArray[np.uint8]:
    """The picture with its background painted anew, or as an earlier demo painted it."""
    return results.once(
        name_result("painted for the demo", *picture, guidance),
        lambda: PaintedComplexity(guidance)(picture, np.random.default_rng(0)).image,
        lambda image: Stored(None, (image,)), lambda stored: stored.planes[0],
    )  # fmt: skip


def repair_demo(out: Path, limit: int | None, workers: int | None) -> RepairResult:
    """The zoom of one network, judged on small objects of the demo photos."""
    config = RepairConfig(
        source=DemoSource(), model=REPAIRED, method="zoom", recipe=REPAIR_EDITS, allow_loss=ALLOWED_LOSS, limit=limit,
        workers=workers, command="counterfoil demo",
    )  # fmt: skip
    return execute_repair(config, out / "repair")


def print_repair_demo(folder: Path, limit: int | None, workers: int | None) -> RepairResult | None:
    """Repair one network and print the verdict, whatever it is; a demo of too few photos says that it does not."""
    if limit is not None and limit < FEWEST:
        click.echo(f"no repair: it takes at least {FEWEST} photos, and --limit is {limit}")
        return None
    click.echo("repairing one network by a zoom: up to a minute")
    repaired = repair_demo(folder, limit, workers)
    (size,) = repaired.attributes
    click.echo(
        f"repair of {REPAIRED} by {repaired.method}: {repaired.verdict.outcome}; drop of small objects"
        f" {format_number(size.drop.before)} before, {format_number(size.drop.after)} after (n = {size.drop.change.n})"
    )
    click.echo(f"before and after: {repaired.folder / 'before_after.png'}, report: {repaired.folder / 'report.html'}")
    return repaired


@click.command()
@click.option("--out", type=PATH, help="Folder for the report and the tables [default: demo].")
@limit_option
@workers_option
def demo(out: Path | None, limit: int | None, workers: int | None) -> None:
    """Run three networks over the demo photos, offline after the first time, write a report, and repair one."""
    folder = out or Path("demo")
    document = print_result(execute(demo_config(limit, workers, command_line()), folder, print_models))
    click.echo("painting the backgrounds of three photos anew: up to a minute")
    painted = paint_demo(folder)
    click.echo(f"painted: {painted}, photos with backgrounds made plainer (lambda -20) and more complex (lambda 20)")
    repaired = print_repair_demo(folder, limit, workers)
    verdict = None if repaired is None else repaired.verdict.outcome
    emit({**document, "exit_status": 0, "painted": painted.absolute(), "repair": verdict})
