"""Every benchmark of `make bench`, one after the other, and their figures in one file with the machine.

    python bench/suite.py [--quick] [--photos FOLDER] [--only NAME ...] [--out bench/results.json]

A benchmark that fails is recorded with its status and the others go on; the exit status is then 1. One whose other side
is not installed (bench/requirements.txt) is left out, which is said and recorded. `--quick` takes
few photos and turns: it shows that everything runs, and its figures are rough. `results_comparison.py` compares two
such files.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil import __version__
from counterfoil.machine import describe_machine
from counterfoil.worker_pool import cores
from figures import VARIABLE

HERE = Path(__file__).parent


class Benchmark(NamedTuple):
    """A script with its arguments, and the modules of the other side of its comparison."""

    script: str
    quick: tuple[str, ...] = ()
    takes_photos: bool = False
    rivals: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [name for name in self.rivals if importlib.util.find_spec(name) is None]


BENCHMARKS = (
    Benchmark("run_cost.py", ("--photos", "2", "4", "--repetitions", "1")),
    Benchmark(
        "evaluate.py", ("--repetitions", "1", "--pictures", "64"), takes_photos=True,
        rivals=("efficientnet_lite_pytorch", "torch"),
    ),
    Benchmark(
        "job.py", ("--repetitions", "1", "--limit", "6"), takes_photos=True,
        rivals=("efficientnet_lite_pytorch", "torch"),
    ),
    Benchmark("analyse.py", ("--models", "4", "--repeats", "1"), rivals=("pandas",)),
    Benchmark("edits.py", ("--turns", "2"), rivals=("imagecorruptions", "torch", "torchvision")),
    Benchmark("paint.py", ("--steps", "2", "--photos", "1")),
)  # fmt: skip


def main() -> int:
    """Run the benchmarks and write the file; the exit status is 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few photos and turns")
    parser.add_argument("--photos", help="photos as <label>/<name>.jpg for the benchmarks that take a folder")
    parser.add_argument("--only", nargs="+", choices=[Path(one.script).stem for one in BENCHMARKS])
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    given = parser.parse_args()
    chosen = [one for one in BENCHMARKS if not given.only or Path(one.script).stem in given.only]
    results: dict[str, Any] = {"machine": describe_this_machine(), "quick": given.quick, "benchmarks": {}}
    for benchmark in chosen:
        if benchmark.missing:
            results["benchmarks"][Path(benchmark.script).stem] = {
                "status": None, "missing": benchmark.missing, "figures": [],
            }  # fmt: skip
            continue
        photos = [given.photos] if given.photos and benchmark.takes_photos else []
        results["benchmarks"][Path(benchmark.script).stem] = run_benchmark(
            benchmark.script, [*photos, *(benchmark.quick if given.quick else ())]
        )
        write_results(given.out, results)  # what is done is kept
    write_results(given.out, results)
    for name, result in results["benchmarks"].items():
        if result["status"] is None:
            print(
                f"left out: {name}, which needs {', '.join(result['missing'])}: pip install -r bench/requirements.txt"
            )
    failed = [name for name, result in results["benchmarks"].items() if result["status"]]
    print(f"figures: {given.out}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write the figures and the machine."""
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def describe_this_machine() -> dict[str, Any]:
    """Processor, cores, memory, system, versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "counterfoil": __version__, "python": platform.python_version(), "system": platform.platform(),
        "model": _name_processor(), "cores": cores(), "memory_gb": round(memory / 2**30, 1), **describe_machine(),
    }  # fmt: skip


def _name_processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def run_benchmark(script: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a script beside this file; returns its status, seconds and figures."""
    print(f"== {script} {' '.join(arguments)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as folder:
        figures = Path(folder) / "figures.jsonl"
        before, start = _cpu_of_children(), time.monotonic()
        command = [sys.executable, str(HERE / script), *arguments]
        done = subprocess.run(command, env={**os.environ, VARIABLE: str(figures)}, check=False)
        lines = figures.read_text(encoding="utf-8").splitlines() if figures.is_file() else []
    return {
        "arguments": list(arguments), "status": done.returncode, "seconds": round(time.monotonic() - start, 1),
        "cpu_seconds": round(_cpu_of_children() - before, 1), "figures": [json.loads(line) for line in lines],
    }  # fmt: skip


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
