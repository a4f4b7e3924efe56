"""Users' scripts under type checkers: right ones pass, and a misspelt name is an error."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from locations import DATA, ROOT

RIGHT, WRONG = DATA / "consumer_script.py", DATA / "consumer_mistakes.py"
MISTAKES = [number for number, line in enumerate(WRONG.read_text().splitlines(), 1) if line.endswith("# error")]
PYRIGHT = shutil.which("pyright") or shutil.which("pyright", path=str(ROOT / "build/pyright/node_modules/.bin"))


def mypy(script: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent", str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def pyright(script: Path) -> subprocess.CompletedProcess[str]:
    command = [str(PYRIGHT), "--pythonpath", sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=script.parent)


def wrong_lines(output: str) -> list[int]:
    """The lines of the script that a checker calls an error."""
    return sorted({int(number) for number in re.findall(r"consumer_mistakes\.py:(\d+)[^\n]*error", output)})


def test_mypy_accepts_what_is_right_and_finds_every_mistake() -> None:
    right, wrong = mypy(RIGHT), mypy(WRONG)
    assert right.returncode == 0, right.stdout
    assert wrong_lines(wrong.stdout) == MISTAKES, wrong.stdout


@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed: npm install --prefix build/pyright pyright")
def test_pyright_accepts_what_is_right_and_finds_every_mistake() -> None:
    right, wrong = pyright(RIGHT), pyright(WRONG)
    assert right.returncode == 0, right.stdout
    assert wrong_lines(wrong.stdout) == MISTAKES, wrong.stdout
