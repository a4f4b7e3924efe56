"""Painted backgrounds through the whole pipeline: chosen against a surrogate, recorded, made again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterfoil as cf
from counterfoil.edits.registry import edit_named
from counterfoil.errors import UserError
from counterfoil.models.model_protocol import ModelBase
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.run_config import RunConfig, prepare
from counterfoil.run_result import Result
from counterfoil.runner import PhotoWork
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.parquet import read_table
from counterfoil.worker_pool import ForkedEngine, LocalEngine
from planted import write_photos

SURROGATE = "python:planted:reads_the_background"
RECIPE = """
working_size: 96
judge_fills: false
edits:
  - edit: control
  - {edit: painted-complexity, settings: {steps: 1}, levels: {guidance: [0, -20, 20]}}
  - {edit: painted-complexity, settings: {steps: 1, strength: 0.7, guidance: 0}}
  - {edit: painted-adversarial, settings: {steps: 1, strength: 0.7, candidates: 3, by: BY, surrogate: "%s"}}
"""


def ran(folder: Path, workers: int, by: str = "auto") -> Result:
    images, masks = write_photos(folder, 4)
    (folder / "recipe.yaml").write_text(RECIPE.replace("BY", by) % SURROGATE)
    recipe = str(folder / "recipe.yaml")
    return cf.run(
        images, [SURROGATE], masks=masks, recipe=recipe, out=folder / "out", workers=workers, batch_size=workers
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return ran(tmp_path_factory.mktemp("painted"), 2)


def test_one_worker_and_small_batches_paint_the_same_pictures(result: Result, tmp_path: Path) -> None:
    there, here = (read_table(each.folder / "variants.parquet") for each in (result, ran(tmp_path, 1)))
    assert list(there["sha256"]) == list(here["sha256"])
    assert list(there["id"]) == list(here["id"])


@pytest.mark.torch
def test_a_gpu_paints_the_same_pictures_for_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from counterfoil.painters import background_batches
    from counterfoil.painters.background_batches import ExactPainter, GpuBatcher, load_torch_model

    painter = ExactPainter("cpu", load_torch_model("cpu"), rows=2)  # torch on the CPU stands in for the card
    batcher = GpuBatcher("cpu", painter)
    monkeypatch.setattr(background_batches, "_load_batcher", lambda device, precision: batcher)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    images, masks = write_photos(tmp_path, 3)
    step = "{edit: painted-complexity, settings: {steps: 1, device: DEVICE}, levels: {guidance: [0, 20]}}"
    found = {}
    for name, device, workers in (("one", "cuda", 1), ("four", "cuda", 4), ("onnx", "cpu", 2)):
        recipe, out = tmp_path / f"{name}.yaml", tmp_path / name
        recipe.write_text(
            f"working_size: 64\njudge_fills: false\nedits: [{{edit: control}}, {step.replace('DEVICE', device)}]"
        )
        cf.run(images, [SURROGATE], masks=masks, recipe=str(recipe), out=out, workers=workers)
        found[name] = read_table(out / "variants.parquet")
    assert list(found["one"]["id"]) == list(found["four"]["id"])
    assert list(found["one"]["sha256"]) == list(found["four"]["sha256"])
    by_device = [set(found[name]["sha256"][found[name]["edit"] == "painted-complexity"]) for name in ("one", "onnx")]
    assert [len(each) for each in by_device] == [6, 6]
    assert not set.intersection(*by_device)  # the device is a setting, and settings are part of the seed


@pytest.mark.torch
def test_a_gpu_that_is_not_there_is_said_before_any_work_and_the_folder_stays_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    images, masks = write_photos(tmp_path, 1)
    parts = "{edit: background-blur}, {edit: painted-random, settings: {device: cuda}}"
    control = "{edit: painted-complexity, settings: {guidance: 0}}"
    (tmp_path / "gpu.yaml").write_text(
        f"edits: [{control}, {parts}, {{edit: combine, settings: {{edits: [{parts}]}}}}]"
    )
    with pytest.raises(UserError, match="expected a GPU for device: cuda, but torch sees none; use device: cpu"):
        cf.run(images, [SURROGATE], masks=masks, recipe=str(tmp_path / "gpu.yaml"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


class OnGpu(ModelBase):
    """A classifier on a GPU, for which the work would go into forked processes."""

    name, device, labels = "on a GPU", "cuda", ("cat", "dog")
    digest, preprocessing = "0", None


def test_where_edits_paint_on_a_gpu_the_work_stays_in_this_process(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 2)
    recipe = tmp_path / "gpu.yaml"
    recipe.write_text("edits: [{edit: painted-random, settings: {device: cuda}}]")
    plan = prepare(RunConfig(source=open_source(images, masks), models=(), recipe=str(recipe)))
    models: Any = (OnGpu(),)
    assert isinstance(PhotoWork(replace(plan, models=models)).engine(1), LocalEngine)
    assert isinstance(PhotoWork(replace(plan, models=models, steps=())).engine(1), ForkedEngine)


def test_how_the_hard_background_was_found_stands_in_the_manifest_and_makes_it_again(result: Result) -> None:
    table = read_table(result.folder / "variants.parquet")
    rows = np.flatnonzero(table["edit"] == "painted-adversarial")
    assert len(rows) == 4
    settings = [json.loads(table["settings"][row]) for row in rows]
    assert {each["by"] for each in settings} == {"candidates"}
    assert all(each["candidate"] in range(3) for each in settings)
    assert {table["level"][row] for row in rows} == {"20-adv by candidates at 0.7"}
    answers = read_table(next((result.folder / "predictions").glob("*.parquet")), ["edit", "level"])
    assert set(answers["level"][answers["edit"] == "painted-adversarial"]) == {"20-adv by candidates at 0.7"}
    picture = cf.rebuild(result.folder, table["id"][rows[0]])
    assert hashlib.sha256(picture.image.tobytes()).hexdigest() == table["sha256"][rows[0]]


def test_a_gradient_that_a_surrogate_does_not_have_is_refused_at_the_door(tmp_path: Path) -> None:
    with pytest.raises(cf.UserError, match="use by: candidates"):
        ran(tmp_path, 1, by="gradient")


def test_a_recipe_goes_without_20_adv_where_its_surrogate_does_not_know_the_labels(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 3)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("edits: [{edit: control}, {edit: painted-adversarial, needs: surrogate}]")
    result = cf.run(images, [SURROGATE], masks=masks, recipe=str(recipe), out=tmp_path / "out")
    assert set(read_table(result.folder / "variants.parquet")["edit"]) == {"original", "control"}
    (row,) = [row for row in result.skipped if row.edit == "painted-adversarial"]
    assert "no column for" in row.reason


def test_imagenet_e_is_complete() -> None:
    steps = load_recipe("imagenet-e").edits
    assert all(step.needs in (None, "surrogate") for step in steps)
    rows = {f"{step.edit} {edit_named(step.edit, settings).level}" for step in steps for settings in step.all_settings}
    painted = {f"painted-complexity {level} at 0.15" for level in ("0", "-20", "20")}
    painted |= {"painted-adversarial 20-adv at 0.15"}
    assert painted < rows
    assert {row.split()[0] for row in rows - painted} == {
        "control", "fill-control", "background-swap", "size", "position", "direction",
    }  # fmt: skip
    assert sum(row.startswith("size ") for row in rows) == 4
