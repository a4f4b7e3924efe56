"""What painting a background costs: on the CPU as a multiple of one network pass, on a GPU in pictures per second.

    python bench/paint.py [--steps 10] [--batches 1 16 64 128] [--photos 4] [--torch cuda]

The CPU part times the steps that an edit adds around the network: schedule, blending, complexity guidance. The GPU
part runs where torch sees one: the sampler with its copies, the batcher that threads share, and the share of the card's
own speed at a large matrix product. Last, on both, the whole command: `build` with lambda -20, 0 and 20 from photos.
`bench/paint_ways.py` shows where the time of a pass goes.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.painters.background_batches import ROWS, GpuBatcher, Guides
from counterfoil.painters.background_model import load_background_model
from counterfoil.painters.guidance import complexity_guide
from counterfoil.painters.sampler import Scene, ratios, sample_background
from figures import note_figure

SIDE = 256
STRENGTH, GUIDANCE, STEPS = 0.3, 20.0, 10
RECIPE = """
working_size: 256
edits:
  - edit: painted-complexity
    settings: {steps: STEPS, device: DEVICE, precision: PRECISION}
    levels: {guidance: [-20, 0, 20]}
"""


def scene(count: int) -> Scene:
    """Pictures of noise; what a network costs does not depend on what it sees."""
    rng = np.random.default_rng(0)
    background, colours, noise = (rng.standard_normal((count, 3, SIDE, SIDE), np.float32).clip(-1, 1) for _ in range(3))
    known = (rng.random((count, 1, SIDE, SIDE)) < 0.3).astype(np.float32)
    return Scene(background, colours, known, noise)


def best_seconds(work: Callable[[], object], times: int) -> float:
    """The fastest of several tries: other work on the machine only ever adds."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return min(spent)


def cpu(steps: int) -> None:
    """One edit as a multiple of one pass, and whether a batch would help."""
    model, one = load_background_model(), scene(1)
    planes = np.concatenate([one.background, one.colours, one.known], 1)
    guide = complexity_guide(GUIDANCE, STRENGTH)
    one_pass = best_seconds(lambda: model(planes, 0.0), 8)
    four = best_seconds(lambda: model(np.repeat(planes, 4, 0), 0.0), 3) / 4
    whole = best_seconds(lambda: sample_background(model, one, ratios(STRENGTH, steps), guide), 3)
    print(f"| CPU, one thread | one pass {one_pass:.3f} s, {four:.3f} s in a batch of 4"
          f" | {steps} steps {whole:.2f} s = {whole / one_pass:.2f} passes |", flush=True)  # fmt: skip
    note_figure(f"{steps} steps on the CPU", whole / one_pass, "passes", "lower")


def gpu(device: str, steps: int, batches: Sequence[int]) -> None:
    """The sampler, copies included, by arithmetic and batch; then many threads at one batcher."""
    import torch

    from counterfoil.painters.background_batches import ExactPainter, load_torch_model, sample_on_device

    operations, peak = pass_operations(), matrix_peak(torch, device)
    print(f"{torch.cuda.get_device_name() if device == 'cuda' else device}, torch {torch.__version__};"
          f" one pass {operations / 1e9:.1f} GFLOP a picture; peak {peak / 1e12:.1f} TFLOP/s in bf16")  # fmt: skip
    guide, schedule = complexity_guide(GUIDANCE, STRENGTH), ratios(STRENGTH, steps)

    def row(name: str, count: int, work: Callable[[], object]) -> None:
        work()
        speed = count / best_seconds(work, 3)
        print(f"| {name} | {speed:.1f} pictures/s | {speed * steps * operations / peak:.1%} of the peak |", flush=True)
        note_figure(f"{name}, {device}", speed, "pictures/s")

    model = load_torch_model(device)
    for count in batches:
        work = partial(sample_on_device, device, model, scene(count), schedule, guide)
        row(f"sampler, f32, {count} at a time", count, work)
    fast = fast_painter(device)
    row(f"painter, bf16, {FAST_ROWS} at a time", FAST_BATCHES * FAST_ROWS, partial(in_turn, fast, schedule))
    for name, painter, rows in (("f32", ExactPainter(device, model), ROWS), ("bf16", fast, FAST_ROWS)):
        batcher = GpuBatcher(device, painter)
        for threads in (1, rows, 2 * rows):
            row(f"batcher, {name}, {threads} threads", 4 * threads, partial(at_easel, batcher, schedule, threads))


FAST_ROWS, FAST_BATCHES = 64, 8


