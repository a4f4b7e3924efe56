"""The same bytes from threads, shards and a Ray cluster whose workers and nodes are killed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import counterfoil as cf
from counterfoil.cli import commands
from counterfoil.execution import Execution, WorkShard, parse_shard
from counterfoil.pieces import refuse_missing
from counterfoil.run_config import RunConfig
from counterfoil.run_status import open_plan, read_status
from counterfoil.runner import execute, process_shard
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.parts import PartStore
from planted import write_photos
from table_files import table_bytes

HELPERS = Path(__file__).parents[1] / "helpers"
MODELS = ("python:planted:Planted", "python:planted:BlindOnTheLeft")
RECIPE = (
    "working_size: 96\njudge_fills: false\ntool_checks: 2\nedits: [{edit: background-swap, replicates: 2},"
    " {edit: control}, {edit: direction}, {edit: size, settings: {rate: 0.1}}]\n"
)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 10)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recipe") / "short.yaml"
    path.write_text(RECIPE)
    return str(path)


def config(photos: tuple[Path, Path], recipe: str, **changes: Any) -> RunConfig:
    return RunConfig(source=open_source(*photos), models=MODELS, recipe=recipe, **changes)


@pytest.fixture(scope="module")
def expected(photos: tuple[Path, Path], recipe: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tables and the report of a run by one thread."""
    out = tmp_path_factory.mktemp("expected")
    execute(config(photos, recipe, workers=1), out).report(out)
    return outputs(out)


def outputs(out: Path) -> dict[str, str]:
    """The hashes of the tables and of the report without its folder and command."""
    page = (out / "report.html").read_text().replace(str(out), "FOLDER")
    page = re.sub(r'(aria-label="Command"><pre><code>).*?(</code>)', r"\1\2", page, flags=re.DOTALL)
    return {**table_bytes(out), "report.html": hashlib.sha256(page.encode()).hexdigest()}


