"""The same bytes from threads, shards and a Ray cluster whose workers and nodes are killed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import counterfoil as cf
from counterfoil import pieces
from counterfoil.cli import commands
from counterfoil.execution import Execution, WorkShard, parse_shard
from counterfoil.pieces import refuse_missing
from counterfoil.run_config import RunConfig, prepare
from counterfoil.run_status import open_plan, read_status
from counterfoil.runner import PhotoWork, execute, process_photos, process_shard
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.parts import PartStore
from locations import HELPERS, ROOT
from planted import write_photos
from ray_cluster import kill_worker, start_cluster, wait_for_parts
from table_files import output_bytes

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
    return output_bytes(out)


def counterfoil(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "counterfoil", *map(str, arguments)]
    paths = os.pathsep.join(filter(None, [str(HELPERS), os.environ.get("PYTHONPATH")]))
    variables = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def test_more_threads_give_the_same_tables_and_report(
    photos: tuple[Path, Path], recipe: str, expected: dict[str, str], tmp_path: Path
) -> None:
    for workers in (2, 4):
        out = tmp_path / str(workers)
        execute(config(photos, recipe, workers=workers), out).report(out)
        assert output_bytes(out) == expected


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
    assert output_bytes(out) == expected
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
    with pytest.raises(cf.UserError, match=rf"{len(failures)} pieces? failed, the first with .*has changed since"):
        refuse_missing(open_plan(out), PartStore(out / "work" / "parts"), "make them")


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_a_piece_that_fails_three_times_here_is_set_aside_and_the_rest_goes_on(
    photos: tuple[Path, Path], recipe: str, tmp_path: Path, engine: str
) -> None:
    out = tmp_path / "out"
    said = counterfoil(
        "run", "--images", photos[0], "--masks", photos[1], "--recipe", recipe, "--out", out, "--limit", 4,
        "--model", "python:planted:FailsOnAzure", "--engine", engine, "--workers", 2,
    )  # fmt: skip
    assert said.returncode == 2
    assert said.stderr.count("\n") == 1
    assert "all 8 parts of the run, 2 are missing (1 piece failed, the first with" in said.stderr
    assert "azure is too blue" in said.stderr
    assert not (out / "report.html").exists()
    state = read_status(out)
    assert (state.pieces_done, state.pieces) == (3, 4)
    assert [row["attempts"] for row in state.failures] == [3]
    missing = counterfoil("merge", out)
    assert missing.returncode == 2
    assert "azure is too blue" in missing.stderr


def test_a_run_in_which_every_piece_fails_ends_early(recipe: str, tmp_path: Path) -> None:
    photos = write_photos(tmp_path, 6)
    work = PhotoWork(prepare(config(photos, recipe, workers=1)))
    for path in photos[0].rglob("*.png"):
        path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(cf.UserError, match=r"the first 3 failed: .*has changed since"):
        process_photos(work, tmp_path / "out")
    assert len(read_status(tmp_path / "out").failures) == 3


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the file is found in /proc")
def test_a_full_disk_ends_a_run_at_the_first_part_that_it_cannot_take(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = PhotoWork(prepare(config(write_photos(tmp_path, 6), recipe, workers=1)))
    bring, tried = os.fsync, []

    def fill(number: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if path.parent.name == "parts":
            tried.append(path.name.split(".")[1])  # without the random end of a temporary name
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        bring(number)

    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(cf.UserError, match=r"the disk is full while writing .*/parts/"):
        process_photos(work, tmp_path / "out")
    assert tried
    assert len(set(tried)) == len(tried)  # none is made again
    assert not read_status(tmp_path / "out").failures


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
    with start_cluster() as cluster:
        yield cluster


def run_on_ray(photos: tuple[Path, Path], recipe: str, out: Path, cluster: Any) -> None:
    execution = Execution(f"ray:{cluster.address}")
    execute(config(photos, recipe, execution=execution), out).report(out)


@pytest.mark.ray
def test_ray_gives_the_same_tables_and_report_while_workers_are_killed(
    photos: tuple[Path, Path], recipe: str, expected: dict[str, str], tmp_path: Path, cluster: Any
) -> None:
    killed: list[bool] = []

    def kill_again_and_again() -> None:  # by the work that is done, not by the clock: machines differ in speed
        for parts in (4, 10, 16, 22):
            wait_for_parts(tmp_path, parts)
            killed.append(kill_worker())

    killer = threading.Thread(target=kill_again_and_again, daemon=True)
    killer.start()
    run_on_ray(photos, recipe, tmp_path, cluster)
    killer.join(timeout=300)
    assert sum(killed) > 1
    assert output_bytes(tmp_path) == expected


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
    killer.join(timeout=300)
    assert len(cluster.workers) == 1
    assert output_bytes(tmp_path) == expected


@pytest.fixture(scope="module")
def command_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few photos, their masks, and the recipes of `build` and `paint`."""
    folder = tmp_path_factory.mktemp("commands")
    write_photos(folder, 4)
    (folder / "short.yaml").write_text(RECIPE)
    (folder / "classes.json").write_text(json.dumps(["crimson", "emerald", "azure", "violet"]))
    (folder / "scenes.yaml").write_text(
        "paints: backgrounds\nclasses: ../classes.json\nattributes:\n  - attribute: background\n"
        "    templates: {painted-background: 'a photo of {value}'}\n"
        "    values: {crimson: [a beach, a street], azure: [a forest]}\n"
    )
    return folder


