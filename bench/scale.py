"""What a large run costs: planning, choosing donors, merging, Ray beside threads, and a simulation from these costs.

    python bench/scale.py plan [--photos 50000]         seconds to plan a run, and a photo's pictures with their donors;
                                                        [--classes 1000]
    python bench/scale.py merge [--answers 1000000]     seconds and memory to write tables from parts, 10^4 upwards
    python bench/scale.py growth [--photos 40000]       CPU of each stage a photo and peak of memory, from 2,500 photos
                                                        upwards, in brackets as ratios to the first
    python bench/scale.py ray [--photos 8192]           what Ray adds to pieces of 64 photos, in CPU time
    python bench/scale.py engines [--photos 62]         the same piece of demo photos made here and by a Ray actor, in
                                                        turn; wants a quiet machine
    python bench/scale.py memory [--variants 1000000]   memory of the driver and of a Ray worker while variants are made
    python bench/scale.py costs [--photos 12]           a picture made, prepared and asked; bytes of photos and answers
    python bench/scale.py simulate                      50,000 photos x 25 edits x 100 models on 1, 8 and 64 nodes

Seconds are CPU seconds of this process where nothing else is said, since machines are shared.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from counterfoil.builder import encode_png
from counterfoil.errors import Unusable
from counterfoil.execution import Execution
from counterfoil.models.preprocessing import prepare_input
from counterfoil.pieces import PieceRunner, list_pieces
from counterfoil.ray_engine import RayEngine
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.run_config import RunConfig, RunPlan, prepare
from counterfoil.run_result import Result
from counterfoil.runner import PhotoWork, process_photos
from counterfoil.sources.pixels import decode_picture, hash_pixels
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.merged_tables import PICTURE_COLUMNS, write_merged_tables
from counterfoil.store.parts import PartStore
from counterfoil.store.piece_plan import MOST_PARAMETERS, PiecePlan, read_samples
from counterfoil.store.prediction_tables import PREDICTION_COLUMNS
from counterfoil.store.result_cache import VARIABLE
from counterfoil.types import Picture, Sample
from counterfoil.worker_pool import LocalEngine

MODEL = "python:scale_model:Shades"
RECIPE = "working_size: 64\njudge_fills: false\nedits: [{edit: jpeg}, {edit: exposure}, {edit: grayscale}]\n"
MANY = (
    "working_size: 64\njudge_fills: false\ntool_checks: 0\nedits: [{edit: corruption-gaussian-noise, replicates: 20},"
    " {edit: corruption-shot-noise, replicates: 20}, {edit: jpeg}, {edit: exposure}, {edit: grayscale}]\n"
)
PICTURES_EACH = 44  # of that recipe, the original included
NETWORK = "embedded:efficientnet-lite0"
_MARK = "COUNTERFOIL_SCALE"  # a variable that this program's Ray processes inherit
MODEL_CODE = """
import numpy as np
class Shades:
    labels = tuple(f"class-{n}" for n in range(10))
    def __call__(self, images):
        scores = np.ones((len(images), 10)) * 0.01
        scores[range(len(images)), [int(image.mean()) % 10 for image in images]] = 0.91
        return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
