"""The scripts of examples/ run as their readers would run them."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from archives.edit_archives import imagenet_e
from locations import ROOT
from vlm_server import choose, serving

FOLDER = ROOT / "examples" / "scripts"
SCRIPTS = {path.name: path for path in sorted(FOLDER.glob("*.py"))}
WITH_MORE = {"vlm_endpoint.py", "published_archive.py", "ci_test.py", "torch_module.py"}  # an endpoint, an archive, ...


def run_script(name: str, *arguments: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(SCRIPTS[name]), run_name="__main__")


def test_there_are_ten_scripts_of_under_twenty_lines() -> None:
    lengths = {name: len(path.read_text().splitlines()) for name, path in SCRIPTS.items()}
    assert len(lengths) == 10
    assert max(lengths.values()) < 20


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_function.py", "background-plain: "),
        ("own_edit.py", "snow"),
        ("arrays.py", "object-hue"),
        ("hugging_face.py", "4 photos, embedded:efficientnet-lite0"),
        ("two_checkpoints.py", "do not release: "),
        ("own_benchmark.py", "are chosen"),
    ],
)
def test_a_script_says_what_it_promises(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_script(name)
    assert said in capsys.readouterr().out


@pytest.mark.torch
def test_the_script_of_a_torch_module_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_script("torch_module.py")
    assert "4 photos, mine" in capsys.readouterr().out


def test_the_test_of_the_ci_script_passes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SCRIPTS["ci_test.py"])],
        capture_output=True, text=True, check=False, cwd=FOLDER,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_script_of_an_endpoint_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as endpoint:
        endpoint.otherwise = choose(lambda exchange: exchange.choices[0])
        monkeypatch.setenv("COUNTERFOIL_VLM_URL", endpoint.url)
        run_script("vlm_endpoint.py")
        assert endpoint.exchanges
    assert "scored" in capsys.readouterr().out


def test_the_script_of_a_published_archive_scores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_script("published_archive.py", f"imagenet-e:{imagenet_e(tmp_path / 'archive')}")
    assert "report.html" in capsys.readouterr().out
