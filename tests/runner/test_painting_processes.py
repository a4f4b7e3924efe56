"""Worker processes that paint through the process which owns the card: torch on the CPU stands in for it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterfoil.builder import build_pictures
from counterfoil.errors import UserError
from counterfoil.execution import Execution
from counterfoil.models.model_protocol import ModelBase
from counterfoil.painters import background_batches
from counterfoil.painters.background_batches import DevicePainter, Finish, GpuBatcher, Guides
from counterfoil.painters.paint_service import CAN_SHARE, PaintClient, PaintService, find_client, serve_forked
from counterfoil.painters.sampler import Scene, ratios
from counterfoil.process_pool import ProcessEngine
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.source_loaders import open_source
from counterfoil.worker_pool import ForkedEngine
from planted import LABELS, TRAINED, Planted, write_photos
from table_files import table_bytes

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not CAN_SHARE, reason="memory without a name is Linux's"),
]
HELPERS = Path(__file__).parents[1] / "helpers"
SECONDS = 300  # for what takes a few on an idle machine
RECIPE = """
working_size: 64
judge_fills: false
edits:
  - {edit: painted-complexity, settings: {steps: 1, device: cuda}, levels: {guidance: [0, 20]}}
  - {edit: painted-removal, settings: {steps: 2, resample: 2, device: cuda}}
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 3)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recipe") / "painted.yaml"
    path.write_text(RECIPE)
    return str(path)


