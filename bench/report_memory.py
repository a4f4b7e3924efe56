"""Peak memory of a report over many models, measured on made-up tables.

    python bench/report_memory.py [--models 100] [--photos 5000] [--keep FOLDER]

A run folder is written with one table of answers per model (original, two controls and 24 edits, 1,000 classes, no
pictures), then `counterfoil report` runs in a process of its own; its CPU seconds and its peak resident size are what
the operating system counted. With `--growth` the same for half as many models, to see what a further model costs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from counterfoil.store.parquet import Column, DictionaryColumn, write_table
from counterfoil.store.prediction_tables import MANIFEST_COLUMNS, PREDICTION_COLUMNS, locate_predictions
from counterfoil.types import Run

CONDITIONS = (
    ("original", "original", "none"), ("control", "control", "none"), ("control", "fill-control", "beside"),
    ("background", "background-swap", "other"), ("background", "background-plain", "gray"),
    ("background", "background-blur", "15/3"), ("background", "background-grayscale", "gray"),
    ("presence", "object-removed", "none"), ("size", "size", "full"), ("size", "size", "0.1"), ("size", "size", "0.08"),
    ("size", "size", "0.05"), ("position", "position", "random"), ("position", "position", "random@0.05"),
    ("direction", "direction", "-45..45"), ("direction", "direction", "-45..45@0.05"),
    ("direction", "flip", "upside-down"), ("direction", "tilt", "40"), ("colour", "object-hue", "random"),
    ("colour", "object-grayscale", "gray"), ("blur", "object-blur", "15/3"), ("texture", "texture", "any"),
    ("occlusion", "occlusion", "0.25"), ("occlusion", "occlusion", "0.5"), ("shape", "silhouette", "black"),
    ("combination", "combine-donor", "background-swap other + size 0.05"),
    ("corruption", "corruption-gaussian-noise", "3"),
)  # fmt: skip
CLASSES = 1_000


def write_run(folder: Path, models: int, photos: int) -> None:
    """The tables of a run; photos differ in difficulty, models in accuracy."""
    rng = np.random.default_rng(0)
    names = [f"model-{place:03d}" for place in range(models)]
    rows = len(CONDITIONS) * photos
    condition, photo = np.tile(np.arange(len(CONDITIONS)), photos), np.repeat(np.arange(photos), len(CONDITIONS))
    words = {
        "id": np.array([f"{place:016x}" for place in range(rows)], object),
        "sample_id": np.array([f"val_{place:08d}" for place in range(photos)], object),
        "label": np.array([f"n{place:08d}" for place in range(CLASSES)], object),
    }
    label = rng.integers(0, CLASSES, photos)[photo]
    columns: dict[str, Column] = {
        "variant_id": DictionaryColumn(words["id"], np.arange(rows)),
        "sample_id": DictionaryColumn(words["sample_id"], photo),
        "label": DictionaryColumn(words["label"], label),
        **{
            name: DictionaryColumn(np.array([row[place] for row in CONDITIONS], object), condition)
            for place, name in enumerate(("attribute", "edit", "level"))
        },
        "replicate": np.zeros(rows),
        "object_share": rng.uniform(5, 40, rows),
    }
    nothing = DictionaryColumn(np.array([""], object), np.zeros(rows, np.intp))
    manifest: dict[str, Column] = {
        name: columns.get(name, nothing if kind == "text" else np.zeros(rows))
        for name, kind in MANIFEST_COLUMNS.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "predictions").mkdir(exist_ok=True)
    write_table(folder / "variants.parquet", MANIFEST_COLUMNS, manifest | {"id": columns["variant_id"]})
    hard, cost = rng.normal(size=photos), rng.uniform(0.0, 1.0, len(CONDITIONS)) * (np.arange(len(CONDITIONS)) > 2)
    for place, path in enumerate(locate_predictions(folder, names).values()):
        skill = 1.6 - 0.008 * place - cost * rng.uniform(0.7, 1.3)
        right = skill[condition] + 0.6 * hard[photo] + rng.normal(size=rows) > 0.6
        first = np.where(right, label, (label + rng.integers(1, 20, rows)) % CLASSES)
        score = rng.uniform(0.3, 0.9, rows).astype(np.float32)
        answers: dict[str, Column] = {
            "outcome": DictionaryColumn(np.array(["scored"], object), np.zeros(rows, np.intp)),
            "correct": right,
            "true_score": np.where(right, score, 0.1),
            "text": nothing,
        }
        for rank in range(5):
            answers[f"rank_{rank + 1}"] = DictionaryColumn(words["label"], (first + rank * 31) % CLASSES)
            answers[f"score_{rank + 1}"] = score / (rank + 1)
        write_table(path, PREDICTION_COLUMNS, {**columns, **answers})
    run = Run(
        command="", images="", masks=None, recipe="made up", recipe_digest="", seed=0, samples=photos,
        models=tuple(names), model_digests={}, preprocessing={},
    )  # fmt: skip
    (folder / "run.json").write_text(json.dumps(asdict(run)), encoding="utf-8")


def measure(run: Path, out: Path) -> tuple[float, float]:
    """CPU seconds and peak resident megabytes of one report, as the operating system counted them."""
    command = [sys.executable, "-m", "counterfoil", "report", str(run), "--out", str(out), "--quiet"]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the report failed with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--photos", type=int, default=5_000)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    print("| models | photos | answers | peak, MB | CPU seconds | report.html, MB |\n|--:|--:|--:|--:|--:|--:|")
    for models in itertools.chain([asked.models // 2] if asked.growth else [], [asked.models]):
        with tempfile.TemporaryDirectory() as temporary:
            folder = asked.keep or Path(temporary)
            write_run(folder / "run", models, asked.photos)
            seconds, peak = measure(folder / "run", folder / "report")
            size = (folder / "report" / "report.html").stat().st_size / 2**20
            answers = models * asked.photos * len(CONDITIONS)
            print(
                f"| {models} | {asked.photos:,} | {answers:,} | {peak:.0f} | {seconds:.0f} | {size:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
