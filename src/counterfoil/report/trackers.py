"""The numbers in experiment trackers, where these are installed: one tracker's run per model."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from counterfoil.analyse.accuracies import GroupAccuracy
from counterfoil.errors import UserError
from counterfoil.report.content import ReportInput
from counterfoil.report.surrogates import MEANING, surrogates_among
from counterfoil.types import Drop

_PROJECT = "counterfoil"


def log_to_mlflow(content: ReportInput, report: Path) -> None:
    """One MLflow run per model in the experiment `counterfoil`; MLFLOW_TRACKING_URI says where."""
    mlflow = _package("mlflow")
    mlflow.set_experiment(_PROJECT)
    for model in content.run.models:
        with mlflow.start_run(run_name=model):
            mlflow.log_params(_settings(content, model))
            mlflow.log_metrics(dict(_metrics(content, model)))
            mlflow.log_artifact(str(report))


def log_to_wandb(content: ReportInput, report: Path) -> None:
    """One Weights & Biases run per model in the project `counterfoil`; WANDB_MODE says whether online."""
    wandb = _package("wandb")
    for model in content.run.models:
        run = wandb.init(project=_PROJECT, name=model, config=_settings(content, model))
        run.log(dict(_metrics(content, model)))
        artifact = wandb.Artifact("report", type="report")
        artifact.add_file(str(report))
        run.log_artifact(artifact)
        run.finish()


TRACKERS: dict[str, Callable[[ReportInput, Path], None]] = {"mlflow": log_to_mlflow, "wandb": log_to_wandb}


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(f"expected the package {name} for --log {name}, got none; run: pip install {name}") from error


def _settings(content: ReportInput, model: str) -> dict[str, str]:
    run = content.run
    told = {
        "model": model, "weights": run.model_digests.get(model, ""), "recipe": run.recipe,
        "recipe_digest": run.recipe_digest, "collection": run.collection, "collection_digest": run.collection_digest,
        "surrogate": MEANING if model in surrogates_among(run) else "",
        "seed": str(run.seed), "photos": str(content.photos),
        "counterfoil": run.environment.get("counterfoil", ""),
    }  # fmt: skip
    return {name: value for name, value in told.items() if value}


def _metrics(content: ReportInput, model: str) -> Iterator[tuple[str, float]]:
    """accuracy/original, then accuracy, drop and interval by edit and level; rows without a number are left out."""
    for group in content.accuracies:
        if group.model == model and group.top1.n and not content.has_drops:
            yield f"top1/{_lone_key(group)}", group.top1.value
    rows = [row for row in content.drops if row.model == model and row.n]
    if rows:
        yield "accuracy/original", max(rows, key=lambda row: row.n).accuracy_original
    for row in rows:
        for name in ("accuracy", "drop", "ci_low", "ci_high"):
            value = getattr(row, name)
            if not math.isnan(value):
                yield f"{name}/{_key(row)}", value


def _lone_key(row: GroupAccuracy) -> str:
    return re.sub(r"[^\w\-./]+", "_", "/".join((row.attribute, row.edit, row.level))).rstrip("/.")


def _key(row: Drop) -> str:
    """Trackers allow few signs in a name."""
    return re.sub(r"[^\w\-./]+", "_", f"{row.edit}/{row.level}").rstrip("/.")
