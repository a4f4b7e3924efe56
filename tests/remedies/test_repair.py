"""A repair from start to end on small photos and a network with a planted weakness."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterfoil as cf
from command_documents import read_document
from command_line import counterfoil
from counterfoil.errors import UserError
from counterfoil.models.model_loaders import load_model
from counterfoil.recipes.edit_recipe import Recipe, Step
from counterfoil.remedies.effects import ORIGINAL
from counterfoil.remedies.picture_answers import render_photo
from counterfoil.remedies.repair_config import RepairConfig
from counterfoil.remedies.repair_result import RepairResult
from counterfoil.remedies.repairer import execute_repair, repair
from counterfoil.sources.source_loaders import open_source
from planted import LABELS, write_photos
from repairable import write_small_object_network

SIZES = Recipe(
    name="sizes",
    judge_fills=False,
    edits=(
        Step(edit="size", levels={"rate": [0.1, 0.05]}),
        Step(edit="flip", settings={"axis": "upside-down"}),
    ),
)
PHOTOS = 36


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("repair-photos"), PHOTOS)


def config_for(photos: tuple[Path, Path], address: str, **changes: object) -> RepairConfig:
    config = RepairConfig(
        source=open_source(*photos), model=address, recipe=SIZES, fitting_recipe=SIZES, allow_loss=10.0,
        elsewhere=open_source(*photos), workers=1,
    )  # fmt: skip
    return replace(config, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def zoomed(photos: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> RepairResult:
    folder = tmp_path_factory.mktemp("zoomed")
    address = write_small_object_network(folder / "network.onnx")
    return execute_repair(config_for(photos, address, method="zoom"), folder / "out")


def test_a_network_whose_weakness_is_size_is_repaired_by_zoom(zoomed: RepairResult) -> None:
    size = next(row for row in zoomed.attributes if row.attribute == "size")
    assert zoomed.verdict.outcome == "repaired", zoomed.verdict.reasons
    assert zoomed.verdict.status == 0
    assert size.drop.before > 20
    assert size.drop.after < 5
    assert size.is_significant


def test_every_photo_is_judged_once_and_is_in_one_part(zoomed: RepairResult) -> None:
    record = json.loads((zoomed.folder / "repair.json").read_text())
    names = [name for part in record["parts"] for name in part]
    assert len(names) == len(set(names)) == PHOTOS
    assert sorted(zoomed.table.photos) == sorted(names)
    assert record["models"]["before"]["digest"] != record["models"]["after"]["digest"]


def test_the_written_model_gives_the_answers_of_the_report(zoomed: RepairResult) -> None:
    model = load_model(f"onnx:{zoomed.model}")
    for plan in zoomed.plan.judged_plans:
        for sample in plan.samples[:4]:
            pictures, _ = render_photo(plan, sample)
            answers = model([image for _, image in pictures]).argmax(axis=1)
            for (variant, _), answer in zip(pictures, answers, strict=True):
                places = [(row.edit, row.level) for row in zoomed.table.conditions]
                column = places.index((variant.edit, variant.level))
                reported = zoomed.table.after.every[zoomed.table.photos.index(sample.id), column]
                assert reported == float(model.labels[answer] == sample.label)


def test_the_page_shows_the_verdict_and_the_five_columns(zoomed: RepairResult) -> None:
    page = (zoomed.folder / "report.html").read_text(encoding="utf-8")
    assert "Repaired" in page
    for column in (
        "all classes<br>competing",
        "only the photos'<br>",
        "Unedited photos",
        "Photos of other",
        "Milliseconds",
    ):
        assert column in page
    assert (zoomed.folder / "before_after.png").is_file()


def test_a_last_layer_fitted_on_clean_photos_is_not_called_repaired(photos: tuple[Path, Path], tmp_path: Path) -> None:
    address = write_small_object_network(tmp_path / "network.onnx", decoys=True)
    clean = Recipe(name="clean", judge_fills=False, edits=(Step(edit="control"),))
    config = config_for(photos, address, method="last-layer", fitting_recipe=clean)
    result = execute_repair(config, tmp_path / "out")
    original = next(column for column, row in enumerate(result.table.conditions) if row.attribute == ORIGINAL)
    assert np.nanmean(result.table.before.every[:, original]) == 0.0  # the decoys win
    assert np.nanmean(result.table.after.every[:, original]) > 0.9
    assert result.verdict.outcome == "fits your classes better; robustness unchanged"
    assert result.verdict.status == 1
    fold = load_model(f"onnx:{result.folder / 'folds' / 'last-layer-1.onnx'}")
    assert fold.digest == result.candidates[0].folds[0].digest


def test_a_killed_repair_goes_on(photos: tuple[Path, Path], tmp_path: Path, zoomed: RepairResult) -> None:
    recipe = tmp_path / "sizes.yaml"
    recipe.write_text(SIZES.model_dump_json(exclude={"name"}))
    address = write_small_object_network(tmp_path / "network.onnx")
    command = [
        sys.executable, "-m", "counterfoil", "repair", "--images", str(photos[0]), "--masks", str(photos[1]),
        "--model", address, "--method", "zoom", "--recipe", str(recipe), "--allow-loss", "10",
        "--elsewhere", str(photos[0]), "--workers", "1", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    environment = {**os.environ, "COUNTERFOIL_PROGRESS": "off"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finished = tmp_path / "out" / "work" / "judged"
    while process.poll() is None and len(list(finished.glob("*.npz"))) < 4:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in finished.glob("*.npz")}
    assert len(kept) >= 4
    assert not (tmp_path / "out" / "repair.json").exists()
    half = finished / ".0b1c.npz.886ffbb8"  # of the file that was being written
    half.touch()
    done = subprocess.run([*command, "--json"], env=environment, check=True, capture_output=True, text=True)
    assert "error" not in read_document(done.stdout, "repair")
    assert {name: (finished / name).stat().st_mtime_ns for name in kept} == kept
    assert not half.exists()
    record = json.loads((tmp_path / "out" / "repair.json").read_text())
    assert record["effects"] == json.loads((zoomed.folder / "repair.json").read_text())["effects"]


def test_a_split_of_one_s_own_is_used_and_one_with_a_photo_twice_refused(
    zoomed: RepairResult, photos: tuple[Path, Path], tmp_path: Path
) -> None:
    record = json.loads((zoomed.folder / "repair.json").read_text())
    turned = [list(part) for part in (*record["parts"][1:], record["parts"][0])]
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"parts": turned}))
    recipe = tmp_path / "turned.yaml"
    recipe.write_text("edits: [{edit: flip}]")
    given: dict[str, Any] = {"images": photos[0], "masks": photos[1], "method": "mirror", "workers": 1}
    given |= {"model": zoomed.plan.config.address, "recipe": str(recipe)}
    result = repair(**given, parts=split, out=tmp_path / "out")
    assert [sorted(part) for part in result.plan.parts.record()] == [sorted(part) for part in turned]
    split.write_text(json.dumps({"parts": [[*turned[0], turned[1][0]], *turned[1:]]}))
    with pytest.raises(UserError, match=r"'.*' is in one and itself in another"):
        repair(**given, parts=str(split), out=tmp_path / "other")


def test_too_few_photos_are_refused_with_the_number_needed(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 12)
    address = write_small_object_network(tmp_path / "network.onnx")
    with pytest.raises(UserError, match="at least 30 photos"):
        repair(images=images, masks=masks, model=address, out=tmp_path / "out")


def test_classes_that_the_model_does_not_know_are_refused(photos: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="crimson"):
        repair(images=photos[0], masks=photos[1], model="embedded:efficientnet-lite0", out=tmp_path / "out")


def test_a_model_of_unknown_structure_is_refused(photos: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="structure is known"):
        repair(images=photos[0], masks=photos[1], model="python:planted:honest", out=tmp_path / "out")


def test_a_folder_with_another_repair_is_refused(
    photos: tuple[Path, Path], tmp_path: Path, zoomed: RepairResult
) -> None:
    address = str(zoomed.plan.config.model)
    with pytest.raises(UserError, match="another --out"):
        execute_repair(config_for(photos, address, method="crops"), zoomed.folder)


def test_the_folder_of_a_run_is_not_written_into(photos: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    address = write_small_object_network(tmp_path / "network.onnx")
    with pytest.raises(UserError, match="holds a run or a workspace"):
        repair(images=photos[0], masks=photos[1], model=address, method="zoom", recipe=SIZES, out=tmp_path)


def test_a_run_whose_photos_are_gone_is_refused(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path / "photos", 4)
    recipe = tmp_path / "control.yaml"
    recipe.write_text("edits: [{edit: control}]")
    counterfoil("run", "--images", images, "--masks", masks, "--model", "python:planted:honest",
                "--out", tmp_path / "run", "--recipe", recipe)  # fmt: skip
    (tmp_path / "photos").rename(tmp_path / "moved")
    with pytest.raises(UserError, match="gone"):
        repair(tmp_path / "run", out=tmp_path / "out")


def test_advice_names_what_helps_against_what_costs_and_runs_nothing(photos: tuple[Path, Path], tmp_path: Path) -> None:
    recipe = tmp_path / "sizes.yaml"
    recipe.write_text("{judge_fills: false, working_size: 64, edits: [{edit: size, settings: {rate: 0.05}}]}")
    model = "python:planted:fails_on_small_objects"
    counterfoil("run", "--images", photos[0], "--masks", photos[1], "--model", model, "--out", tmp_path / "run",
                "--recipe", recipe)  # fmt: skip
    ended = counterfoil("repair", tmp_path / "run", "--advice")
    assert f"{model}: size costs" in ended.stdout
    assert "Look twice" in ended.stdout
    assert "96 photos" in ended.stdout  # the evidence
    assert not (tmp_path / "repaired").exists()
    assert [str(row) for row in cf.advise(tmp_path / "run")] == ended.stdout.splitlines()[:-1]
    assert "expected --out" in counterfoil("repair", tmp_path / "run").stderr
    assert "folder of a run before --advice" in counterfoil("repair", "--advice").stderr


def test_the_classes_of_the_photos_compete_alone_in_one_column(zoomed: RepairResult) -> None:
    assert [zoomed.plan.columns.labels[place] for place in zoomed.plan.columns.photos] == sorted(
        LABELS, key=LABELS.index
    )