def use_card(monkeypatch: pytest.MonkeyPatch, painter: DevicePainter) -> None:
    batcher = GpuBatcher("cpu", painter)
    monkeypatch.setattr(background_batches, "_load_batcher", lambda device, precision: batcher)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of two pictures."""
    from counterfoil.painters.background_batches import ExactPainter, load_torch_model

    use_card(monkeypatch, ExactPainter("cpu", load_torch_model("cpu"), rows=2))


def config_of(photos: tuple[Path, Path], recipe: str, engine: str, **changes: Any) -> RunConfig:
    settings: dict[str, Any] = {"models": (), "workers": 2, **changes}
    return RunConfig(source=open_source(*photos), recipe=recipe, execution=Execution(engine), **settings)


def files_of(folder: Path) -> dict[str, str]:
    """The hash of every picture and table."""
    pictures = {str(path): hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in list_pictures(folder)}
    return {**pictures, **table_bytes(folder)}


def list_pictures(folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in (folder / "pictures").rglob("*.png")]


def test_processes_write_every_file_that_threads_write(
    card: None, photos: tuple[Path, Path], recipe: str, tmp_path: Path
) -> None:
    for engine in ("threads", "processes"):
        build_pictures(config_of(photos, recipe, engine), tmp_path / engine)
    assert len(list_pictures(tmp_path / "threads")) == 3 * 4
    assert files_of(tmp_path / "processes") == files_of(tmp_path / "threads")


def test_pictures_are_painted_by_the_process_that_owns_the_card_alone(
    card: None, photos: tuple[Path, Path], recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, started = list[int](), ProcessEngine.map

    def count(engine: ProcessEngine, work: Any, items: Any) -> Iterator[Any]:
        counts.append(engine.threads)
        return started(engine, work, items)

    monkeypatch.setattr(ProcessEngine, "map", count)
    build_pictures(config_of(photos, recipe, "processes", workers=3), tmp_path)
    assert counts == [3]  # photos in hand
    assert find_client() is None


def test_run_asks_models_in_the_processes_that_paint_elsewhere(
    card: None, photos: tuple[Path, Path], recipe: str, tmp_path: Path
) -> None:
    for engine in ("threads", "processes"):
        config = config_of(photos, recipe, engine, models=("python:planted:Planted",))
        execute(config, tmp_path / engine)
    assert table_bytes(tmp_path / "processes") == table_bytes(tmp_path / "threads")


class PlantedOnGpu(ModelBase):
    """A classifier that says it is on a GPU, for which processes are forked."""

    name, device, labels, digest, preprocessing = "on a GPU", "cuda", LABELS, "1", TRAINED

    def __call__(self, images: Sequence[Any]) -> Any:
        return Planted()(images)


def test_forked_processes_of_models_on_a_gpu_paint_through_their_parent(
    card: None, photos: tuple[Path, Path], recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forks, forked = list[int](), ForkedEngine.map

    def count(engine: ForkedEngine, work: Any, items: Any) -> Iterator[Any]:
        forks.append(engine.workers)
        return forked(engine, work, items)

    monkeypatch.setattr(ForkedEngine, "map", count)
    for engine in ("threads", "local"):
        execute(config_of(photos, recipe, engine, models=(PlantedOnGpu(),)), tmp_path / engine)
    assert set(forks) == {2}
    assert table_bytes(tmp_path / "local") == table_bytes(tmp_path / "threads")


class BrokenPainter:
    """A card that fails."""

    rows, depth = 2, 1

    def start(self, scenes: Sequence[Scene], schedule: Sequence[float], guides: Sequence[Guides]) -> Finish:
        raise UserError("expected a card that works, this one is on fire")


def test_an_error_of_the_card_is_the_error_of_the_run(
    monkeypatch: pytest.MonkeyPatch, photos: tuple[Path, Path], recipe: str, tmp_path: Path
) -> None:
    use_card(monkeypatch, BrokenPainter())
    for engine in ("threads", "processes"):
        with pytest.raises(UserError, match="this one is on fire"):
            build_pictures(config_of(photos, recipe, engine), tmp_path / engine)


def command(photos: tuple[Path, Path], recipe: str, out: Path) -> list[str]:
    return [
        sys.executable, str(HELPERS / "card_on_cpu.py"), "build", "--images", str(photos[0]), "--masks", str(photos[1]),
        "--recipe", recipe, "--workers", "2", "--engine", "processes", "--out", str(out),
    ]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(HELPERS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **more}


@pytest.fixture
def held(photos: tuple[Path, Path], recipe: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A build whose card stops in the middle, while both worker processes wait for it."""
    mark = tmp_path / "mark"
    build = subprocess.Popen(
        command(photos, recipe, tmp_path / "out"), env=environment(HOLD_AT_BATCH="3", HOLD_MARK=str(mark)),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not mark.exists():
        assert build.poll() is None, build.communicate()[1]
        time.sleep(0.05)
    yield build
    build.kill()
    build.communicate()


def wait_until_gone(processes: Sequence[int]) -> None:
    end = time.monotonic() + SECONDS
    while alive := [number for number in processes if Path(f"/proc/{number}").exists()]:
        assert time.monotonic() < end, f"still there: {alive}"
        time.sleep(0.05)


def test_workers_that_wait_for_the_card_end_with_a_driver_that_is_killed(held: subprocess.Popen[str]) -> None:
    workers = find_workers(held.pid)
    assert len(workers) == 2
    held.kill()
    wait_until_gone(workers)


def find_workers(parent: int) -> list[int]:
    """Those of the processes that a thread of the parent started."""
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(number) for task in tasks for number in task.read_text().split()]


def test_a_worker_that_is_killed_at_the_card_is_one_line_and_the_same_command_goes_on(
    held: subprocess.Popen[str], photos: tuple[Path, Path], recipe: str, tmp_path: Path
) -> None:
    workers = find_workers(held.pid)
    os.kill(workers[0], signal.SIGKILL)
    _, said = held.communicate(timeout=SECONDS)
    assert held.returncode == 2
    assert "one ended by SIGKILL" in said.splitlines()[-1]
    assert "Traceback" not in said
    wait_until_gone(workers)
    for name in ("out", "whole"):
        done = subprocess.run(
            command(photos, recipe, tmp_path / name), env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_a_client_whose_owner_is_gone_says_so() -> None:
    service = PaintService()
    service.close()
    flat = np.zeros((1, 3, 32, 32), np.float32)
    scene = Scene(flat, flat, flat[:, :1], flat)
    with serve_forked(service.address), pytest.raises(UserError, match="the process that paints on the GPU to live"):
        PaintClient(service.address).paint("cuda", "f32", scene, ratios(0.3, 2), guides=None)  # type: ignore[arg-type]
