"""Worker processes: the same bytes as threads, nothing left behind, and one clear line where one dies."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from pickle import PicklingError
from typing import Any

import pytest

import counterfoil as cf
from counterfoil.errors import UserError
from counterfoil.execution import Execution
from counterfoil.models.model_loaders import load_model
from counterfoil.pieces import PROCESSES_FROM, fit_memory
from counterfoil.process_pool import ProcessEngine, pack_work
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.source_loaders import open_source
from counterfoil.study.thumbnails import ThumbnailCandidates
from counterfoil.worker_pool import ForkedEngine, find_memory
from counterfoil.worker_process import PortableWork, Send
from planted import HALT_AT_PARTS, count_parts, write_photos
from table_files import table_bytes

HELPERS = Path(__file__).parents[1] / "helpers"
MODELS = ("python:planted:Planted", "python:planted:BlindOnTheLeft")
RECIPE = "working_size: 96\njudge_fills: false\ntool_checks: 2\nedits: [{edit: background-swap}, {edit: direction}]\n"
SECONDS = 300  # for what takes less than one on an idle machine


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 6)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recipe") / "short.yaml"
    path.write_text(RECIPE)
    return str(path)


def run_with(photos: tuple[Path, Path], recipe: str, out: Path, engine: str, **changes: Any) -> cf.Result:
    settings: dict[str, Any] = {"models": MODELS, "workers": 2, **changes}
    source = open_source(*photos)
    return execute(RunConfig(source=source, recipe=recipe, execution=Execution(engine), **settings), out)


def outputs(out: Path) -> dict[str, str]:
    page = re.sub(r"<pre><code>.*?</code>", "", (out / "report.html").read_text().replace(str(out), ""), flags=re.S)
    return {**table_bytes(out), "report.html": hashlib.sha256(page.encode()).hexdigest()}


def command(photos: tuple[Path, Path], recipe: str, out: Path, model: str = "Planted") -> list[str]:
    return [
        sys.executable, "-m", "counterfoil", "run", "--images", str(photos[0]), "--masks", str(photos[1]),
        "--recipe", recipe, "--model", f"python:planted:{model}", "--workers", "2", "--engine", "processes",
        "--out", str(out),
    ]  # fmt: skip


@pytest.fixture
def halted(photos: tuple[Path, Path], recipe: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run by two worker processes that stops in the middle."""
    parts = tmp_path / "out" / "work" / "parts"
    environment = {**os.environ, "PYTHONPATH": _path(), "HALT_AT_FOLDER": str(parts)}
    run = subprocess.Popen(
        command(photos, recipe, tmp_path / "out", "Halting"), env=environment, stderr=subprocess.PIPE, text=True,
        preexec_fn=_take_signals,
    )  # fmt: skip
    while count_parts(parts) < HALT_AT_PARTS:
        assert run.poll() is None, run.communicate()[1]
        time.sleep(0.05)
    yield run
    run.kill()
    run.communicate()


def _take_signals() -> None:
    """As in the foreground of a terminal: a shell in the background makes its children ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _path() -> str:
    return os.pathsep.join([str(HELPERS), *filter(None, [os.environ.get("PYTHONPATH")])])


def children(parent: int) -> list[int]:
    """The worker processes of a process."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


def wait_until_gone(processes: list[int]) -> None:
    end = time.monotonic() + SECONDS
    while alive := [number for number in processes if Path(f"/proc/{number}").exists()]:
        assert time.monotonic() < end, f"still there: {alive}"
        time.sleep(0.05)


