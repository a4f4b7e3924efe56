"""What `counterfoil run` costs in CPU time: its fixed part, each picture, and a million of them by recipe and network.

    python bench/run_cost.py [--photos 4 16] [--recipes attributes bench/twenty.yaml] [--repetitions 3] [--cache empty]

With an `empty` cache nothing is kept between runs: every hole is filled. With `fills` those of an earlier run are
there, and the pictures are edited and the network asked; with `all` the outcomes and answers of the same run are there
too.
Each run is a process of its own over demo photos with one worker; the CPU time is that of the process and its children,
so that neighbours on the machine count less than by the clock. The fixed part and the part of a picture come from the
two numbers of photos. The networks alone are asked about ready tensors. Doubled pictures for tool uncertainty count as
pictures: models answer them too.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterfoil.assets.embedded_networks import NETWORKS
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.models.model_loaders import load_model
from counterfoil.models.preprocessing import prepare_input
from counterfoil.store.parquet import read_table
from counterfoil.store.result_cache import VARIABLE
from figures import note_figure

ASKED = "efficientnet-lite0"
MILLION_HOURS = 1e6 / 3600  # core-hours for a million of what takes one second


class RunCost(NamedTuple):
    """One run: CPU seconds and pictures answered."""

    seconds: float
    pictures: int


class NetworkCost(NamedTuple):
    """CPU seconds of a network for one picture, alone and with the preparation of its input, and its weights."""

    alone: float
    prepared: float
    parameters: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--photos", type=int, nargs=2, default=[4, 16], help="a small and a large number of photos")
    parser.add_argument("--recipes", nargs="+", default=["attributes", str(Path(__file__).with_name("twenty.yaml"))])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--cache", choices=["empty", "fills", "all"], default="empty", help="what earlier runs stored")
    given = parser.parse_args()
    networks = {name: cost_of_network(name) for name in NETWORKS}
    making: dict[str, float] = {}
    for recipe in given.recipes:
        counts, times = sorted(given.photos), given.repetitions
        for count in counts if given.cache != "empty" else ():
            cost_of_run(recipe, count, "all")
        pairs = [[cost_of_run(recipe, count, given.cache) for count in counts] for _ in range(times)]
        making[Path(recipe).stem] = report_recipe(Path(recipe).stem, pairs, networks[ASKED])
    if given.cache != "all":  # else no network is asked
        print_table(making, networks)


def cost_of_run(recipe: str, photos: int, stored: str) -> RunCost:
    """One run over demo photos in a new process, with a cache that is empty, holds its fills, or everything."""
    model = "python:asked_model:Lite0" if stored == "fills" else f"embedded:{ASKED}"
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as out:
        command = [
            sys.executable, "-m", "counterfoil", "run", "--images", "demo:", "--model", model, "--recipe", recipe,
            "--limit", str(photos), "--workers", "1", "--out", out,
        ]  # fmt: skip
        before = _cpu_of_children()
        paths = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "COUNTERFOIL_PROGRESS": "off", "PYTHONPATH": paths}
        environment |= {VARIABLE: "0"} if stored == "empty" else {}
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment)
        seconds = _cpu_of_children() - before
        (table,) = Path(out, "predictions").glob("*.parquet")
        return RunCost(seconds, len(read_table(table)["variant_id"]))


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report_recipe(name: str, pairs: list[list[RunCost]], network: NetworkCost) -> float:
    """Print the parts of a recipe's cost; returns the CPU seconds of making one picture."""
    slopes = [(large.seconds - small.seconds) / (large.pictures - small.pictures) for small, large in pairs]
    each = statistics.median(slopes)
    fixed = statistics.median(small.seconds - each * small.pictures for small, _ in pairs)
    whole = statistics.median(large.seconds / (large.pictures * network.alone) for _, large in pairs)
    print(f"{name}: fixed {fixed:.2f} s of CPU, {1000 * each:.1f} ms a picture with {ASKED}, whole run over"
          f" {pairs[0][1].pictures} pictures {whole:.2f} times the network alone")  # fmt: skip
    note_figure(f"{name}, fixed", fixed, "s", "lower")
    note_figure(f"{name}, a picture", 1000 * each, "ms", "lower")
    note_figure(f"{name}, run / network alone", whole, "x", "lower")
    return each - network.prepared


def cost_of_network(name: str, times: int = 12) -> NetworkCost:
    """A network on one thread: the session on a ready tensor, and the model on a photo."""
    model: Any = load_model(f"embedded:{name}")
    photo = np.random.default_rng(0).integers(0, 256, (384, 512, 3), np.uint8)
    ready = prepare_input(photo, model.preprocessing)[None]
    session = open_onnx_session(model.path)
    tensors = {session.get_inputs()[0].name: ready}
    alone, prepared = (
        _median_seconds(work, times) for work in (lambda: session.run(None, tensors), lambda: model([photo]))
    )
    note_figure(f"{name} alone", 1000 * alone, "ms", "lower")
    return NetworkCost(alone, prepared, model.parameters)


def _median_seconds(work: Any, times: int) -> float:
    work()
    seconds = []
    for _ in range(times):
        start = time.thread_time()
        work()
        seconds.append(time.thread_time() - start)
    return statistics.median(seconds)


def print_table(making: dict[str, float], networks: dict[str, NetworkCost]) -> None:
    """Core-hours of a million pictures, by recipe and network."""
    print("core-hours of a million pictures (the fixed part left out):")
    print("| network | million weights | network alone | " + " | ".join(making) + " |")
    print("|---|--:|--:|" + "--:|" * len(making))
    for name, cost in networks.items():
        hours = [MILLION_HOURS * (each + cost.prepared) for each in making.values()]
        cells = " | ".join(f"{value:.1f}" for value in hours)
        print(f"| {name} | {cost.parameters / 1e6:.1f} | {MILLION_HOURS * cost.alone:.1f} | {cells} |")
        for recipe, value in zip(making, hours, strict=True):
            note_figure(f"a million pictures of {recipe} with {name}", value, "core-hours", "lower")


if __name__ == "__main__":
    main()
