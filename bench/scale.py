"""What a large run costs: planning, choosing donors, merging, Ray beside threads, and a simulation from these costs.

    python bench/scale.py plan [--photos 50000]         seconds to name all pieces, and to choose donors
    python bench/scale.py merge [--answers 1000000]     seconds and memory to write tables from parts, 10^4 upwards
    python bench/scale.py growth [--photos 40000]       CPU of each stage a photo and peak of memory, from 2,500 photos
                                                        upwards, in brackets as ratios to the first
    python bench/scale.py ray [--photos 128]            threads beside Ray actors over the same photos, by turns
    python bench/scale.py simulate                      50,000 photos x 25 edits x 100 models on 1, 8 and 64 nodes

Seconds are CPU seconds of this process where nothing else is said, since machines are shared.
"""

from __future__ import annotations

import argparse
import heapq
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from counterfoil.edits.donors import Donors
from counterfoil.execution import Execution
from counterfoil.run_config import RunConfig, prepare
from counterfoil.run_result import Result
from counterfoil.runner import PhotoWork, execute, plan_pieces, process_photos
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.merged_tables import PICTURE_COLUMNS, write_merged_tables
from counterfoil.store.parts import PartStore
from counterfoil.store.piece_plan import PiecePlan, hash_samples, read_samples
from counterfoil.store.prediction_tables import PREDICTION_COLUMNS
from counterfoil.types import Sample

MODEL = "python:scale_model:Shades"
RECIPE = "working_size: 64\njudge_fills: false\nedits: [{edit: jpeg}, {edit: exposure}, {edit: grayscale}]\n"
_MODEL_CODE = """
import numpy as np
class Shades:
    labels = tuple(f"class-{n}" for n in range(10))
    def __call__(self, images):
        scores = np.ones((len(images), 10)) * 0.01
        scores[range(len(images)), [int(image.mean()) % 10 for image in images]] = 0.91
        return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
"""