def test_processes_give_the_same_tables_and_report_as_threads(
    photos: tuple[Path, Path], recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run_with(photos, recipe, tmp_path / "threads", "threads")
    expected.report(tmp_path / "threads")
    merged: list[int] = []
    merge = ThumbnailCandidates.merge

    def count(candidates: ThumbnailCandidates, rows: Any) -> None:
        merged.append(len(rows))
        merge(candidates, rows)

    monkeypatch.setattr(ThumbnailCandidates, "merge", count)
    run_with(photos, recipe, tmp_path / "processes", "processes").report(tmp_path / "processes")
    assert sum(merged) > 0  # thumbnails came back, and are not made again
    assert outputs(tmp_path / "processes") == outputs(tmp_path / "threads")


def test_evaluate_in_processes_gives_the_same_tables(photos: tuple[Path, Path], recipe: str, tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "counterfoil", "build", "--images", str(photos[0]), "--masks", str(photos[1]),
         "--recipe", recipe, "--out", str(tmp_path / "pictures"), "--engine", "processes", "--workers", "2"],
        env={**os.environ, "PYTHONPATH": _path()}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    for engine in ("threads", "processes"):
        done = subprocess.run(
            [sys.executable, "-m", "counterfoil", "evaluate", str(tmp_path / "pictures"), "--model",
             "python:planted:Planted", "--engine", engine, "--out", str(tmp_path / engine)],
            env={**os.environ, "PYTHONPATH": _path()}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert table_bytes(tmp_path / "threads") == table_bytes(tmp_path / "processes")


def test_no_process_stays_behind_a_run_that_was_killed(halted: subprocess.Popen[str]) -> None:
    workers = children(halted.pid)
    assert len(workers) == 2
    halted.kill()
    wait_until_gone(workers)


def test_ctrl_c_ends_the_run_and_its_processes_with_one_line(halted: subprocess.Popen[str]) -> None:
    workers = children(halted.pid)
    for number in (*workers, halted.pid):  # a terminal sends it to all of them
        os.kill(number, signal.SIGINT)
    _, said = halted.communicate(timeout=SECONDS)
    assert halted.returncode == 130
    assert said.splitlines()[-1].startswith("counterfoil: stopped; what is finished is kept")
    assert "Traceback" not in said
    wait_until_gone(workers)


def test_a_worker_that_dies_is_one_line_and_the_same_command_goes_on(
    halted: subprocess.Popen[str], photos: tuple[Path, Path], recipe: str, tmp_path: Path
) -> None:
    os.kill(children(halted.pid)[0], signal.SIGKILL)
    _, said = halted.communicate(timeout=SECONDS)
    assert halted.returncode == 2
    assert "one ended by SIGKILL" in said.splitlines()[-1]
    assert "Traceback" not in said
    environment = {**os.environ, "PYTHONPATH": _path()}
    again = command(photos, recipe, tmp_path / "out", "Halting")
    assert subprocess.run(again, env=environment, capture_output=True, check=False).returncode == 0
    run_with(photos, recipe, tmp_path / "whole", "threads", models=("python:planted:Halting",)).report(
        tmp_path / "whole"
    )
    assert table_bytes(tmp_path / "out") == table_bytes(tmp_path / "whole")


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on Linux and macOS")
def test_a_forked_process_that_dies_is_one_line() -> None:
    with pytest.raises(UserError, match="expected every worker process to live, one ended; what is finished is kept"):
        list(ForkedEngine(2).map(die, range(2)))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the processes are found in /proc")
def test_forked_processes_end_with_a_parent_that_is_killed() -> None:
    script = (
        "import os, time\n"
        "from counterfoil.worker_pool import ForkedEngine\n"
        "def work(number):\n"
        "    os.write(1, f'{os.getpid()}\\n'.encode())  # whole, which print is not where output is unbuffered\n"
        "    time.sleep(3600)\n"
        "list(ForkedEngine(2).map(work, range(2)))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.kill()
    wait_until_gone(workers)
    parent.communicate()


class Meeting(PortableWork[int, int]):
    """Goes on when three items of its process are in hand."""

    def connect(self, send: Send, workers: int) -> None:
        self.barrier = threading.Barrier(3, timeout=SECONDS)

    def __call__(self, item: int) -> int:
        self.barrier.wait()
        return item


class Doubling(PortableWork[int, int]):
    """Doubles numbers; fails on one of them."""

    def __init__(self, fails_on: int = -1) -> None:
        self.fails_on = fails_on
        self.send: Send | None = None

    def connect(self, send: Send, workers: int) -> None:
        self.send = send

    def __call__(self, item: int) -> int:
        if item == self.fails_on:
            raise UserError(f"expected another number than {item}")
        assert self.send is not None
        self.send(item)
        logging.getLogger("counterfoil.tests").warning("number %d", item)
        print("printed by the work")  # must not end up between the messages
        return 2 * item


def test_notes_and_log_records_reach_the_parent_with_the_results(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)  # where the work is defined
    monkeypatch.setattr(Doubling, "__module__", "test_processes")
    monkeypatch.setitem(sys.modules, "test_processes", sys.modules[__name__])
    notes: list[int] = []
    assert sorted(ProcessEngine(2, notes.append).map(Doubling(), range(5))) == [0, 2, 4, 6, 8]
    assert sorted(notes) == [0, 1, 2, 3, 4]
    assert {"number 3", "number 4"} <= {record.getMessage() for record in caplog.records}
    with pytest.raises(UserError, match="expected another number than 3"):
        list(ProcessEngine(2, notes.append).map(Doubling(3), range(5)))
    assert list(ProcessEngine(2, notes.append).map(Doubling(), [])) == []


def test_several_threads_of_a_process_have_items_in_hand_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(Meeting, "__module__", "test_processes")
    monkeypatch.setitem(sys.modules, "test_processes", sys.modules[__name__])
    engine = ProcessEngine(2, lambda note: None, threads=3)
    assert sorted(engine.map(Meeting(), range(12))) == list(range(12))  # six at once, three in each process
    assert sorted(engine.map(Doubling(), range(1))) == [0]


class Odd(PortableWork[object, object]):
    """Work that ends the process, gives what cannot be pickled, or takes what cannot be made in another process."""

    def __call__(self, item: object) -> object:
        if item == "exit":
            sys.exit(0)
        return (lambda: None) if item == "lambda" else 0


class OnlyHere:
    """Can be pickled, and made in no process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("item", "kind", "words"),
    [
        ("exit", UserError, r"code that was called ended the command by sys.exit\(0\) \(test_processes.py, line \d+\)"),
        ("lambda", AttributeError, "Can't pickle local object"),
        (lambda: None, (AttributeError, PicklingError), "(?i)can't pickle"),
        (OnlyHere(), ValueError, "no number"),
    ],
    ids=["exit", "result", "item", "item in the process"],
)
def test_what_cannot_travel_or_ends_a_process_is_raised_and_never_waited_for(
    monkeypatch: pytest.MonkeyPatch, threads: int, item: object, kind: type[Exception], words: str
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    for thing in (Odd, OnlyHere):
        monkeypatch.setattr(thing, "__module__", "test_processes")
    monkeypatch.setitem(sys.modules, "test_processes", sys.modules[__name__])
    with pytest.raises(kind, match=words):
        list(ProcessEngine(1, lambda note: None, threads=threads).map(Odd(), [1, item, 2]))


def test_what_the_program_itself_defines_does_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doubling, "__module__", "__main__")
    with pytest.raises(UserError, match="Doubling is defined in the program itself"):
        pack_work(Doubling())


def test_a_model_given_as_an_object_is_asked_by_threads_and_the_log_says_so(
    photos: tuple[Path, Path], recipe: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_with(photos, recipe, tmp_path, "processes", models=(load_model("python:planted:Planted"),))
    assert any("cannot be used in other processes" in record.getMessage() for record in caplog.records)


def test_a_script_without_a_main_guard_may_use_processes(
    photos: tuple[Path, Path], recipe: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import counterfoil as cf\n"
        f"result = cf.run({str(photos[0])!r}, 'python:planted:Planted', masks={str(photos[1])!r}, recipe={recipe!r},"
        f" workers={PROCESSES_FROM}, out={str(tmp_path / 'out')!r})\n"
        "print(len(result.drops))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": _path()}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1  # the program ran once


@pytest.mark.parametrize(("memory", "fitting"), [(64, 16), (9, 4), (3, 1), (1, 1), (None, 4)])
def test_as_many_processes_are_started_as_the_memory_holds(
    memory: int | None, fitting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterfoil.pieces.find_memory", lambda: None if memory is None else memory * 2**30)
    assert fit_memory(16) == fitting


def test_the_memory_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("counterfoil.worker_pool._GROUP_LIMIT", limit)
    whole = find_memory()
    assert whole is not None
    for words, expected in (("max", whole), (str(2**30), 2**30), (str(2**60), whole)):
        limit.write_text(words + "\n")
        assert find_memory() == expected


@pytest.mark.parametrize("engine", ["local", "threads", "processes", "ray", "ray:head:6379"])
def test_the_engines_are_known_by_name(engine: str) -> None:
    assert Execution(engine).engine == engine


def test_another_engine_is_refused_with_the_names() -> None:
    with pytest.raises(UserError, match="expected --engine local, threads, processes, ray or ray:ADDRESS, got 'fork'"):
        Execution("fork")
