"""Evaluation with the functions that a run uses. `python our_loop.py LIST BATCH_SIZE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from counterfoil.models.model_loaders import load_model
from counterfoil.sources.pixels import read_photo
from counterfoil.types import Classifier
from counterfoil.worker_pool import LocalEngine, cores
from pairing import report_turn


def top1(model: Classifier, paths: Sequence[str], batch_size: int) -> list[int]:
    """The column that the network holds most likely, per picture."""
    found = [0] * len(paths)

    def answer(places: range) -> tuple[range, list[int]]:
        scores = model([read_photo(Path(paths[place])) for place in places])
        return places, scores.argmax(1).tolist()

    batches = (range(start, min(start + batch_size, len(paths))) for start in range(0, len(paths), batch_size))
    for places, columns in LocalEngine(cores()).map(answer, batches):
        found[places.start : places.stop] = columns
    return found


def main() -> None:
    """Evaluate once."""
    paths, batch_size = Path(sys.argv[1]).read_text().splitlines(), int(sys.argv[2])
    model = load_model("embedded:efficientnet-lite0")  # runs once on a grey picture, to check its width
    report_turn(lambda: top1(model, paths, batch_size))


if __name__ == "__main__":
    main()
