"""The network alone on ready tensors, the floor of every evaluation. `python bare_loop.py LIST BATCH_SIZE [decode]`.

With `decode` every file is read and decoded before the network is asked, and the pixels are dropped: what an evaluation
of files would cost if resizing and all else were free.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.models.model_loaders import load_model
from counterfoil.models.preprocessing import prepare_input
from counterfoil.sources.pixels import read_photo
from counterfoil.worker_pool import LocalEngine, cores
from pairing import report_turn


def main() -> None:
    """Prepare every picture, then ask the network as `our_loop.py` does: batches on one thread per core."""
    paths, batch_size = Path(sys.argv[1]).read_text().splitlines(), int(sys.argv[2])
    model: Any = load_model("embedded:efficientnet-lite0")
    ready = np.stack([prepare_input(read_photo(Path(path)), model.preprocessing) for path in paths])
    session = open_onnx_session(model.path)
    name, decodes = session.get_inputs()[0].name, "decode" in sys.argv[3:]

    def ask(start: int) -> tuple[int, list[int]]:
        if decodes:
            for path in paths[start : start + batch_size]:
                read_photo(Path(path))
        (scores,) = session.run(None, {name: ready[start : start + batch_size]})
        return start, scores.argmax(1).tolist()

    def work() -> list[int]:
        found = [0] * len(ready)
        for start, columns in LocalEngine(cores()).map(ask, range(0, len(ready), batch_size)):
            found[start : start + len(columns)] = columns
        return found

    report_turn(work)


if __name__ == "__main__":
    main()