def measure_planning(photos: int) -> None:
    for count in (photos // 4, photos // 2, photos):
        samples = [Sample(f"{n % 1000}/{n}", f"label-{n % 1000}", "", "", f"{n:064x}") for n in range(count)]
        began = time.process_time()
        digest = hash_samples(samples)
        plan = PiecePlan(
            command="run", digest=digest, items=count, size=64, models={f"m{n}": f"{n}" for n in range(100)}
        )
        parts = sum(1 for _ in plan.parts())
        named = time.process_time() - began
        with tempfile.TemporaryDirectory() as folder:
            plan.write(Path(folder), samples)
            read_samples(Path(folder))
        written = time.process_time() - began - named
        donors = Donors(samples)
        began = time.process_time()
        for sample in samples[:200]:
            donors.choose(sample, "other", hash(sample.id) & 0xFFFF)
        donor = (time.process_time() - began) / 200
        print(f"{count:7,} photos of 1,000 classes, {parts:9,} parts: named in {named:5.1f} s, plan written and read in"
              f" {written:4.1f} s; a donor {1000 * donor:.2f} ms")  # fmt: skip


def measure_merging(answers: int) -> None:
    count = 10_000
    while count <= answers:
        with tempfile.TemporaryDirectory() as folder:
            plan, store = _write_parts(Path(folder), count)
            began = time.process_time()
            write_merged_tables(Path(folder), plan, store)
            seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{count:9,} answers: {seconds:6.2f} s, {1e6 * seconds / count:5.2f} us each, peak {peak:,.0f} MB")
        count *= 10


def _write_parts(folder: Path, answers: int) -> tuple[PiecePlan, PartStore]:
    per_part = 64 * 26
    size, pieces = 64, -(-answers // per_part)
    plan = PiecePlan(
        command="run", digest="d", items=pieces * size, size=size, models={"model": "i"}, groups=(("model",),)
    )
    store = PartStore(folder / "work" / "parts")
    machine = {"processor": "", "features": "", "runtimes": ""}
    about = {"machine": machine, "seconds": 1.0, "ended": 0.0, "start": 0, "stop": size, "device": "cpu"}
    for start, _ in plan.ranges():
        rows = [_row(PICTURE_COLUMNS, start * 26 + n) for n in range(per_part)]
        store.write(plan.part(start, 0), PICTURE_COLUMNS, rows, {**about, "skipped": [], "masks": []})
        rows = [_row(PREDICTION_COLUMNS, start * 26 + n) for n in range(per_part)]
        store.write(plan.part(start, 0, "model"), PREDICTION_COLUMNS, rows, {**about, "errors": 0})
    return plan, store


def _row(columns: Mapping[str, str], number: int) -> list[object]:
    ids = {
        "id": f"{number:020x}",
        "variant_id": f"{number:020x}",
        "sha256": f"{number:064x}",
        "sample_id": f"{number // 26}",
    }
    kinds: dict[str, object] = {"text": "word", "int": 0, "unsigned": number, "float": 0.5, "double": 0.5, "bool": True}
    return [ids.get(name, kinds[kind]) for name, kind in columns.items()]


def write_tiny_photos(folder: Path, count: int) -> None:
    """Photos of 48 x 48 pixels with a square in the middle, in ten classes."""
    rng = np.random.default_rng(0)
    mask = np.zeros((48, 48), np.uint8)
    mask[16:32, 16:32] = 255
    for number in range(count):
        for kind in ("images", "masks"):
            (folder / kind / f"class-{number % 10}").mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (48, 48, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"class-{number % 10}" / f"{number:06}.png")
        Image.fromarray(mask).save(folder / "masks" / f"class-{number % 10}" / f"{number:06}.png")


def _config(folder: Path, **changes: object) -> RunConfig:
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "scale_model.py").write_text(_MODEL_CODE)
    source = open_source(folder / "images", folder / "masks")
    return RunConfig(source=source, models=(MODEL,), recipe=str(folder / "recipe.yaml"), **changes)  # type: ignore[arg-type]


def measure_growth(photos: int, smallest: int) -> None:
    """Runs of growing size with their reports, each in a process of its own, so that the peaks can be compared."""
    first: dict[str, float] = {}
    count = smallest
    while count <= photos:
        program = f"import scale; scale.run_growing({count})"
        line = subprocess.run(
            [sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        ).stdout.splitlines()[-1]
        figures: dict[str, float] = json.loads(line)
        first = first or figures
        factor = count / smallest
        words = [
            f"{name} {1000 * seconds / count:.2f} ms ({seconds / first[name] / factor:.2f})"
            for name, seconds in figures.items()
            if name != "peak"
        ]
        peak = f"peak {figures['peak']:,.0f} MB ({figures['peak'] / first['peak']:.2f})"
        print(f"{count:6,} photos: {', '.join(words)}, {peak}", flush=True)
        count *= 2


def run_growing(count: int) -> None:
    """One run over tiny photos; prints the CPU seconds of its stages and the peak of memory as JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tiny_photos(folder, count)
        sys.path.insert(0, name)
        ends = [time.process_time()]
        plan = prepare(_config(folder, workers=1))
        ends.append(time.process_time())
        merged = process_photos(PhotoWork(plan), folder / "out")
        ends.append(time.process_time())
        Result(plan, folder / "out", merged.skipped).report(folder / "out")
        ends.append(time.process_time())
    seconds = dict(zip(("listing", "pictures and tables", "report"), np.diff(ends).tolist(), strict=True))
    print(json.dumps({**seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def measure_ray(photos: int) -> None:
    import os

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tiny_photos(folder, photos)
        sys.path.insert(0, name)
        os.environ["PYTHONPATH"] = name
        import ray

        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        for turn in range(3):
            seconds = {}
            for engine in ("local", "ray"):
                out = folder / f"{engine}-{turn}"
                plan = plan_pieces(prepare(_config(folder)))
                began = time.monotonic()
                execute(_config(folder, workers=1, execution=Execution(engine)), out)
                seconds[engine] = time.monotonic() - began
                shutil.rmtree(out)
            extra = seconds["ray"] - seconds["local"]
            print(f"turn {turn}: {photos} photos in pieces of {plan.size}, wall: threads {seconds['local']:.1f} s,"
                  f" Ray {seconds['ray']:.1f} s, {1000 * extra / photos:+.1f} ms a photo")  # fmt: skip
        ray.shutdown()


# Assumed costs of one picture or answer in seconds of one core; of the order seen in runs of `attributes`
MAKE, PREPARE, ASK_CPU = 0.0080, 0.0019, 0.0090  # a picture made, prepared once, asked of a network of Lite0's size
ASK_GPU = 1 / 8700  # an answer of a ViT-B/16 on an H200 that is fed well
PHOTOS, EDITS, MODELS, GROUPS = 50_000, 25, 100, 13
BYTES_PHOTO, BYTES_ANSWER = 120_000, 34


def simulate() -> None:
    """List scheduling of the pieces over workers; photos are read once per group, parts written once."""
    ranges = -(-PHOTOS // 64)
    per_group = MODELS / GROUPS
    pictures = 64 * (EDITS + 1)
    for kind, cores in (("16 cores", 16), ("16 cores and a GPU", 16)):
        for nodes in (1, 8, 64):
            if "GPU" in kind:
                on_cpu = pictures * (MAKE + PREPARE) / cores
                piece, workers = max(on_cpu, pictures * per_group * ASK_GPU), nodes
            else:
                piece, workers = pictures * (MAKE + PREPARE + per_group * ASK_CPU), nodes * cores
            rng = np.random.default_rng(0)
            ends = [0.0] * workers
            for length in piece * rng.uniform(0.7, 1.3, ranges * GROUPS):
                heapq.heappush(ends, heapq.heappop(ends) + length)
            hours, ideal = max(ends) / 3600, piece * ranges * GROUPS / workers / 3600
            moved = (PHOTOS * GROUPS * BYTES_PHOTO * 2 + PHOTOS * EDITS * MODELS * BYTES_ANSWER) / 1e9
            print(f"{nodes:3} nodes of {kind}: {hours:8.2f} h, {100 * ideal / hours:.0f} % of linear, {moved:,.0f} GB")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("plan", "merge", "growth", "ray", "simulate"))
    parser.add_argument("--photos", type=int)
    parser.add_argument("--smallest", type=int, default=2500, help="the first size of `growth`")
    parser.add_argument("--answers", type=int, default=1_000_000)
    chosen = parser.parse_args()
    if chosen.what == "plan":
        measure_planning(chosen.photos or 50_000)
    elif chosen.what == "merge":
        measure_merging(chosen.answers)
    elif chosen.what == "growth":
        measure_growth(chosen.photos or 40_000, chosen.smallest)
    elif chosen.what == "ray":
        measure_ray(chosen.photos or 128)
    else:
        simulate()


if __name__ == "__main__":
    main()
