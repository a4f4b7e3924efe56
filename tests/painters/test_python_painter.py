"""A painter of one's own: the page's example as it stands, and what goes wrong in a painter said in one line."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterfoil as cf
from counterfoil.generation.generator import GenerationConfig, generate_pictures
from counterfoil.generation.prompt_plan import Selection
from counterfoil.painters.painter_loaders import load_painter
from counterfoil.painters.painter_protocol import PaintOptions, PaintRequest
from counterfoil.store.prediction_tables import read_skipped
from counterfoil.store.workspace import Workspace
from locations import ROOT

PAGE = ROOT / "docs" / "diffusion.md"


class FailingPainter:
    """Runs out of paint at its second call."""

    calls = 0

    def paint(self, requests: Sequence[PaintRequest]) -> list[Any]:
        self.calls += 1
        if self.calls > 1:
            raise ZeroDivisionError("no paint\nleft")
        return [np.full((8, 8, 3), 9, np.uint8) for _ in requests]


class StrangePainter:
    """Gives one and the same thing for every request."""

    settings: Any = {}  # noqa: RUF012

    def __init__(self, given: object) -> None:
        self.given = given

    def paint(self, requests: Sequence[PaintRequest]) -> list[Any]:
        return [self.given] * len(requests)


def failing() -> FailingPainter:
    return FailingPainter()


def floats() -> StrangePainter:
    return StrangePainter(np.zeros((3, 8, 8), np.float32))


def words() -> StrangePainter:
    return StrangePainter("a picture")


def unsettled() -> StrangePainter:
    painter = StrangePainter(None)
    painter.settings = {"steps": np.int64(3)}
    return painter


def broken() -> StrangePainter:
    raise RuntimeError("the weights are gone")


def test_the_painter_of_the_page_paints(tmp_path: Path) -> None:
    section = PAGE.read_text().split("## A painter of your own")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (command,) = re.findall(r"```\n(counterfoil .*)\n```", section)
    (tmp_path / "stripes.py").write_text(code)
    arguments = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {one.variant.level for one in Workspace(tmp_path / "striped").pictures} == {"none", "beach", "wood"}
    assert [row.reason for row in read_skipped(tmp_path / "striped")] == ["this painter paints no fire"]


def test_what_a_painter_of_ones_own_needs_is_public() -> None:
    assert cf.PaintRequest is PaintRequest
    assert cf.PaintRefused("none").reason == "none"


@pytest.mark.parametrize(("old", "new"), [("Wish", "PaintRequest"), ("Refusal", "PaintRefused")])
def test_the_names_of_the_first_version_still_work_and_warn(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"counterfoil.{old} is now counterfoil.{new}"):
        assert getattr(cf, old) is getattr(cf, new)


def test_a_painter_that_raises_is_told_in_one_line_and_what_is_finished_is_kept(tmp_path: Path) -> None:
    chosen = Selection(("backpack",), values=("beach", "wood"))
    job = GenerationConfig(
        recipe="imagenet-d",
        painter="python:test_python_painter:failing",
        selection=chosen,
        options=PaintOptions(batch_size=1),
    )
    with pytest.raises(cf.UserError) as error:
        generate_pictures(job, tmp_path)
    told = (
        "python:test_python_painter:failing failed at the prompt 'a backpack in the beach': ZeroDivisionError: no paint"
    )
    assert str(error.value).startswith(f"{told} left (test_python_painter.py, line ")
    assert str(error.value).endswith("what is finished is kept")
    assert len(list((tmp_path / "pictures").rglob("*.png"))) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("floats", "expected an array of dtype uint8 and shape (height, width, 3) or a PaintRefused from"),
        ("floats", "got one of dtype float32 and shape (3, 8, 8)"),
        ("words", "got an object of type str"),
        ("unsettled", "expected `settings` and `environment` of"),
        ("broken", "RuntimeError: the weights are gone (test_python_painter.py, line"),
    ],
)
def test_what_a_painter_gives_wrongly_is_named(name: str, said: str) -> None:
    with pytest.raises(cf.UserError) as error:
        load_painter(f"python:test_python_painter:{name}", "pictures").paint([PaintRequest("a cat", "", 0)])
    assert said in str(error.value)


@pytest.mark.parametrize("given", [{"steps": 3}, {"guidance": 2.0}, {"device": "cpu"}, {"size": 64}])
def test_settings_that_would_go_nowhere_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(cf.UserError, match=f"expected no --{next(iter(given))} with python:painted:words"):
        load_painter("python:painted:words", "pictures", PaintOptions(**given))
