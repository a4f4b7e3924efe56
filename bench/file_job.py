"""The whole job in the usual way: edit to files in a pool of processes, then the torch loop over the files.

`python file_job.py IMAGES MASKS png|jpg BATCH_SIZE`
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import torch_loop
from file_edits import Task, write_background, write_edits
from pairing import report_turn
from photos import jpeg_files

SWAPS = 2


def tasks(images: Path, masks: Path, out: Path, suffix: str) -> list[Task]:
    """One task per photo; its donors stand a third and two thirds of the list further on."""
    photos = jpeg_files(images)
    places = [out / photo.parent.name / photo.stem for photo in photos]
    steps = [len(photos) * (turn + 1) // (SWAPS + 1) for turn in range(SWAPS)]
    donors = [tuple(places[(number + step) % len(photos)] for step in steps) for number in range(len(photos))]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
    return [
        Task(photo, masks / photo.parent.name / f"{photo.stem}.png", place, lenders, suffix)
        for photo, place, lenders in zip(photos, places, donors, strict=True)
    ]


def edited(wanted: Sequence[Task]) -> list[str]:
    """Every picture of the job as a file, the originals among them."""
    with get_context("fork").Pool(torch_loop.cores()) as pool:
        pool.map(write_background, wanted, chunksize=1)
        made = pool.map(write_edits, wanted, chunksize=1)
    return [str(path) for paths in made for path in paths]


def main() -> None:
    """Do the job once."""
    images, masks, suffix, batch_size = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])

    def work() -> int:
        with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as out:
            paths = edited(tasks(images, masks, Path(out), suffix))
            return len(torch_loop.top1(torch_loop.network(), paths, batch_size))

    report_turn(work)


if __name__ == "__main__":
    main()
