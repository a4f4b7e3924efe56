"""Runs over photos of which an earlier run made every picture: the same tables and report, nothing edited again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from colour_network import mean_colour_network
from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.registry import register_edit
from counterfoil.edits.subject import Subject
from counterfoil.recipes.edit_recipe import Recipe, Step
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.result_cache import VARIABLE
from counterfoil.types import Picture, Sample, Skipped, Source, SourceBase
from planted import LABELS, write_photos
from table_files import output_bytes

EDITS = (Step(edit="control"), Step(edit="background-swap"), Step(edit="object-hue"), Step(edit="object-box"))


@dataclass(frozen=True)
class CountedPhotos(SourceBase):
    """Photos of a folder, and which were decoded."""

    source: Source
    images: str = "counted photos"
    read_ids: list[str] = field(default_factory=list)

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        return self.source.samples()

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        self.read_ids.append(sample.id)
        return self.source.read(sample)


@dataclass(frozen=True)
class Inverted(Edit):
    """An edit of a test's own."""

    attribute = "corruption"

    @property
    def level(self) -> str:
        return "full"

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        return Picture(255 - subject.picture.image, subject.picture.alpha)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 1)


@pytest.fixture
def networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two networks, and an empty cache of results."""
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "100")
    for place, name in enumerate(("mine", "other")):
        path = mean_colour_network(tmp_path / f"{name}.onnx", len(LABELS))
        labels = [*LABELS[place:], *LABELS[:place]]
        path.with_suffix(".json").write_text(json.dumps({"labels": labels, "size": [32, 32], "resize": 40}))
    return f"onnx:{tmp_path / 'mine.onnx'}", f"onnx:{tmp_path / 'other.onnx'}"


def run(photos: tuple[Path, Path], out: Path, models: Sequence[str], **changes: Any) -> tuple[dict[str, Any], int]:
    """The run's tables and report, and how often a photo was decoded for them."""
    source = CountedPhotos(open_source(*photos))
    edits = changes.pop("edits", EDITS)
    recipe = Recipe(name="test", about="", working_size=96, judge_fills=False, tool_checks=2, edits=edits)
    result = execute(RunConfig(source=source, models=tuple(models), recipe=recipe, workers=2, **changes), out)
    decoded = len(source.read_ids)
    result.report(out)
    return output_bytes(out), decoded


def test_a_second_run_writes_the_same_and_decodes_no_photo(
    photos: tuple[Path, Path], tmp_path: Path, networks: tuple[str, str]
) -> None:
    first, decoded = run(photos, tmp_path / "first", networks[:1])
    assert decoded
    again, decoded = run(photos, tmp_path / "again", networks[:1])
    assert again == first
    assert decoded == 0
    smaller, decoded = run(photos, tmp_path / "smaller", networks[:1], batch_size=3)
    assert smaller == first
    assert decoded == 0


@pytest.mark.parametrize("change", ["a model", "an edit", "a seed", "fewer photos"])
def test_what_was_stored_for_another_run_changes_nothing(
    photos: tuple[Path, Path], tmp_path: Path, networks: tuple[str, str], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    run(photos, tmp_path / "earlier", networks[:1])
    models = networks if change == "a model" else networks[:1]
    changes: dict[str, dict[str, Any]] = {
        "an edit": {"edits": (*EDITS, Step(edit="object-blur"))}, "a seed": {"seed": 1}, "fewer photos": {"limit": 3},
    }  # fmt: skip
    after, _ = run(photos, tmp_path / "after", models, **changes.get(change, {}))
    monkeypatch.setenv(VARIABLE, "0")
    assert after == run(photos, tmp_path / "without", models, **changes.get(change, {}))[0]


def test_pictures_of_an_edit_from_this_process_are_always_made(
    photos: tuple[Path, Path], tmp_path: Path, networks: tuple[str, str]
) -> None:
    register_edit("inverted", Inverted)
    edits = (Step(edit="control"), Step(edit="inverted"))
    for name in ("first", "again"):
        _, decoded = run(photos, tmp_path / name, networks[:1], edits=edits)
        assert decoded


def test_pictures_with_a_folder_of_textures_are_always_made(
    photos: tuple[Path, Path], tmp_path: Path, networks: tuple[str, str]
) -> None:
    edits = (Step(edit="control"), Step(edit="texture", settings={"folder": str(photos[0] / LABELS[0])}))
    for name in ("first", "again"):
        _, decoded = run(photos, tmp_path / name, networks[:1], edits=edits)
        assert decoded
