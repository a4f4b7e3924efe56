"""What may be evaluated: a frozen benchmark, and models that answer over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import counterfoil as cf
from collection_pictures import pictures, write_workspace
from counterfoil.cli import commands
from counterfoil.store.parquet import read_table
from counterfoil.store.workspace import Workspace
from counterfoil.types import MiningResult
from planted import LABELS, Planted
from vlm_server import Exchange, FakeEndpoint, choose, fail, serving

HONEST = "python:planted:honest"
VLM = f"vlm:planted?labels={','.join(LABELS)}&format=png"


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    workspace = Workspace(write_workspace(tmp_path / "set", pictures(20, 15, "texture", "painted", "bricks")))
    kept = tuple(stored.variant.id for stored in workspace.pictures[5:])
    workspace.keep_mined(MiningResult(kept, "by hand", {"timm:chooser": "0" * 64}, workspace.digest))
    arguments = ["freeze", str(workspace.folder), "--name", "Bricks", "--version", "1.0.0", "--out"]
    done = CliRunner().invoke(commands, [*arguments, str(tmp_path / "frozen")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return tmp_path / "frozen"


def test_a_frozen_benchmark_is_evaluated_and_its_surrogates_recorded(frozen: Path, tmp_path: Path) -> None:
    result = cf.evaluate_collection(frozen, [HONEST], tmp_path / "out")
    assert result.headline[0].startswith(f"{HONEST} is right on 66.7 %")  # 10 of the 15 that were kept
    assert result.plan.run.surrogates == {"timm:chooser": "0" * 64}
    assert result.plan.run.collection.startswith("Bricks")
    page = result.report(tmp_path / "out").read_text()
    assert "timm:chooser" in page
    assert "none of them is a model of this report" in page


def test_a_broken_benchmark_is_refused_before_any_model_is_asked(frozen: Path, tmp_path: Path) -> None:
    picture = next(path for path in sorted(frozen.rglob("*.png")))
    data = bytearray(picture.read_bytes())
    data[-20] ^= 1
    picture.write_bytes(data)
    with pytest.raises(cf.UserError):
        cf.evaluate_collection(frozen, [HONEST], tmp_path / "out")
    assert not (tmp_path / "out").exists()


class CutsAPicture(Planted):
    """Cuts the last picture of a benchmark off when it is first asked about pictures."""

    def __init__(self, folder: Path) -> None:
        self.picture = max(folder.rglob("*.png"))

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        self.picture.write_bytes(self.picture.read_bytes()[:200])
        return super().__call__(images)


def test_a_benchmark_that_is_damaged_while_it_is_evaluated_gives_no_score(frozen: Path, tmp_path: Path) -> None:
    with pytest.raises(cf.UserError, match="as it was when it was opened"):
        cf.evaluate(frozen, CutsAPicture(frozen), out=tmp_path / "out", workers=1)
    assert not (tmp_path / "out" / "variants.parquet").exists()


def honest(exchange: Exchange) -> str:
    """Names the object's colour; where that is not on offer, the first choice."""
    seen = LABELS[Planted().answer(cv2.cvtColor(np.asarray(exchange.image.convert("RGB")), cv2.COLOR_RGB2HSV))]
    return f"The main object is {seen if seen in exchange.choices else exchange.choices[0]}."


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    with serving() as started:
        for name, value in {"URL": started.url, "KEY": "k", "FIRST_WAIT_SECONDS": "0.001", "ATTEMPTS": "1"}.items():
            monkeypatch.setenv(f"COUNTERFOIL_VLM_{name}", value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        started.otherwise = choose(honest)
        yield started


def test_a_second_evaluation_asks_again_only_what_the_network_lost(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "set", pictures(40, 40, "texture", "painted", "bricks"))
    turn = iter(range(10**6))
    lose = fail(503)
    endpoint.otherwise = lambda exchange: (lose if next(turn) % 10 < 3 else choose(honest))(exchange)
    cf.evaluate_collection(workspace, [VLM], tmp_path / "out", workers=2)
    outcomes = read_table(next((tmp_path / "out" / "predictions").iterdir()), ["outcome"])["outcome"]
    lost = int((np.asarray(outcomes) == "error").sum())
    assert 0 < lost < 40
    endpoint.otherwise = choose(honest)
    endpoint.forget()
    again = cf.evaluate_collection(workspace, [VLM], tmp_path / "out", workers=2)
    assert len(endpoint.exchanges) == lost
    overall = again.study.accuracies[0]
    assert (overall.top1.n, overall.top1.value) == (40, 100.0)
    assert overall.top5.n == 0  # one answer alone has no five best


def test_pictures_of_one_kind_are_told_once_and_the_scoring_is_printed_once(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "set", pictures(12, 12, "original", "original", "none"))
    arguments = ["evaluate", str(workspace), "--model", HONEST, "--scoring", "subset", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0].count("(subset: ") + done.output.splitlines()[0].count("; subset: ") == 1
    table = (tmp_path / "out" / "accuracies.csv").read_text().splitlines()
    assert [line.split(",")[1:4] for line in table[1:]] == [["all"] * 3]