"""


def measure_planning(photos: int, classes: int) -> None:
    """What the process that plans a run of `attributes` does after the photos were listed, and what workers plan."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan_model.py").write_text(MODEL_CODE.replace("class-", "label-").replace("10", str(classes)))
        _share_module(folder)
        source = open_source(folder, None)
        for count in (photos // 4, photos // 2, photos):
            samples = [
                Sample(f"{n % classes}/{n}", f"label-{n % classes}", "", "mask", f"{n:064x}") for n in range(count)
            ]
            began = time.process_time()
            plan = prepare(RunConfig(source=source, models=("python:plan_model:Shades",)), (samples, ()))
            work = PhotoWork(plan)
            many = replace(work.pieces, models={f"m{n}": f"{n}" for n in range(MODELS)})
            parts = sum(1 for _ in many.parts())
            work.pieces.write(folder / "out", plan.samples)
            read_samples(folder / "out")
            pictures = sum(map(work.size_of, work.items))
            planned = time.process_time() - began
            plan.variant_plans.plan(samples[-1])  # the list of donors is made once
            began = time.process_time()
            for sample in samples[:200]:
                plan.variant_plans.plan(sample)
            each = 1000 * (time.process_time() - began) / 200
            print(f"{count:7,} photos of {classes:,} classes, {pictures:,} pictures, {parts:,} parts ({MODELS} models):"
                  f" planned in {planned:.1f} s; a worker plans a photo's pictures in {each:.2f} ms")  # fmt: skip


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
    """A made-up row; ids, hashes and probabilities are as hard to compress as real ones."""
    digest = hashlib.sha256(number.to_bytes(8, "big")).hexdigest()
    share = int(digest[:8], 16) / 2**32
    ids = {"id": digest[:20], "variant_id": digest[:20], "sha256": digest, "sample_id": f"{number // 26}"}
    kinds: dict[str, object] = {
        "text": "word", "int": 0, "unsigned": number, "float": share, "double": share, "bool": True,
    }  # fmt: skip
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


def _config(folder: Path, recipe: str = RECIPE, **changes: object) -> RunConfig:
    (folder / "recipe.yaml").write_text(recipe)
    (folder / "scale_model.py").write_text(MODEL_CODE)
    source = open_source(folder / "images", folder / "masks")
    return RunConfig(source=source, models=(MODEL,), recipe=str(folder / "recipe.yaml"), **changes)  # type: ignore[arg-type]


def measure_growth(photos: int, smallest: int) -> None:
    """Runs of growing size with their reports, each in a process of its own, so that the peaks can be compared."""
    first: dict[str, float] = {}
    count = smallest
    while count <= photos:
        program = f"import scale; scale.run_growing({count})"
        line = subprocess.run(
            [sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # as the command has it
        ).stdout.splitlines()[-1]  # fmt: skip
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


class Timing(NamedTuple):
    """CPU seconds of one piece's work, and of its whole process so far."""

    process: int
    work: float
    whole: float


@dataclass
class TimedWork:
    """Work whose results are its timings."""

    work: Callable[[Any], Any]

    def __call__(self, item: Any) -> Timing:
        """Do the work, whose result is dropped."""
        began = time.thread_time()
        self.work(item)
        return Timing(os.getpid(), time.thread_time() - began, time.process_time())


def measure_ray(photos: int) -> None:
    """What Ray's processes do besides the work: one actor over tiny photos, and over pieces without any work."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tiny_photos(folder, photos)
        _share_module(folder)
        with _start_ray():
            work = PhotoWork(prepare(_config(folder)))
            work.pieces = replace(work.pieces, size=64)
            store = PartStore(folder / "out" / "work" / "parts")
            pieces = list(list_pieces(work, store))
            for words, runner, some in (
                ("tiny photos", PieceRunner(work, store), pieces),
                ("nothing done", _do_nothing, pieces),
                ("a second waited", _wait, pieces[:30]),  # what background threads do meanwhile
            ):
                began, timings = 0.0, []
                for timing in RayEngine(workers=1).map(TimedWork(runner), some):
                    began = began or time.process_time()  # the start of the actor does not count
                    timings.append(timing)
                _print_timings(words, timings, time.process_time() - began)


CHEAP = "judge_fills: false\ntool_checks: 0\nedits: [{edit: jpeg}, {edit: exposure}, {edit: grayscale}]\n"
_ROUNDS, _PIECES = 3, 3  # the pieces of a round, after one that does not count: it loads the network


class EngineTiming(NamedTuple):
    """Seconds of a piece, wall clock and CPU of all processes that take part."""

    wall: float
    cpu: float


def measure_engines(photos: int) -> None:
    """One piece of real photos and a real network, made again and again: by a thread here, and by an actor."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "recipe.yaml").write_text(CHEAP)
        source = open_source("demo:", None)
        config = RunConfig(source=source, models=(NETWORK,), recipe=str(folder / "recipe.yaml"), limit=photos)
        _share_module(folder)
        with _start_ray():
            work = PhotoWork(prepare(config))
            work.pieces = replace(work.pieces, size=64)
            store = PartStore(folder / "out" / "work" / "parts")
            (piece,) = list_pieces(work, store)
            taken: dict[str, list[EngineTiming]] = {"a thread": [], "a Ray actor": []}
            for _ in range(_ROUNDS):
                for words, engine in (("a thread", LocalEngine(1)), ("a Ray actor", RayEngine(workers=1))):
                    taken[words].append(_time_engine(engine, PieceRunner(work, store), [piece] * (1 + _PIECES)))
                    last = taken[words][-1]
                    print(f"{words}: {last.wall:.3f} s a piece, {last.cpu:.3f} s of CPU", flush=True)
        wall, cpu = (
            100 * (np.median(column[1]) / np.median(column[0]) - 1)
            for column in zip(*(np.array(rows).T for rows in taken.values()), strict=True)
        )
        print(f"{photos} photos a piece, medians of {_ROUNDS}: Ray adds {wall:.1f} % of time, {cpu:.1f} % of CPU")


def _time_engine(engine: LocalEngine | RayEngine, runner: PieceRunner[Any], pieces: Sequence[Any]) -> EngineTiming:
    """The mean of the pieces but the first."""
    timings, walls, driver = [], [], []
    for timing in engine.map(TimedWork(runner), pieces):
        timings.append(timing)
        walls.append(time.perf_counter())
        driver.append(time.process_time())
    count = len(timings) - 1
    cpu = driver[-1] - driver[0]
    if timings[0].process != os.getpid():
        cpu += timings[-1].whole - timings[0].whole
    return EngineTiming((walls[-1] - walls[0]) / count, cpu / count)


def _print_timings(words: str, timings: Sequence[Timing], driver: float) -> None:
    """The means of all pieces but the first of the actor that did the most, should it have been started again."""
    process, _ = Counter(timing.process for timing in timings).most_common(1)[0]
    own = [timing for timing in timings if timing.process == process]
    count = len(own) - 1
    worked = sum(timing.work for timing in own[1:]) / count
    beside = (own[-1].whole - own[0].whole) / count - worked
    print(f"{words}: {count} pieces of 64 photos, {1000 * worked:.1f} ms of work each; besides {1000 * beside:.2f} ms"
          f" in the actor and {1000 * driver / (len(timings) - 1):.2f} ms in the driver", flush=True)  # fmt: skip


def _do_nothing(_: Any) -> None:
    return None


def _wait(_: Any) -> None:
    time.sleep(1)


def _share_module(folder: Path) -> None:
    """Let this process and those that it starts import the model from the folder."""
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
    )


@contextmanager
def _start_ray() -> Iterator[None]:
    """A Ray cluster of one core on this machine, of this process alone."""
    os.environ[_MARK] = str(os.getpid())
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  Ray's own spelling; workers give way by default
    import ray

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


def measure_memory(variants: int) -> None:
    """A run on Ray over tiny photos with 44 pictures each; the memory of driver and worker at each tenth of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photos = -(-variants // PICTURES_EACH)
        write_tiny_photos(folder, photos)
        _share_module(folder)
        print(f"{photos:,} photos, {photos * PICTURES_EACH:,} variants", flush=True)
        with _start_ray():
            config = replace(_config(folder, MANY), execution=Execution("ray"), workers=1)
            work = PhotoWork(prepare(config))
            store = PartStore(folder / "out" / "work" / "parts")
            pieces = list(list_pieces(work, store))
            print(f"before: driver {_read_memory(os.getpid()):.0f} MB", flush=True)
            runner = PieceRunner(work, store)
            for done, _ in enumerate(RayEngine(workers=1).map(runner, pieces), start=1):
                if done * 10 // len(pieces) > (done - 1) * 10 // len(pieces):
                    driver, worker = _read_memory(os.getpid()), sum(map(_read_memory, _find_workers()))
                    made = min(done * work.pieces.size, photos) * PICTURES_EACH
                    print(f"{made:9,} variants: driver {driver:.0f} MB, worker {worker:.0f} MB", flush=True)
        began = time.process_time()
        write_merged_tables(folder / "out", work.pieces, store)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"tables: {time.process_time() - began:.0f} s, peak of the driver {peak:.0f} MB")


def _read_memory(process: int) -> float:
    """The resident memory of a process in MB, without what it shares with files and other processes."""
    total, shared = Path(f"/proc/{process}/statm").read_text().split()[1:3]
    return (int(total) - int(shared)) * resource.getpagesize() / 2**20


def _find_workers() -> list[int]:
    """The processes of this program's Ray actors."""
    mark, processes = f"{_MARK}={os.getpid()}".encode(), []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::") and mark in (path.parent / "environ").read_bytes():
                processes.append(int(path.parent.name))
        except OSError:  # ended meanwhile
            continue
    return processes


def measure_costs(photos: int) -> None:
    """CPU seconds of one core of a picture made, prepared and asked, over demo photos with `attributes`.

    Without the doubled pictures of 100 photos, which hardly count among 50,000.
    """
    recipe = load_recipe("attributes").model_copy(update={"tool_checks": 0})
    plan = prepare(RunConfig(source=open_source("demo:", None), models=(NETWORK,), recipe=recipe, limit=photos))
    (model,) = plan.models
    wanted = model.preprocessing
    assert wanted is not None
    sums = np.zeros(4)
    pictures, sizes, stored = 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        for sample in plan.samples:
            ends = [time.process_time()]
            images = _make_pictures(plan, sample)
            ends.append(time.process_time())
            files = [encode_png(Picture(image, image[..., 0])) for image in images]
            ends.append(time.process_time())
            for file in files:
                hash_pixels(decode_picture(file, "a picture"))
            ends.append(time.process_time())
            for image in images:
                prepare_input(image, wanted)
            ends.append(time.process_time())
            model(images)
            ends.append(time.process_time())
            making, _, reading, preparing, both = np.diff(ends)
            sums += (making, reading, preparing, both - preparing)
            pictures, stored = pictures + len(images), stored + sum(map(len, files))
            sizes.append(_encoded_size(images[0]))
            each = 1000 * sums / pictures
            print(f"{len(sizes)} photos, {pictures} pictures: made {each[0]:.1f} ms, read {each[1]:.2f} ms, prepared"
                  f" {each[2]:.2f} ms, asked {each[3]:.2f} ms each", flush=True)  # fmt: skip
        rows = 64 * (EDITS + 1)
        pieces, store = _write_parts(Path(folder), rows)
        parts = [
            (store.folder / f"{pieces.part(0, 0, model)}.parquet").stat().st_size / rows for model in (None, "model")
        ]
    print(f"a photo as JPEG {np.mean(sizes):,.0f} bytes, a picture as PNG {stored / pictures:,.0f} bytes; its row"
          f" in a part {parts[0]:.0f} bytes, an answer {parts[1]:.0f} bytes")  # fmt: skip


def _make_pictures(plan: RunPlan, sample: Sample) -> list[Any]:
    images = []
    for planned in plan.variant_plans.plan(sample).variants:
        try:
            images.append(plan.renderer.make(planned)[1].image)
        except Unusable:
            continue
    return images


def _encoded_size(image: Any) -> int:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=90)
    return len(buffer.getvalue())


