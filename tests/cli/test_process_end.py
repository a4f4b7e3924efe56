"""How commands end when nobody reads their output, a device is full, or a tracker refuses: one line, nothing lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import counterfoil
from counterfoil.errors import UserError
from counterfoil.models.model_options import read_description
from counterfoil.report.integrations import TRACKERS, log_to_tracker
from locations import HELPERS
from planted import write_photos

COMMAND = [sys.executable, "-c", "from counterfoil.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HELPERS)}
RECIPE = "about: One edit.\njudge_fills: false\nedits:\n  - edit: control\n  - edit: background-blur\n"


def arguments(tmp_path: Path) -> list[str]:
    images, masks = write_photos(tmp_path, 4)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    return [
        *COMMAND, "run", "--images", str(images), "--masks", str(masks), "--model", "python:planted:honest",
        "--recipe", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out"),
    ]  # fmt: skip


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # nobody reads, from the first line on
    done = subprocess.run(
        arguments(tmp_path), stdout=writing, stderr=subprocess.PIPE, text=True, check=False, env=ENVIRONMENT
    )
    os.close(writing)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert (tmp_path / "out" / "report.html").is_file()


def test_both_streams_may_lose_their_reader(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(arguments(tmp_path), stdout=writing, stderr=writing, check=False, env=ENVIRONMENT)
    os.close(writing)
    assert done.returncode == 0
    assert (tmp_path / "out" / "report.html").is_file()


def test_output_to_a_full_device_is_one_line_and_the_run_is_whole(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            arguments(tmp_path), stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=ENVIRONMENT
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "counterfoil: the output cannot be written: No space left on device; files are complete"
    )
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"labels": "imagenet1k", "mean": [NaN, 1, 1]}', "mean.0"),
        ('{"labels": "imagenet1k", "std": [1, Infinity, 1]}', "std.1"),
        ('{"labels": "imagenet1k", "std": [0, 1, 1]}', "std.0"),
        ('{"labels": "imagenet1k", "size": [0, 224]}', "size.0"),
        ('{"labels": "imagenet1k", "resize": 100000000}', "resize"),
    ],
)
def test_numbers_that_no_network_is_fed_with_are_refused_at_the_door(content: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"'{place}': input should be"):
        read_description(tmp_path / "net.onnx", content)


def test_json_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text("[" * 200_000)
    with pytest.raises(UserError, match="expected JSON"):
        read_description(tmp_path / "net.onnx", None)


def test_a_tracker_that_refuses_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(content: object, report: Path) -> None:
        raise ConnectionError("429: quota exceeded")

    monkeypatch.setitem(TRACKERS, "mlflow", refuse)
    with pytest.raises(UserError, match="expected mlflow to take the results, but it refuses: ConnectionError: 429"):
        log_to_tracker("mlflow", None, tmp_path)  # type: ignore[arg-type]


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_while_the_report_is_written_is_one_line_and_the_old_report_stays(tmp_path: Path) -> None:
    rows = [f"m,{photo},{kind},{int(kind != 'fog')}" for photo in range(12) for kind in ("original", "fog")]
    (tmp_path / "answers.csv").write_text("\n".join(["model,sample,condition,correct", *rows]))
    assert counterfoil("import", tmp_path / "answers.csv", "--out", tmp_path / "run").returncode == 0
    command = ("report", tmp_path / "run", "--out", tmp_path / "page")
    assert counterfoil(*command).returncode == 0
    page = (tmp_path / "page" / "report.html").read_bytes()
    with small_files(len(page) // 2):
        done = counterfoil(*command)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the disk is full" in done.stderr
    assert (tmp_path / "page" / "report.html").read_bytes() == page  # whole, as it was
    assert not list((tmp_path / "page").glob(".report*"))
    assert counterfoil(*command).returncode == 0


def test_a_command_that_is_over_keeps_its_status_whatever_the_teardown_would_do(tmp_path: Path) -> None:
    script = tmp_path / "teardown.py"
    script.write_text(
        "import atexit, os, sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "class Crash:\n"
        "    def __del__(self) -> None:\n"
        "        os.abort()\n"
        "crash, pool = Crash(), ThreadPoolExecutor(1)\n"
        "pool.submit(len, '').result()\n"
        "atexit.register(print, 'exit functions are called')\n"
        "sys.argv = ['counterfoil', *sys.argv[1:]]\n"
        "from counterfoil.__main__ import main\n"
        "main()\n"
    )
    for arguments, status in ((["version"], 0), (["report", str(tmp_path / "absent")], 2)):
        done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (status, "exit functions are called")


ENDS = """
import sys
from planted import Planted
class Ends(Planted):
    def __call__(self, images): sys.exit(0)
