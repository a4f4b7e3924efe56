"""The comparison of two files of benchmark figures says what got slower."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[1] / "bench" / "results_comparison.py"


def write_results(path: Path, figures: dict[str, tuple[float, str]], **changes: Any) -> Path:
    rows = [{"name": name, "value": value, "unit": "x", "better": better} for name, (value, better) in figures.items()]
    machine = {"model": "a processor", "cores": 2}
    results = {"machine": machine, "quick": False, "benchmarks": {"edits": {"status": 0, "figures": rows}}, **changes}
    path.write_text(json.dumps(results))
    return path


def compare(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_figures_that_got_worse_come_first_and_decide_the_exit_status(tmp_path: Path) -> None:
    before = write_results(
        tmp_path / "before.json", {"hue": (10, "higher"), "start": (2, "lower"), "new": (1, "lower")}
    )
    after = write_results(tmp_path / "after.json", {"hue": (9.5, "higher"), "start": (3, "lower")})
    done = compare(before, after)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[0] == "warning: only one of them has edits: new"
    assert lines[1].endswith("edits: start  SLOWER")
    assert "SLOWER" not in lines[2]  # worse by five percent
    assert lines[3] == "1 of 2 figures got worse by more than 10 %"
    assert compare(before, after, "--tolerance", 40).returncode == 0


def test_another_machine_and_a_quick_run_are_said(tmp_path: Path) -> None:
    before = write_results(tmp_path / "before.json", {"hue": (10, "higher")})
    after = write_results(tmp_path / "after.json", {"hue": (20, "higher")}, machine={"cores": 16}, quick=True)
    done = compare(before, after)
    assert done.returncode == 0
    assert "warning: cores differs: 2 and 16" in done.stdout
    assert "warning: one of them is a quick run" in done.stdout


def test_a_file_of_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[]")
    done = compare(tmp_path / "other.json", tmp_path / "missing.json")
    assert done.returncode == 2
    assert "expected a file of suite.py" in done.stderr
    assert "Traceback" not in done.stderr
