"""Options in a file: the command line wins, faults are one line, and the record shows what was taken."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from command_line import counterfoil, find_command
from counterfoil.cli.config_file import read_config
from locations import ROOT
from planted import write_photos

HONEST = "python:planted:honest"
RECIPE = "working_size: 384\njudge_fills: false\nedits:\n - edit: control\n - edit: direction\n"
DOCS = ROOT / "docs" / "commands.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("config")
    write_photos(folder, 8)
    (folder / "short.yaml").write_text(RECIPE)
    return folder


def write_config(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text)
    return path


def test_a_run_from_a_file_is_the_run_of_the_same_options(folder: Path) -> None:
    write_config(
        folder,
        f"images: images\nmasks: masks\nmodels: [{HONEST}]\nrecipe: short.yaml\nout: filed\nlimit: 4\n"
        "batch_size: 3\nseed: 5\nworkers:\n",
    )
    done = counterfoil("run", "--config", "run.yaml", "--limit", 6, cwd=folder)
    assert done.returncode == 0, done.stderr
    typed = ["--images", "images", "--masks", "masks", "--model", HONEST, "--recipe", "short.yaml", "--batch-size", 3]
    done = counterfoil("run", *typed, "--seed", 5, "--limit", 6, "--out", "typed", cwd=folder)
    assert done.returncode == 0, done.stderr
    for table in ("variants.parquet", "drops.csv"):
        assert (folder / "filed" / table).read_bytes() == (folder / "typed" / table).read_bytes()
    command = json.loads((folder / "filed" / "run.json").read_text())["command"]
    assert "--config" not in command
    again = shlex.split(command.replace("--out filed", "--out again"))[1:]
    assert counterfoil(*again, cwd=folder).returncode == 0
    assert (folder / "again" / "drops.csv").read_bytes() == (folder / "filed" / "drops.csv").read_bytes()


def test_evaluate_takes_its_collection_and_models_from_a_file(folder: Path) -> None:
    write_config(folder, "images: images\nmasks: masks\nrecipe: short.yaml\nout: workspace\n")
    built = counterfoil("build", "--config", "run.yaml", cwd=folder)
    assert built.returncode == 0, built.stderr
    write_config(folder, f"collection: workspace\nmodel: {HONEST}\nout: evaluated\nlimit: 4\n")
    done = counterfoil("evaluate", "--config=run.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    command = json.loads((folder / "evaluated" / "run.json").read_text())["command"]
    assert command == f"counterfoil evaluate workspace --model {HONEST} --out evaluated --limit 4"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("limt: 3", "run.yaml: expected options of `counterfoil run` as keys, got 'limt'; did you mean 'limit'?"),
        ("batch_sise: 3", "got 'batch_sise'; did you mean 'batch-size'?"),
        ("zzz: 3", "got 'zzz'; known are images, masks, model, recipe, out, limit,"),
        ("config: other.yaml", "got 'config'; "),
        ("export: true", "got 'export'; known are"),
        ("limit: many", "run.yaml: limit: 'many' is not a valid integer"),
        ("limit: 2.5", "run.yaml: limit: '2.5' is not a valid integer"),
        ("limit: [1, 2]", "run.yaml: limit: expected one value, got a list of 2"),
        ("limit: {a: 1}", "run.yaml: limit: expected a text or a number, got keys or lists within it"),
        ("scoring: some", "run.yaml: scoring: 'some' is not one of 'all', 'subset'"),
        ("limit: 1\nlimit: 2", "run.yaml: expected each option once, got 'limit' a second time"),
        ("model: a\nmodels: [b]", "run.yaml: expected each option once, got 'models' a second time"),
        ("- limit", "expected lines such as 'recipe: attributes', got run.yaml, which holds no keys"),
        ("", "expected lines such as 'recipe: attributes', got run.yaml, which holds no keys"),
        ("a: [", "expected options in YAML, got run.yaml: "),
    ],
)
def test_a_fault_in_the_file_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    write_config(tmp_path, text)
    done = counterfoil("run", "--config", "run.yaml", cwd=tmp_path)
    assert done.returncode == 2
    (told,) = done.stderr.splitlines()
    assert line in told


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = counterfoil("mine", "--config", "none.yaml", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "none.yaml, which cannot be read" in done.stderr


def test_words_of_yaml_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = write_config(tmp_path, "recipe: no\nout: 2026-11-17\nseed: 007\n")
    context = click.Context(find_command("run"), info_name="run")
    assert read_config(path, context) == {"recipe": "no", "out": "2026-11-17", "seed": "007"}


def test_the_documented_file_is_one_that_run_takes(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(# run\.yaml.*?)```", DOCS.read_text(), re.S)
    context = click.Context(find_command("run"), info_name="run")
    values = read_config(write_config(tmp_path, block), context)
    assert values["models"] == ["timm:resnet50.a1_in1k", "onnx:ours.onnx"]
    assert set(values) == {
        "images", "masks", "models", "recipe", "out", "limit", "batch_size", "seed", "scoring",
    }  # fmt: skip


def test_the_old_name_of_runtime_onnx_works_unseen_and_says_so(folder: Path) -> None:
    done = counterfoil("models", "check", HONEST, "--export")
    assert done.stderr.splitlines()[0] == (
        "counterfoil: --export is deprecated and goes with the next release; say --runtime onnx"
    )
    assert "--export" not in counterfoil("run", "--help").stdout
    assert "--export" in counterfoil("report", "--help").stdout


def test_a_run_writes_a_file_that_repeats_it(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 8)
    (tmp_path / "short.yaml").write_text(RECIPE)
    first, again = tmp_path / "first", tmp_path / "again"
    typed = ["--images", images, "--masks", masks, "--model", "python:planted:honest"]
    typed += ["--recipe", tmp_path / "short.yaml"]
    assert counterfoil("run", *typed, "--seed", "3", "--out", first).returncode == 0
    assert counterfoil("run", "--config", first / "run.yaml", "--out", again).returncode == 0
    assert (first / "variants.parquet").read_bytes() == (again / "variants.parquet").read_bytes()


def test_an_option_may_be_an_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERFOIL_RUN_LIMIT", "0")
    done = counterfoil("run", "--images", "demo:", "--model", "python:planted:honest", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "expected limit of at least 1, got 0" in done.stderr
