"""The steps of the example workflow, run as they are written, on a small repository with a model and photos."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from locations import ROOT
from planted import write_colour_network, write_photos

WORKFLOW = ROOT / "examples" / "github-actions" / "robustness.yaml"
SCRIPTS = ("Run the model of the base branch", "Run the proposed model", "Hold it to the base branch",
           "Comment on the pull request")  # fmt: skip
RECIPE = "working_size: 96\nedits:\n  - edit: control\n  - edit: background-plain\n"


def steps() -> dict[str, dict[str, Any]]:
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    return {step.get("name", step.get("uses", "")): step for step in job["steps"]}


def write_tool(folder: Path, name: str, line: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{line}\n")
    (folder / name).chmod(0o755)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout of a pull request whose model is that of the base branch, which has been run."""
    place = tmp_path_factory.mktemp("workflow") / "repository"
    images, masks = write_photos(place / "benchmark", 48)
    assert (images.name, masks.name) == ("images", "masks")
    (place / "recipe.yaml").write_text(RECIPE)
    (place / "base").mkdir()
    for folder in (place, place / "base"):
        write_colour_network(folder / "model.onnx", images)
    write_tool(place / "bin", "counterfoil", f'exec "{sys.executable}" -m counterfoil "$@"')
    assert run_script(place, SCRIPTS[0]) == 0
    return place


@pytest.fixture
def repository(base: Path, tmp_path: Path) -> Path:
    """A copy of it; `gh` writes down what it is told."""
    place = shutil.copytree(base, tmp_path / "repository")
    write_tool(place / "bin", "gh", f'echo "$@" > "{place}/told"')
    return place


def run_script(repository: Path, name: str) -> int:
    """Run one step in bash as GitHub does, with the workflow's own variables; its status."""
    own = {**yaml.safe_load(WORKFLOW.read_text())["env"], "RECIPE": "recipe.yaml", "MARGIN": "20"}
    given = {"GITHUB_STEP_SUMMARY": str(repository / "summary.md"), "GITHUB_REPOSITORY": "a/b", "NUMBER": "7"}
    path = f"{repository / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **own, **given, "PATH": path}
    script = steps()[name]["run"]
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=repository, env=environment).returncode


def test_an_unchanged_model_passes_and_the_table_is_commented(repository: Path) -> None:
    assert [run_script(repository, name) for name in SCRIPTS[1:]] == [0, 0, 0]
    assert (repository / "told").read_text().startswith("pr comment 7 --repo a/b --body-file gate.md")
    assert "every bound holds" in (repository / "summary.md").read_text()
    kept = steps()["Keep the report"]["with"]["path"].split()
    assert [name for name in kept if not (repository / name).is_file()] == []


def test_a_proposed_model_that_is_set_up_wrongly_fails_with_a_comment(repository: Path) -> None:
    write_colour_network(repository / "model.onnx", repository / "benchmark" / "images", colour_order="BGR")
    assert [run_script(repository, name) for name in SCRIPTS[1:]] == [0, 4, 0]
    assert "not judged" in (repository / "summary.md").read_text()


def test_it_installs_from_a_checkout_and_not_from_an_index() -> None:
    assert steps()["Install"]["run"].split() == ["pip", "install", "./counterfoil-source"]