def call(*words: str) -> str:
    done = CliRunner().invoke(commands, list(words), standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def run_commands(engines: Sequence[Sequence[str]]) -> dict[str, str]:
    """The hashes of all tables and pictures of `build`, `evaluate`, `mine` and `paint`, in relative folders.

    Each command runs once with each engine's words; after shards what they made is joined.
    """
    photos = ["--images", "../images", "--masks", "../masks"]
    models = [word for name in ("AnswersByBackground", "BlindOnTheLeft") for word in (f"python:planted:{name}",)]
    asked = [word for model in models for word in ("--model", model)]
    chosen = ["--surrogate", models[0], "--target", models[1], "--original", "none"]
    painted = ["--recipe", "../scenes.yaml", "--painter", "python:painted:words", "--batch-size", "2"]
    sharded = len(engines) > 1
    for name, words in {
        "build": ["build", *photos, "--recipe", "../short.yaml", "--out", "space"],
        "evaluate": ["evaluate", "space", *asked, "--out", "answers"],
        "mine": ["mine", "space", *chosen],
        "paint": ["paint", *painted, *photos, "--out", "painted"],
    }.items():
        for engine in engines:
            call(*words, *engine)
        if sharded:
            call(*(["merge", words[-1]] if name in ("build", "evaluate") else words))
    files = [
        path for path in Path().rglob("*") if path.suffix in (".parquet", ".png", ".csv") and "work" not in path.parts
    ]
    files.append(Path("space/mined.json"))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


@pytest.mark.ray
def test_build_evaluate_mine_and_paint_give_the_same_bytes_from_every_engine(
    command_photos: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for name, engines in {
        "local": [["--engine", "local"]],
        "shards": [["--shard", "2/2"], ["--shard", "1/2"], ["--shard", "2/2"]],
        "ray": [["--engine", f"ray:{cluster.address}"]],
    }.items():
        folder = command_photos / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        made[name] = run_commands(engines)
    assert made["shards"] == made["local"]
    assert made["ray"] == made["local"]
    assert len(made["local"]) > 20


@pytest.mark.ray
def test_the_ray_job_makes_the_run_that_it_submits(
    photos: tuple[Path, Path], recipe: str, expected: dict[str, str], cluster: Any, tmp_path: Path
) -> None:
    submit = tmp_path / "ray"  # in place of the job server: runs what is submitted on the cluster
    submit.write_text(
        '#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done; shift 2\n'
        f'RAY_ADDRESS={cluster.address} exec {sys.executable} -m counterfoil "$@" --model {MODELS[1]}\n'
    )
    submit.chmod(0o755)
    paths = os.pathsep.join(filter(None, [str(HELPERS), os.environ.get("PYTHONPATH")]))
    variables = {
        "RAY": str(submit), "RAY_ADDRESS": "http://head:8265", "PHOTOS": str(photos[0]), "MASKS": str(photos[1]),
        "RUN": str(tmp_path / "run"), "MODEL": MODELS[0], "RECIPE": recipe, "PYTHONPATH": paths,
    }  # fmt: skip
    done = subprocess.run(
        ["bash", ROOT / "examples" / "cluster" / "ray_job.sh"], capture_output=True, text=True, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert "report:" in done.stdout, done.stderr
    assert output_bytes(tmp_path / "run") == expected


@pytest.mark.ray
def test_what_is_in_this_process_alone_is_used_here_and_the_line_says_so(
    photos: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    @cf.edit(attribute="weather")
    def dusk(image: Any, mask: Any, rng: Any) -> Any:
        return image // 2

    models = {"azure": lambda images: ["azure" for _ in images]}
    labels = ["crimson", "emerald", "azure", "violet"]
    result = cf.run(photos[0], models, masks=photos[1], edits=[dusk], labels=labels, limit=4, engine="ray:127.0.0.1:9")
    assert len(result.answers.samples) == 4
    assert (
        "azure, the edit 'dusk': cannot be used on other machines, so the work is done in this process" in caplog.text
    )
    with pytest.raises(cf.UserError, match="nothing answers"):
        cf.run(photos[0], MODELS[0], masks=photos[1], edits=["grayscale"], limit=4, engine="ray:127.0.0.1:9")


@pytest.mark.ray
def test_workers_that_write_into_another_folder_are_noticed(
    photos: tuple[Path, Path], recipe: str, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "_SECONDS_TO_APPEAR", 1)
    monkeypatch.setattr(PartStore, "__contains__", lambda *_: False)  # as where the workers' folder is another one
    with pytest.raises(cf.UserError, match="expected every Ray worker to see the folder of the run"):
        run_on_ray(photos, recipe, tmp_path, cluster)


@pytest.mark.ray
def test_a_piece_that_fails_three_times_on_ray_is_set_aside_and_the_rest_goes_on(
    photos: tuple[Path, Path], recipe: str, cluster: Any, tmp_path: Path
) -> None:
    asked = RunConfig(
        source=open_source(*photos), models=("python:planted:FailsOnAzure",), recipe=recipe, limit=4,
        execution=Execution(f"ray:{cluster.address}"),
    )  # fmt: skip
    with pytest.raises(cf.UserError, match=r"all 8 parts of the run, 2 are missing \(1 piece failed.*too blue"):
        execute(asked, tmp_path)
    state = read_status(tmp_path)
    assert (state.pieces_done, state.pieces) == (3, 4)
    (failure,) = state.failures
    assert failure["attempts"] == 3
    assert "azure is too blue" in failure["reason"]


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
