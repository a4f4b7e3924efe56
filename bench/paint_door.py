"""What `build` makes of a card: pictures a second from photos to files, by threads and by worker processes.

    python bench/paint_door.py [--photos 200] [--levels 12] [--workers N] [--precision bf16] [--engines threads ...]
    python bench/paint_door.py --card sleep --batch-ms 62 [--rows 64]

With a GPU: pictures a second, their share of the card's own speed at a large matrix product, and the CPU time of a
picture. Without one, a card that only sleeps stands in: it shows what the CPU side costs and whether it keeps such a
card busy, and that threads and processes write the same files. Each engine builds twice: the first time holes are
filled, and a GPU compiles.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterfoil.builder import build_pictures
from counterfoil.execution import Execution
from counterfoil.painters import background_batches
from counterfoil.painters.background_batches import Finish, GpuBatcher, Guides
from counterfoil.painters.guidance import complexity_guide
from counterfoil.painters.paint_service import PaintService, find_client, serve_forked
from counterfoil.painters.sampler import Scene
from counterfoil.run_config import RunConfig
from counterfoil.sources.source_loaders import open_source
from counterfoil.worker_pool import ForkedEngine
from figures import note_figure
from paint import GUIDANCE, SIDE, STRENGTH, matrix_peak, pass_operations, scene, write_photos

_ASKING_PROCESSES, _ASKING_THREADS, _ASKED_PICTURES = 4, 32, 400


class SleepingCard:
    """Takes a fixed time for a batch, two at once as the painter in bf16 does, and adds a little noise."""

    depth = 2

    def __init__(self, rows: int, batch_seconds: float) -> None:
        self.rows, self.busy = rows, 0.0
        self._batch_seconds, self._device = batch_seconds, threading.Lock()
        shape = (rows, 3, SIDE, SIDE)
        self._buffers = cycle([(np.empty(shape, np.float32), np.empty(shape, np.float32)) for _ in range(3)])

    def start(self, scenes: Sequence[Scene], schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        """Copy the pictures as to a card, into memory that is used again."""
        images, noise = next(self._buffers)
        if images.shape[1:] != scenes[0].noise.shape[1:] or len(images) != len(scenes):
            images, noise = (np.empty((len(scenes), *scenes[0].noise.shape[1:]), np.float32) for _ in range(2))
        np.concatenate([each.background for each in scenes], out=images)
        np.concatenate([each.noise for each in scenes], out=noise)

        def finish() -> Any:
            """Wait as for a card; the pictures of one batch differ by their noise."""
            with self._device:
                time.sleep(self._batch_seconds)
                self.busy += self._batch_seconds
            return np.where(noise > 1, -images, images)

        return finish


class Measured(NamedTuple):
    """One build: its pictures, seconds of the clock, and of CPU here and in worker processes."""

    pictures: int
    seconds: float
    here: float
    elsewhere: float


def cpu_seconds() -> tuple[float, float]:
    """Of this process, and of those that ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return spent[0].ru_utime + spent[0].ru_stime, spent[1].ru_utime + spent[1].ru_stime


def measure_build(config: RunConfig, out: Path) -> Measured:
    """Build once."""
    started, (here, elsewhere) = time.perf_counter(), cpu_seconds()
    build_pictures(config, out)
    seconds = time.perf_counter() - started
    here, elsewhere = cpu_seconds()[0] - here, cpu_seconds()[1] - elsewhere
    return Measured(sum(1 for _ in (out / "pictures").rglob("*.png")), seconds, here, elsewhere)


def ask_often(process: int) -> int:
    """In a forked process: threads that ask for picture after picture, and do nothing else."""
    with ThreadPoolExecutor(_ASKING_THREADS) as pool:
        client, one, guides = find_client(), scene(1), Guides(complexity_guide(GUIDANCE, STRENGTH))
        assert client is not None
        asked = [pool.submit(client.paint, "cuda", "f32", one, [0.0], guides) for _ in range(_ASKED_PICTURES)]
        return len([each.result() for each in asked])


