"""The command line with torch on the CPU in place of a card: `python card_on_cpu.py build ...`.

With HOLD_AT_BATCH=N in the environment the card stops at its N-th batch, and says so in the file HOLD_MARK.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import torch

from counterfoil.__main__ import main
from counterfoil.painters import background_batches
from counterfoil.painters.background_batches import ExactPainter, Finish, GpuBatcher, Guides, load_torch_model
from counterfoil.painters.sampler import Scene


class HoldingPainter:
    """Paints batches until one at which it stops."""

    rows, depth = 2, 1

    def __init__(self, hold_at: int) -> None:
        self._exact = ExactPainter("cpu", load_torch_model("cpu"), self.rows)
        self._left = hold_at

    def start(self, scenes: Sequence[Scene], schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        self._left -= 1
        if self._left == 0:
            Path(os.environ["HOLD_MARK"]).touch()
            threading.Event().wait()
        return self._exact.start(scenes, schedule, guides)


if __name__ == "__main__":
    torch.set_num_threads(1)
    batcher = GpuBatcher("cpu", HoldingPainter(int(os.environ.get("HOLD_AT_BATCH", "0"))))
    background_batches._load_batcher = lambda device, precision: batcher  # type: ignore[assignment]
    torch.cuda.is_available = lambda: True
    main()