def at_once(): sys.exit("bye")
"""


@pytest.mark.parametrize("factory", ["Ends", "at_once"])
def test_a_model_that_calls_exit_does_not_end_the_run_with_success(
    factory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ending_model.py").write_text(ENDS)
    monkeypatch.syspath_prepend(tmp_path)
    model = ["--model", f"python:ending_model:{factory}", "--out", tmp_path / "other"]
    done = counterfoil(*arguments(tmp_path)[len(COMMAND) :], *model)
    assert done.returncode == 2
    assert "SystemExit: " in done.stderr
    assert "ending_model.py, line" in done.stderr


def test_an_edit_or_source_that_calls_exit_is_one_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(self: object) -> tuple[list[object], list[object]]:
        sys.exit(0)

    monkeypatch.setattr("counterfoil.sources.folder.FolderSource.samples", leave)  # code that no frame is around
    done = counterfoil(*arguments(tmp_path)[len(COMMAND) :])
    assert done.returncode == 2
    assert done.stderr.startswith(
        "counterfoil: code that was called ended the command by sys.exit(0) (test_process_end"
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--images", "--masks", "--out"])
def test_an_empty_path_is_refused_at_the_door_and_is_not_the_current_folder(option: str, tmp_path: Path) -> None:
    done = counterfoil(*arguments(tmp_path)[len(COMMAND) :], option, "", cwd=tmp_path)
    assert done.returncode == 2
    assert f"Invalid value for '{option}': expected a path, got an empty text" in done.stderr


def test_a_link_in_a_circle_is_refused_at_the_door(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for command in (["report", tmp_path / "circle" / "x", "--out", tmp_path], ["check", tmp_path / "circle"]):
        done = counterfoil(*command)
        assert done.returncode == 2
        assert "leads in a circle" in done.stderr


def test_results_are_not_written_through_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "place")
    done = counterfoil(*arguments(tmp_path)[len(COMMAND) : -1], tmp_path / "link")
    assert done.returncode == 2
    assert "a link to a place that does not exist; choose another --out" in done.stderr.splitlines()[-1]


def test_line_breaks_and_escapes_in_a_name_stay_in_one_line() -> None:
    done = counterfoil("run", "--images", "photos", "--model", "x", "--shard", "1\n/\x1b[2J2")
    assert done.returncode == 2
    assert done.stderr == "counterfoil: expected --shard I/N, such as 1/8, or auto, got '1\\n/\\x1b[2J2'\n"


@pytest.mark.parametrize(("place", "kind"), [("images", "photos"), ("images/new", "photos"), ("masks", "masks")])
def test_results_are_not_written_between_the_photos_or_masks(place: str, kind: str, tmp_path: Path) -> None:
    command = arguments(tmp_path)[len(COMMAND) : -1]
    before = sorted(tmp_path.rglob("*"))
    for words in (command, [*command[:-1], "--shard", "1/2", "--out"]):
        done = counterfoil(*words, tmp_path / place)
        assert done.returncode == 2
        assert f"which lies in the folder of {kind}" in done.stderr.splitlines()[-1]
    assert sorted(tmp_path.rglob("*")) == before


def test_more_replicates_than_anybody_can_wait_for_are_refused(tmp_path: Path) -> None:
    command = arguments(tmp_path)[len(COMMAND) :]
    (tmp_path / "recipe.yaml").write_text("edits: [{edit: jpeg, replicates: 99999999999}]")
    done = counterfoil(*command)
    assert done.returncode == 2
    assert "replicates': input should be less than or equal to 10000, got 99999999999" in done.stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="this file system takes UTF-8 names only")
def test_a_folder_whose_name_is_not_utf8_gets_its_report(tmp_path: Path) -> None:
    out = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    done = counterfoil(*arguments(tmp_path)[len(COMMAND) : -1], out)
    assert done.returncode == 0, done.stderr
    assert "caf\\udce9" in (Path(out) / "report.html").read_text(encoding="utf-8")