def measure_service() -> None:
    """What one process that owns a card does for each picture: how many it could hand over, were the card free."""
    service = PaintService()
    started, cpu = time.perf_counter(), cpu_seconds()[0]
    with serve_forked(service.address):
        pictures = sum(ForkedEngine(_ASKING_PROCESSES).map(ask_often, range(_ASKING_PROCESSES)))
    seconds, cpu = time.perf_counter() - started, cpu_seconds()[0] - cpu
    service.close()
    print(f"| the owner of a card alone, {_ASKING_PROCESSES} processes ask | {pictures / seconds:.0f} pictures/s"
          f" | {1000 * cpu / pictures:.2f} ms of CPU a picture here |", flush=True)  # fmt: skip


def hash_pictures(out: Path) -> str:
    """One hash of all picture files and their names."""
    digest = hashlib.sha256()
    for path in sorted((out / "pictures").rglob("*.png")):
        digest.update(str(path.relative_to(out)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def main() -> None:
    """Print one row for each build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=200)
    parser.add_argument("--levels", type=int, default=12, help="painted pictures a photo")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--workers", type=int, help="as of the command; for threads the default is 64 at most")
    parser.add_argument("--engines", nargs="+", default=["threads", "processes"])
    parser.add_argument("--precision", choices=("f32", "bf16"), default="bf16")
    parser.add_argument("--card", choices=("cuda", "sleep"), default="cuda")
    parser.add_argument("--rows", type=int, default=64, help="of the card that sleeps")
    parser.add_argument("--batch-ms", type=float, default=62.0, help="of the card that sleeps; 62 ms is an H200")
    compare_engines(parser.parse_args())


def compare_engines(asked: argparse.Namespace) -> None:
    """Each engine twice, on the same photos."""
    card = use_sleeping_card(asked.rows, asked.batch_ms / 1000) if asked.card == "sleep" else None
    if card is not None:
        measure_service()
    peak = None if card is not None else measure_peak(asked.steps)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photos(folder, asked.photos)
        recipe = write_recipe(folder, asked)
        for engine in asked.engines:
            config = RunConfig(
                source=open_source(folder / "images", folder / "masks"), models=(), recipe=recipe,
                workers=asked.workers, execution=Execution(engine),
            )  # fmt: skip
            for turn in ("first", "second"):
                busy = 0.0 if card is None else card.busy
                measured = measure_build(config, folder / engine / turn)
                painted = measured.pictures * asked.levels / (asked.levels + 1)
                speed = measured.pictures / measured.seconds
                use = (
                    f"{(card.busy - busy) / measured.seconds:.0%} of the time the card is busy" if card is not None
                    else f"{painted / measured.seconds / (peak or 1):.1%} of the peak"
                )  # fmt: skip
                print(f"| build, {asked.card}, {engine}, {turn} run | {speed:.1f} pictures/s | {use}"
                      f" | {1000 * measured.here / measured.pictures:.1f} ms of CPU a picture here,"
                      f" {1000 * measured.elsewhere / measured.pictures:.1f} in workers"
                      f" | files {hash_pictures(folder / engine / turn)} |", flush=True)  # fmt: skip
            note_figure(f"build, {asked.card}, {engine}", speed, "pictures/s")


def write_recipe(folder: Path, asked: argparse.Namespace) -> str:
    """One photo, as many painted pictures as asked for; the original is a picture too."""
    levels = [float(level) for level in np.linspace(-20, 20, asked.levels - 1).round(2)]
    levels = [0.0, *[level if level else 0.5 for level in levels]]
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        "working_size: 256\nedits:\n  - edit: painted-complexity\n    settings:"
        f" {{steps: {asked.steps}, device: cuda, precision: {asked.precision}}}\n    levels: {{guidance: {levels}}}\n"
    )
    return str(recipe)


def use_sleeping_card(rows: int, batch_seconds: float) -> SleepingCard:
    """Paint with a card that sleeps, in this process and for its workers."""
    import torch

    card = SleepingCard(rows, batch_seconds)
    batcher = GpuBatcher("cpu", card)
    background_batches._load_batcher = lambda device, precision: batcher  # type: ignore[assignment]
    torch.cuda.is_available = lambda: True
    return card


def measure_peak(steps: int) -> float:
    """Painted pictures a second at the card's own speed at a large matrix product."""
    import torch

    return matrix_peak(torch, "cuda") / (steps * pass_operations())


if __name__ == "__main__":
    main()
