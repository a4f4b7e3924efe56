"""The demo: real photos and real networks out of the package index, and a few backgrounds painted anew."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edit.painted import PaintedComplexity
from counterfoil.engine.local import cores
from counterfoil.pipeline.building import png
from counterfoil.pipeline.job import Job
from counterfoil.pipeline.progress import Extent, shown
from counterfoil.pipeline.studio import reduced
from counterfoil.source import DemoSource
from counterfoil.store import write_atomically
from counterfoil.types import Picture, Sample

MODELS = ("embedded:efficientnet-lite0", "embedded:efficientnet-lite2", "embedded:pp-lcnetv2")
PAINTED = (  # photos with a background worth painting
    "n02110341/imagenet_16_251.jpg", "n02422699/ffffff7f34180000_0352.png", "n02028035/ffdfc7f0e1e0e1c1_0141.png",
)  # fmt: skip
GUIDANCES = (-20, 20)
SIDE = 256
CAPTIONS = ("photo", "lambda -20: plainer", "lambda 20: more complex")  # of the columns
CAPTION_HEIGHT = 28  # pixels above the pictures


def demo_job(limit: int | None, workers: int | None, command: str) -> Job:
    """Three networks of two families over the demo photos."""
    return Job(DemoSource(), MODELS, "attributes", limit, workers, command=command)


def paint_demo(out: Path, photos: Sequence[str] = PAINTED) -> Path:
    """A few photos with their backgrounds made plainer and more complex, side by side in one picture."""
    source = DemoSource()
    chosen = [sample for sample in source.samples()[0] if sample.id in photos]
    with ThreadPoolExecutor(cores()) as threads:
        made = threads.map(lambda sample: _row(source, sample), chosen)
        rows = list(shown(made, Extent(0, len(chosen), " photos")))
    path = out / "painted.png"
    write_atomically(path, png(Picture(np.vstack([_captions(), *rows]), np.zeros((1, 1), np.uint8))))
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
    picture = reduced(Picture(image, mask), SIDE)
    made = [PaintedComplexity(guidance)(picture, np.random.default_rng(0)).image for guidance in GUIDANCES]
    return np.hstack([np.asarray(cv2.resize(each, (SIDE, SIDE)), np.uint8) for each in (picture.image, *made)])
