"""What was acknowledged survives a loss of power: shown under a layer that drops all that was not synced."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from locations import HELPERS
from planted import write_photos
from power_loss import compile_layer, copy_survivors, count_syncs, run_until_cut

RECIPE = "about: Two edits.\njudge_fills: false\nedits:\n  - edit: control\n  - edit: background-blur\n"
TABLES = ("variants.parquet", "predictions/python-planted-honest.parquet")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_layer(tmp_path_factory.mktemp("layer"))


def command(folder: Path, out: Path, name: str = "run") -> list[str]:
    if not (folder / "recipe.yaml").is_file():
        write_photos(folder, 6)
        (folder / "recipe.yaml").write_text(RECIPE)
    asked = ["--images", str(folder / "images"), "--masks", str(folder / "masks")]
    asked += ["--recipe", str(folder / "recipe.yaml"), "--out", str(out), "--workers", "1"]
    asked += ["--model", "python:planted:honest"] if name == "run" else []
    return [sys.executable, "-c", "from counterfoil.cli import main; main()", name, *asked]


@pytest.fixture(autouse=True)
def _find_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HELPERS))


def check(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "counterfoil", "check", str(folder)], capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize("name", ["run", "build"])
def test_a_loss_of_power_after_the_end_loses_nothing(layer: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "disk" / "out"
    out.parent.mkdir()
    done = run_until_cut(command(tmp_path, out, name), layer, out.parent, None)
    assert done.returncode == 0, done.stderr
    kept = copy_survivors(out.parent, tmp_path / "after")
    assert "whole" in check(tmp_path / "after" / "out")
    assert {"out/run.json", "out/checksums.json", "out/variants.parquet"} <= set(kept)
    assert name == "build" or "out/report.html" in kept
    assert (name == "run") == (not any(path.startswith("out/pictures/") for path in kept))


def test_a_loss_of_power_at_any_sync_keeps_what_was_synced_and_the_run_goes_on(layer: Path, tmp_path: Path) -> None:
    whole = tmp_path / "disk" / "whole"
    whole.parent.mkdir()
    assert run_until_cut(command(tmp_path, whole), layer, whole.parent, None).returncode == 0
    syncs = count_syncs(whole.parent)
    assert syncs > 20
    for cut in (3, syncs // 3, 2 * syncs // 3, syncs - 3):
        out = tmp_path / f"disk-{cut}" / "out"
        out.parent.mkdir()
        done = run_until_cut(command(tmp_path, out), layer, out.parent, cut)
        assert done.returncode == 137
        after = tmp_path / f"after-{cut}" / "out"
        kept = copy_survivors(out.parent, after.parent)
        assert not any((after.parent / path).stat().st_size == 0 for path in kept if path.endswith(".parquet"))
        again = subprocess.run(command(tmp_path, after), capture_output=True, text=True, check=False)
        assert again.returncode == 0, (cut, again.stderr)
        for table in TABLES:
            assert (after / table).read_bytes() == (whole / table).read_bytes()
        assert "whole" in check(after)


def test_the_layer_loses_what_is_not_synced(layer: Path, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    code = (
        "import os, sys; from pathlib import Path; from counterfoil.store.files import write_atomically as write\n"
        "folder = Path(sys.argv[1]); write(folder / 'kept', 'x'); write(folder / 'lost', 'x', durable=False)"
    )
    done = run_until_cut([sys.executable, "-c", code, str(folder)], layer, folder, None)
    assert done.returncode == 0, done.stderr
    assert copy_survivors(folder, tmp_path / "after") == ["kept"]
