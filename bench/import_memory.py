"""Peak memory and time of `counterfoil import` and `counterfoil analyse` on a large table of answers.

    python bench/import_memory.py [--photos 46000] [--models 3] [--conditions 4] [--parquet] [--analyse]

Each command runs in a process of its own; its peak resident size is what the operating system counted.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_table(path: Path, photos: int, models: int, conditions: int) -> int:
    """One row per model, photo and condition, in CSV; returns the number of rows."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 1000, photos)
    names = ["original", *(f"condition-{place}" for place in range(1, conditions))]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("model", "sample", "condition", "prediction", "label", "confidence"))
        for model in range(models):
            for place, condition in enumerate(names):
                right = rng.random(photos) < 0.8 - 0.1 * place
                answer = np.where(right, label, (label + 1 + rng.integers(0, 998, photos)) % 1000)
                confidence = rng.uniform(0.2, 1.0, photos)
                writer.writerows(
                    (
                        f"model-{model}",
                        f"ILSVRC2012_val_{p:08d}",
                        condition,
                        answer[p],
                        label[p],
                        f"{confidence[p]:.6f}",
                    )
                    for p in range(photos)
                )
    return photos * models * conditions


def convert_to_parquet(path: Path) -> Path:
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    parquet.write_table(arrow_csv.read_csv(path), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def measure(*arguments: str) -> tuple[float, float]:
    """Seconds and peak resident megabytes of one command."""
    before = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "counterfoil", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"counterfoil {' '.join(arguments)} ended with {process.returncode}"
    return time.perf_counter() - before, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("photos", 46_000), ("models", 3), ("conditions", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--parquet", action="store_true")
    parser.add_argument("--analyse", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, run = Path(folder) / "answers.csv", Path(folder) / "run"
        rows = write_table(table, asked.photos, asked.models, asked.conditions)
        size = table.stat().st_size / 2**20
        if asked.parquet:
            table = convert_to_parquet(table)
        seconds, peak = measure("import", str(table), "--out", str(run))
        print(f"import {table.suffix}: {rows:,} rows, {size:.0f} MB as CSV: {seconds:.0f} s, peak {peak:.0f} MB")
        if asked.analyse:
            seconds, peak = measure("analyse", "run", str(run), "--out", str(Path(folder) / "analysis"))
            print(f"analyse: {seconds:.0f} s, peak {peak:.0f} MB")


if __name__ == "__main__":
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # not on Windows
    main()
