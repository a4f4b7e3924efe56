"""The examples for clusters, checked without one: a loop in place of the scheduler, the fields."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from planted import write_photos

EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"
HELPERS = Path(__file__).parents[1] / "helpers"


def test_the_slurm_array_makes_every_part_and_merge_the_tables(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    (tmp_path / "recipe.yaml").write_text("working_size: 96\njudge_fills: false\nedits: [{edit: control}]\n")
    program = tmp_path / "counterfoil"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m counterfoil "$@"\n')
    program.chmod(0o755)
    run = tmp_path / "run"
    variables = {
        "PHOTOS": str(images), "MASKS": str(masks), "RUN": str(run), "RECIPE": str(tmp_path / "recipe.yaml"),
        "MODEL": "python:planted:Planted", "COUNTERFOIL": str(program), "SLURM_ARRAY_TASK_COUNT": "2",
        "SLURM_ARRAY_TASK_MIN": "1", "PYTHONPATH": str(HELPERS),
    }  # fmt: skip
    for task in ("2", "1"):
        environment = {**os.environ, **variables, "SLURM_ARRAY_TASK_ID": task}
        subprocess.run(["bash", EXAMPLES / "slurm_array.sh"], check=True, env=environment)
    environment = {**os.environ, **variables}
    done = subprocess.run([program, "merge", run], capture_output=True, text=True, check=False, env=environment)
    assert (run / "report.html").is_file(), done.stderr
    assert (run / "variants.parquet").is_file()


def test_the_kubernetes_job_is_indexed_and_names_its_completions() -> None:
    job = yaml.safe_load((EXAMPLES / "kubernetes_job.yaml").read_text())
    assert (job["apiVersion"], job["kind"], job["spec"]["completionMode"]) == ("batch/v1", "Job", "Indexed")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    named = {row["name"]: row["value"] for row in container["env"]}
    assert named == {"JOB_COMPLETIONS": str(job["spec"]["completions"])}
    assert container["command"][:2] == ["counterfoil", "run"]
    assert container["command"][-2:] == ["--shard", "auto"]
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]}
    assert job["spec"]["template"]["spec"]["restartPolicy"] in ("OnFailure", "Never")


def test_the_scripts_are_clean_shell() -> None:
    for name in ("slurm_array.sh", "ray_job.sh"):
        subprocess.run(["bash", "-n", EXAMPLES / name], check=True)
