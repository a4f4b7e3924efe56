"""How near N workers of `counterfoil run` come to N times one: the same run in new processes, its tables compared.

    python bench/parallel.py [FOLDER [MASKS]] [--workers 1 2 4 8 16] [--limit 96] [--recipe attributes] [--warm]

Without a folder the demo photos are taken. Seconds are by the clock, start, tables and report included, so the machine
must be quiet. Nothing is kept between the runs: each fills every hole. With `--warm` a run before them fills a cache
of fills that all of them read. The bytes of every table must be the same for any number of workers, or the command
ends with 1. `--workers` counts may be repeated; the efficiency is that of the fastest run of each.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from counterfoil.assets.cache import cache_folder
from counterfoil.store.parquet import read_table
from counterfoil.store.result_cache import VARIABLE
from counterfoil.worker_pool import cores
from figures import note_figure

TABLES = ("variants.parquet", "drops.csv", "skipped.csv", "masks.csv", "predictions/*.parquet")
MODEL = "embedded:efficientnet-lite0"


class TimedRun(NamedTuple):
    """One run with a number of workers."""

    workers: int
    seconds: float  # by the clock
    cpu: float  # seconds of all its processes
    pictures: int
    tables: str  # hash of all tables


def main() -> int:
    """Measure, print, and say whether the tables are the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", default="demo:", help="photos as <label>/<name>.jpg")
    parser.add_argument("masks", nargs="?", help="a parallel folder of masks")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--limit", type=int, help="photos")
    parser.add_argument("--recipe", default="attributes")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--warm", action="store_true", help="let all runs read fills that one before them made")
    given = parser.parse_args()
    command = ["--images", given.folder, "--model", given.model, "--recipe", given.recipe]
    command += ["--masks", given.masks] if given.masks else []
    command += ["--limit", str(given.limit)] if given.limit else []
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as place:
        environment = {"COUNTERFOIL_PROGRESS": "off", VARIABLE: "0"}
        if given.warm:
            environment |= {"COUNTERFOIL_CACHE": str(_link_cache(Path(place, "cache"))), VARIABLE: "8192"}
            time_run(command, cores(), Path(place), environment)
        runs = []
        for workers in given.workers:
            runs.append(time_run(command, workers, Path(place), environment))
            print_run(runs[-1], runs)
    return 1 if len({run.tables for run in runs}) > 1 else 0


def _link_cache(folder: Path) -> Path:
    """A cache folder with the fetched files of the usual one, and results of its own."""
    folder.mkdir()
    for entry in cache_folder().iterdir():
        if entry.name != "results":
            (folder / entry.name).symlink_to(entry)
    return folder


def time_run(command: list[str], workers: int, place: Path, environment: Mapping[str, str]) -> TimedRun:
    """One run in a new process."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        whole = [sys.executable, "-m", "counterfoil", "run", *command, "--workers", str(workers), "--out", out]
        start, before = time.perf_counter(), _cpu_of_children()
        done = subprocess.run(whole, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=False)
        seconds, cpu = time.perf_counter() - start, _cpu_of_children() - before
        if not Path(out, "drops.csv").is_file():  # a run whose models are not judged ends with a status of its own
            sys.exit(f"the run with {workers} workers ended with {done.returncode}")
        tables = sorted(file for pattern in TABLES for file in Path(out).glob(pattern))
        digest = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in tables)).hexdigest()
        (answers,) = Path(out, "predictions").glob("*.parquet")
        return TimedRun(workers, seconds, cpu, len(read_table(answers)["variant_id"]), digest)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def print_run(run: TimedRun, runs: list[TimedRun]) -> None:
    """Print a run beside the first, and note the fastest of its number of workers."""
    first = min((other for other in runs if other.workers == runs[0].workers), key=lambda other: other.seconds)
    best = min((other for other in runs if other.workers == run.workers), key=lambda other: other.seconds)
    speedup = first.seconds / best.seconds
    efficiency = speedup * first.workers / run.workers
    same = "the same tables" if run.tables == runs[0].tables else "OTHER TABLES"
    print(
        f"{run.workers} workers: {run.seconds:.1f} s, {run.cpu:.1f} s of CPU, {run.pictures} pictures,"
        f" {run.pictures / run.seconds:.1f} a second; {speedup:.2f} times {first.workers}, efficiency {efficiency:.0%};"
        f" {same}", flush=True,
    )  # fmt: skip
    note_figure(f"{run.workers} workers", best.seconds, "s", "lower")
    note_figure(f"{run.workers} workers, efficiency", 100 * efficiency, "%", "higher")


if __name__ == "__main__":
    sys.exit(main())
