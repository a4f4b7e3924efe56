"""Commands over folders that are no runs, or runs whose record says odd things: one line each, and no traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from counterfoil.cli import commands
from counterfoil.errors import UserError
from run_folders import write_run

CALLS: dict[str, Callable[[str, str, str], list[str]]] = {
    "analyse": lambda odd, good, out: ["analyse", odd, "--out", out],
    "show": lambda odd, good, out: ["show", odd],
    "compare": lambda odd, good, out: ["compare", odd, good],
    "compare, second": lambda odd, good, out: ["compare", good, odd],
    "gate": lambda odd, good, out: ["gate", odd, "--max-drop", "90"],
    "gate against": lambda odd, good, out: ["gate", good, "--against", odd],
    "report": lambda odd, good, out: ["report", odd, "--out", out],
    "repair": lambda odd, good, out: ["repair", odd, "--advice"],
    "import": lambda odd, good, out: ["import", odd, "--out", out],
    "merge": lambda odd, good, out: ["shards", "merge", odd],
    "status": lambda odd, good, out: ["shards", "status", odd],
    "check": lambda odd, good, out: ["check", odd],
    "verify decide": lambda odd, good, out: ["verify", "decide", odd],
    "photos review": lambda odd, good, out: ["photos", "review", odd],
    "freeze": lambda odd, good, out: ["freeze", odd, "--name", "n", "--version", "1.0.0", "--out", out],
    "evaluate": lambda odd, good, out: ["evaluate", odd, "--model", "python:planted:Planted", "--out", out],
    "diff": lambda odd, good, out: ["benchmark", "diff", odd, good],
}
READERS = ("analyse", "show", "compare", "compare, second", "gate", "gate against", "report", "repair", "check")
ODD_FILES = {
    "empty": b"", "zeros": b"\0" * 50, "list": b"[]", "number": b"5", "nan": b'{"models": NaN}', "deep": b"[" * 100_000,
}  # fmt: skip
ODD_RECORDS: dict[str, dict[str, Any]] = {
    "no models": {"models": []},
    "a model without answers": {"models": ["nobody"]},
    "a number for a model": {"models": [5]},
    "a text for the seed": {"seed": "x"},
    "a list of digests": {"model_digests": []},
    "a number for preprocessing": {"preprocessing": {"model": 5}},
    "a number for a main edit": {"main_edits": {"size": 5}},
    "half a reference": {"references": [[1]]},
    "an unknown set-up": {"sanity": {"model": {"x": 1}}},
    "a number for notes": {"notes": 5},
    "a number for the photos": {"images": 5, "masks": 7},
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("good") / "run", {"model": lambda photo, edit, level: True})


def refuse(name: str, odd: Path, good: Path) -> None:
    """Call a command, which must refuse in one line; nothing that was there may be gone."""
    before = sorted(odd.rglob("*"))
    done = CliRunner().invoke(commands, CALLS[name](str(odd), str(good), str(odd.parent / "out")))
    if isinstance(done.exception, UserError):
        assert len(str(done.exception).splitlines()) == 1
    else:
        assert done.exit_code == (1 if name == "check" else 2), (name, done.output, done.exception)
        assert isinstance(done.exception, SystemExit)
    assert sorted(odd.rglob("*")) == before


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("kind", ["nothing", "an empty folder", *ODD_FILES])
def test_what_is_no_run_is_refused_in_one_line(good: Path, tmp_path: Path, kind: str, name: str) -> None:
    odd = tmp_path / "odd"
    if kind != "nothing":
        odd.mkdir()
    if kind in ODD_FILES:
        (odd / "run.json").write_bytes(ODD_FILES[kind])
    refuse(name, odd, good)


@pytest.mark.parametrize("kind", list(ODD_RECORDS))
def test_an_odd_record_of_a_run_is_refused_in_one_line_or_harmless(good: Path, tmp_path: Path, kind: str) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(good, odd)
    record = json.loads((odd / "run.json").read_text())
    (odd / "run.json").write_text(json.dumps({**record, **ODD_RECORDS[kind]}))
    for name in READERS:
        done = CliRunner().invoke(commands, CALLS[name](str(odd), str(good), str(tmp_path / "out")))
        assert done.exception is None or isinstance(done.exception, UserError | SystemExit), (name, done.exception)