def counterfoil(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "counterfoil", *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(HELPERS), **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def test_more_threads_give_the_same_tables_and_report(
    photos: tuple[Path, Path], recipe: str, expected: dict[str, str], tmp_path: Path
) -> None:
    for workers in (2, 4):
        out = tmp_path / str(workers)
        execute(config(photos, recipe, workers=workers), out).report(out)
        assert outputs(out) == expected


def test_three_shards_in_any_order_one_of_them_twice_give_the_same_tables_and_report(
    photos: tuple[Path, Path], recipe: str, expected: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    where = ["--images", photos[0], "--masks", photos[1], "--recipe", recipe, "--out", out]
    models = [word for model in MODELS for word in ("--model", model)]
    early = counterfoil("run", *where, *models, "--shard", "3/3")
    assert early.returncode == 0, early.stderr
    assert "shard 3/3 is done" in early.stdout
    missing = counterfoil("merge", out)
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1
    assert "are missing" in missing.stderr
    assert "`counterfoil run --images" in missing.stderr
    assert "--shard" not in missing.stderr
    for number in (1, 3, 2):
        shard = Execution(shard=WorkShard(number, 3))
        process_shard(config(photos, recipe, execution=shard), out)
    status = CliRunner().invoke(commands, ["status", str(out)])
    assert "parts: 30 of 30 (100 %)" in status.stdout
    done = CliRunner().invoke(commands, ["merge", str(out)])
    assert done.exit_code == 0, done.output
    assert outputs(out) == expected
    assert json.loads(CliRunner().invoke(commands, ["status", str(out), "--json"]).stdout)["finished"]


def test_a_shard_of_another_run_is_refused_in_one_line(photos: tuple[Path, Path], recipe: str, tmp_path: Path) -> None:
    process_shard(config(photos, recipe, execution=Execution(shard=WorkShard(1, 2))), tmp_path)
    with pytest.raises(cf.UserError, match="another seed; choose another --out"):
        process_shard(config(photos, recipe, seed=1, execution=Execution(shard=WorkShard(2, 2))), tmp_path)


def test_a_shard_reads_the_photos_of_the_plan_and_verifies_them(recipe: str, tmp_path: Path) -> None:
    photos = write_photos(tmp_path, 6)
    out = tmp_path / "out"
    process_shard(config(photos, recipe, execution=Execution(shard=WorkShard(1, 2))), out)
    first = sorted(photos[0].rglob("*.png"))[1]
    shutil.copy(sorted(photos[0].rglob("*.png"))[2], first)  # another photo under its name
    with pytest.raises(cf.UserError, match="has changed since"):
        process_shard(config(photos, recipe, execution=Execution(shard=WorkShard(2, 2))), out)
    failures = read_status(out).failures
    assert all("has changed since" in row["reason"] and row["attempts"] == 3 for row in failures)
    with pytest.raises(cf.UserError, match=rf"{len(failures)} pieces failed, the first with .*has changed since"):
        refuse_missing(open_plan(out), PartStore(out / "work" / "parts"), "make them")


@pytest.mark.parametrize(
    ("text", "variables", "said"),
    [
        ("0/3", {}, "from 1/N to N/N"),
        ("4/3", {}, "from 1/N to N/N"),
        ("third", {}, "expected --shard I/N"),
        ("auto", {}, "but none of SLURM_ARRAY_TASK_ID"),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "JOB_COMPLETIONS beside JOB_COMPLETION_INDEX"),
        ("auto", {"AWS_BATCH_JOB_ARRAY_INDEX": "4", "AWS_BATCH_JOB_ARRAY_SIZE": "4"}, "AWS_BATCH_JOB_ARRAY_INDEX=4"),
    ],
)
def test_a_shard_out_of_range_or_unknown_is_refused(text: str, variables: dict[str, str], said: str) -> None:
    with pytest.raises(cf.UserError, match=said):
        parse_shard(text, variables)


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        ({"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "5"}, WorkShard(3, 4)),
        ({"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "8"}, WorkShard(1, 8)),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "3", "AWS_BATCH_JOB_ARRAY_SIZE": "4"}, WorkShard(4, 4)),
    ],
)
def test_a_shard_is_read_from_the_variables_of_schedulers(variables: dict[str, str], shard: WorkShard) -> None:
    assert parse_shard("auto", variables) == shard


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster of a head and two nodes of one core, on this machine."""
    os.environ["RAY_memory_monitor_refresh_ms"] = "0"  # noqa: SIM112  Ray's own spelling
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(HELPERS)  # inherited by the nodes and their workers
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.workers = [cluster.add_node(num_cpus=1, object_store_memory=80_000_000) for _ in range(2)]
    yield cluster
    cluster.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def run_on_ray(photos: tuple[Path, Path], recipe: str, out: Path, cluster: Any) -> None:
    execution = Execution(f"ray:{cluster.address}")
    execute(config(photos, recipe, execution=execution), out).report(out)


def wait_for_parts(out: Path, count: int) -> None:
    while len(list((out / "work" / "parts").glob("[!.]*"))) < count:
        time.sleep(0.05)


def kill_workers() -> int:
    """Kill the processes of Ray's actors on this machine; returns how many."""
    killed = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            name = path.read_bytes().split(b"\0")[0]
        except OSError:
            continue
        if name.startswith(b"ray::RayWorker") and os.getsid(int(path.parent.name)) >= 0:
            os.kill(int(path.parent.name), signal.SIGKILL)
            killed += 1
    return killed


@pytest.mark.ray
def test_ray_gives_the_same_tables_and_report_while_workers_are_killed(
    photos: tuple[Path, Path], recipe: str, expected: dict[str, str], tmp_path: Path, cluster: Any
) -> None:
    killed: list[int] = []

    def kill_twice() -> None:
        for parts in (4, 15):
            wait_for_parts(tmp_path, parts)
            killed.append(kill_workers())

    killer = threading.Thread(target=kill_twice, daemon=True)
    killer.start()
    run_on_ray(photos, recipe, tmp_path, cluster)
    killer.join(timeout=60)
    assert sum(killed) > 0
    assert outputs(tmp_path) == expected


@pytest.mark.ray
def test_ray_gives_the_same_tables_and_report_when_a_node_dies(
    photos: tuple[Path, Path], recipe: str, expected: dict[str, str], tmp_path: Path, cluster: Any
) -> None:
    def kill_node() -> None:
        wait_for_parts(tmp_path, 4)
        cluster.remove_node(cluster.workers.pop(), allow_graceful=False)

    killer = threading.Thread(target=kill_node, daemon=True)
    killer.start()
    run_on_ray(photos, recipe, tmp_path, cluster)
    killer.join(timeout=60)
    assert len(cluster.workers) == 1
    assert outputs(tmp_path) == expected


@pytest.mark.ray
def test_an_unreachable_ray_cluster_is_one_clear_line(photos: tuple[Path, Path], recipe: str, tmp_path: Path) -> None:
    with pytest.raises(cf.UserError, match="nothing answers"):
        execute(config(photos, recipe, execution=Execution("ray:127.0.0.1:9")), tmp_path)


@pytest.mark.ray
def test_a_worker_of_another_version_is_refused() -> None:
    from counterfoil.ray_engine import check_versions

    check_versions([cf.__version__])
    with pytest.raises(cf.UserError, match=r"got 0\.0\.9; install the same"):
        check_versions([cf.__version__, "0.0.9"])
