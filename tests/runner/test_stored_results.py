"""Runs over photos whose fills were stored: the same tables as without the cache, whoever filled it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from counterfoil.assets.cache import cache_folder
from counterfoil.edits import subject
from counterfoil.execution import Execution
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.result_cache import VARIABLE
from planted import write_photos
from table_files import table_bytes

RECIPE = """
working_size: 96
tool_checks: 1
edits:
  - edit: control
  - edit: fill-control
  - edit: background-swap
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 2)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that holds the fetched networks and no result."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for entry in cache_folder().iterdir():
        if entry.name != "results":
            (cache / entry.name).symlink_to(entry)
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(cache))
    return cache / "results"


def tables_of(photos: tuple[Path, Path], out: Path, *, engine: str = "local", masks: bool = True) -> dict[str, Any]:
    recipe = out.with_suffix(".yaml")
    recipe.write_text(RECIPE)
    config = RunConfig(
        source=open_source(photos[0], photos[1] if masks else None), models=("python:planted:Planted",), workers=2,
        recipe=str(recipe), execution=Execution(engine), doubtful_masks="keep",
    )  # fmt: skip
    execute(config, out)
    return {name: content for name, content in table_bytes(out).items() if not name.startswith("work")}


@pytest.mark.parametrize("masks", [True, False])
def test_tables_are_equal_without_a_cache_and_with_an_empty_and_a_full_one(
    photos: tuple[Path, Path], tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch, masks: bool
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    without = tables_of(photos, tmp_path / "without", masks=masks)
    assert not results.exists()
    monkeypatch.setenv(VARIABLE, "100")
    assert tables_of(photos, tmp_path / "empty", masks=masks) == without
    stored = {path for path in results.rglob("*") if path.is_file()}
    assert stored
    monkeypatch.setattr(subject, "fill_hole", None)  # would be called for what is not stored
    monkeypatch.setattr(subject, "find_attachments", None)
    assert tables_of(photos, tmp_path / "full", masks=masks) == without
    assert {path for path in results.rglob("*") if path.is_file()} == stored
    monkeypatch.undo()


def test_worker_processes_share_one_cache(
    photos: tuple[Path, Path], tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "100")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "helpers"), prepend=":")
    cold = tables_of(photos, tmp_path / "cold", engine="processes")
    stored = {path for path in results.rglob("*") if path.is_file()}
    assert tables_of(photos, tmp_path / "warm", engine="processes") == cold
    assert {path for path in results.rglob("*") if path.is_file()} == stored