def fast_painter(device: str) -> Any:
    """The painter of `precision: bf16`."""
    from counterfoil.painters.background_model import read_background_weights, read_weights_file
    from counterfoil.painters.compiled_background import load_fast_painter

    return load_fast_painter(device, read_background_weights(read_weights_file()))


def in_turn(painter: Any, schedule: Sequence[float]) -> None:
    """Batch after batch, one copied while another is painted."""
    given, guides = scene(FAST_ROWS), [Guides(complexity_guide(GUIDANCE, STRENGTH))] * FAST_ROWS
    running: list[Callable[[], object]] = []
    for _ in range(FAST_BATCHES):
        running.append(painter.start([given], schedule, guides))
        if len(running) == painter.depth:
            running.pop(0)()
    for finish in running:
        finish()


def at_easel(batcher: GpuBatcher, schedule: Sequence[float], threads: int) -> None:
    """Four pictures for each thread, as edits ask for them."""
    one, guides = scene(1), Guides(complexity_guide(GUIDANCE, STRENGTH))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: batcher.paint(one, schedule, guides), range(4 * threads)))


def pass_operations() -> float:
    """Floating-point operations of one pass over one picture."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from counterfoil.painters.background_network import BackgroundNetwork

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        BackgroundNetwork()(torch.zeros(1, 7, SIDE, SIDE), torch.zeros(1))
    return float(counter.get_total_flops())


def matrix_peak(torch: Any, device: str) -> float:
    """Operations per second of a large bf16 matrix product on this device."""
    side = 8192 if device == "cuda" else 512
    left, right = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))

    def product() -> None:
        for _ in range(10):
            left @ right
        if device == "cuda":
            torch.cuda.synchronize()

    product()
    return float(10 * 2 * side**3 / best_seconds(product, 3))


def door(device: str, steps: int, photos: int, precision: str = "f32") -> None:
    """Pictures a second of `build`: photos read, objects cut out, holes filled, backgrounds painted, files written."""
    from counterfoil.builder import build_pictures
    from counterfoil.run_config import RunConfig
    from counterfoil.sources.source_loaders import open_source

    settings = {"STEPS": str(steps), "DEVICE": device, "PRECISION": precision}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photos(folder, photos)
        recipe = folder / "recipe.yaml"
        recipe.write_text(functools.reduce(lambda text, each: text.replace(*each), settings.items(), RECIPE))
        source = open_source(folder / "images", folder / "masks")
        for turn in ("first", "second"):  # the first run compiles and records
            config = RunConfig(source=source, models=(), recipe=str(recipe))
            started = time.perf_counter()
            build_pictures(config, folder / turn)
            speed = 3 * photos / (time.perf_counter() - started)
            print(f"| build, {device}, {precision}, {photos} photos, {turn} run | {speed:.2f} pictures/s |", flush=True)
        note_figure(f"build, {device}, {precision}", speed, "pictures/s")


def write_photos(folder: Path, count: int) -> None:
    """Smooth noise with a disc for an object."""
    import cv2

    rows, columns = np.mgrid[:SIDE, :SIDE] - SIDE // 2
    mask = np.where(rows**2 + columns**2 < (SIDE // 5) ** 2, 255, 0).astype(np.uint8)
    for place in range(count):
        noise = np.random.default_rng(place).integers(0, 256, (SIDE // 8, SIDE // 8, 3), np.uint8)
        photo = np.asarray(cv2.resize(noise, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC))
        for kind, picture in (("images", photo), ("masks", mask)):
            path = folder / kind / "disc" / f"{place:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), picture)


def main() -> None:
    """Print one row per way of working."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, ROWS, 64, 128])
    parser.add_argument("--photos", type=int, default=4, help="at the door on the CPU; 32 times as many on a GPU")
    parser.add_argument("--torch", choices=("cuda", "cpu"), default="cuda", help="cpu only tries this script out")
    asked = parser.parse_args()
    cpu(asked.steps)
    found = asked.torch == "cpu" or on_gpu()
    if found:
        gpu(asked.torch, asked.steps, asked.batches)
    try:
        door("cpu", asked.steps, asked.photos)
        if on_gpu():
            for precision in ("f32", "bf16"):
                door("cuda", asked.steps, 32 * asked.photos, precision)
    except ModuleNotFoundError as error:  # a machine without the packages that edits need still has the rest
        print(f"build was left out: {error}")


def on_gpu() -> bool:
    """Whether torch is here and sees a GPU."""
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return bool(torch.cuda.is_available())


if __name__ == "__main__":
    main()