# Seconds of one core, and bytes, measured by `costs`; of an H200 by `bench/gpu.py` (docs/benchmarks.md)
MAKE, READ, PREPARE, ASK_CPU = 0.130, 0.0033, 0.0014, 0.0052  # the network is Lite0
ASK_GPU = 1 / 8786  # ViT-B/16 in bf16, fed by a run
BYTES_PHOTO, BYTES_PICTURE, BYTES_ROW, BYTES_ANSWER = 49_000, 227_000, 85, 48
PHOTOS, EDITS, MODELS, CORES = 50_000, 25, 100, 16
SPREAD = 0.3  # pieces are longer or shorter by up to this share


class Stage(NamedTuple):
    """Pieces of equal work: how many, the seconds of each on one worker, and the workers of a node."""

    pieces: int
    seconds: float
    workers: int
    gigabytes: float


def simulate() -> None:
    """List scheduling of the pieces over workers, stage after stage."""
    ranges, pictures = -(-PHOTOS // 64), 64 * (EDITS + 1)
    total = PHOTOS * (EDITS + 1)
    small, large = (-(-MODELS // (MOST_PARAMETERS // size)) for size in (4_700_000, 86_600_000))  # groups
    read = 3 * PHOTOS * BYTES_PHOTO / 1e9  # each photo, and the donors of two of its pictures, from no cache
    parts = total * (BYTES_ROW + MODELS * BYTES_ANSWER) / 1e9
    stored = total * BYTES_PICTURE / 1e9
    on_cpu = MAKE + MODELS / small * (PREPARE / MODELS + ASK_CPU)
    on_gpu = max((MAKE + PREPARE) / CORES, MODELS / large * ASK_GPU)
    shown = max((READ + PREPARE) / CORES, MODELS / large * ASK_GPU)
    for words, stages in {
        f"16 cores, Lite0's size, {small} group: run": [
            Stage(ranges * small, pictures * on_cpu, CORES, small * read + parts)
        ],
        f"16 cores and a GPU, ViT-B, {large} groups: run": [
            Stage(ranges * large, pictures * on_gpu, 1, large * read + parts)
        ],
        f"16 cores and a GPU, ViT-B, {large} groups: build, then evaluate": [
            Stage(ranges, pictures * MAKE, CORES, read + stored),
            Stage(ranges * large, pictures * shown, 1, large * stored + parts),
        ],
    }.items():
        for nodes in (1, 8, 64):
            hours = sum(_schedule(stage, nodes) for stage in stages)
            ideal = sum(stage.pieces * stage.seconds / stage.workers / nodes for stage in stages) / 3600
            moved = sum(stage.gigabytes for stage in stages)
            print(f"{words}, {nodes:2} nodes: {hours:6.2f} h, {100 * ideal / hours:.0f} % of linear, {moved:,.0f} GB")


def _schedule(stage: Stage, nodes: int) -> float:
    """Hours until the last piece ends; each goes to the worker that is free first."""
    lengths = stage.seconds * np.random.default_rng(0).uniform(1 - SPREAD, 1 + SPREAD, stage.pieces)
    ends = [0.0] * (nodes * stage.workers)
    for length in lengths:
        heapq.heappush(ends, heapq.heappop(ends) + length)
    return max(ends) / 3600


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("plan", "merge", "growth", "ray", "engines", "memory", "costs", "simulate"))
    parser.add_argument("--photos", type=int)
    parser.add_argument("--classes", type=int, default=1000, help="of the photos of `plan`")
    parser.add_argument("--smallest", type=int, default=2500, help="the first size of `growth`")
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--variants", type=int, default=1_000_000)
    chosen = parser.parse_args()
    if chosen.what == "plan":
        measure_planning(chosen.photos or 50_000, chosen.classes)
    elif chosen.what == "merge":
        measure_merging(chosen.answers)
    elif chosen.what == "growth":
        measure_growth(chosen.photos or 40_000, chosen.smallest)
    elif chosen.what == "ray":
        measure_ray(chosen.photos or 8192)
    elif chosen.what == "engines":
        measure_engines(chosen.photos or 62)
    elif chosen.what == "memory":
        measure_memory(chosen.variants)
    elif chosen.what == "costs":
        measure_costs(chosen.photos or 12)
    else:
        simulate()


if __name__ == "__main__":
    os.environ[VARIABLE] = "0"  # every turn does all its work, in its worker processes too
    main()
