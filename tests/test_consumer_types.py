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


def check(command: list[str], place: Path) -> str:
    """What a checker prints of both scripts at once: most of its time goes into the package that they use."""
    both = [*command, str(RIGHT), str(WRONG)]
    done = subprocess.run(both, capture_output=True, text=True, check=False, cwd=place)
    assert done.returncode == 1, done.stdout + done.stderr  # it found mistakes, and did not fail itself
    return done.stdout


def list_errors(output: str) -> set[tuple[str, int]]:
    """The files and lines that a checker calls an error."""
    return {(Path(file).name, int(line)) for file, line in re.findall(r"([^\s:]+\.py):(\d+)[^\n]*error", output)}


def test_mypy_accepts_what_is_right_and_finds_every_mistake() -> None:
    output = check([sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent"], ROOT)
    assert list_errors(output) == {(WRONG.name, line) for line in MISTAKES}, output


@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed: npm install --prefix build/pyright pyright")
def test_pyright_accepts_what_is_right_and_finds_every_mistake() -> None:
    output = check([str(PYRIGHT), "--pythonpath", sys.executable], RIGHT.parent)
    assert list_errors(output) == {(WRONG.name, line) for line in MISTAKES}, output
