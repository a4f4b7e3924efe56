"""Results for other services: Hugging Face model cards, MLflow, Weights & Biases."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from counterfoil.errors import UserError
from counterfoil.plugins import reporting_errors
from counterfoil.report.content import ReportContent
from counterfoil.report.words import SURROGATE_MEANING, format_interval, format_number
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.answers import ALL
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Drop

_TASK = {"type": "image-classification", "name": "Image Classification"}
_PROJECT = "counterfoil"


def export_hugging_face(content: ReportContent) -> dict[str, str]:
    """Return one model-index and one eval_results file per model, since a card is about one model.

    The eval_results form requires the id of a data set on the hub, which only its publisher knows: the recipe's name is
    a placeholder, to be replaced.
    """
    files: dict[str, str] = {}
    use_accuracies = content.accuracies and not content.has_drops
    for model in dict.fromkeys(row.model for row in (content.accuracies if use_accuracies else content.drops)):
        results, entries = _accuracy_results(model, content) if use_accuracies else _drop_results(model, content)
        if results or use_accuracies:
            folder = f"huggingface/{re.sub(r'[^A-Za-z0-9.]+', '-', model).strip('-.')}"
            index = {"model-index": [{"name": model, "results": results}]}
            files[f"{folder}/model-index.yaml"] = _yaml(index)
            files[f"{folder}/.eval_results/counterfoil.yaml"] = _yaml(entries)
    return files


def _drop_results(model: str, content: ReportContent) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The model-index and eval_results of a model: its accuracy before and after each edit, and the drops."""
    rows = [row for row in content.drops if row.model == model and row.n]
    if not rows:
        return [], []
    widest = max(rows, key=lambda row: row.n)
    before = widest.accuracy_original
    results = [_result(content, "original", "unedited photos", [_accuracy(before)])]
    entries = [_entry(content, "original", before, f"top-1 on the unedited photos, n = {widest.n}")]
    for row in rows:
        config = f"{row.edit}-{row.level}"
        results.append(_result(content, config, f"{row.edit} {row.level}".strip(), _metrics(row)))
        note = f"top-1; drop {format_number(row.drop)} points {format_interval(row)}, n = {row.n}"
        entries.append(_entry(content, config, row.accuracy, note))
    return results, entries


def _accuracy_results(model: str, content: ReportContent) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same for a collection without originals: accuracies only; a surrogate is marked as one."""
    results, entries = [], []
    for config, row in {_config(row): row for row in content.accuracies if row.model == model and row.top1.n}.items():
        note = f"top-1 {format_interval(row.top1)}, n = {row.top1.n}"
        note += f"; {SURROGATE_MEANING}" if model in find_surrogates(content.run) else ""
        results.append(_result(content, config, config, [_accuracy(row.top1.value)]))
        entries.append(_entry(content, config, row.top1.value, note))
    return results, entries


def _config(row: GroupAccuracy) -> str:
    return "-".join(name for name in (row.attribute, row.edit, row.level) if name not in (ALL, "")) or ALL


def _result(content: ReportContent, config: str, name: str, metrics: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "task": _TASK,
        "dataset": {
            "name": f"counterfoil {_set_name(content)}: {name}",
            "type": _set_name(content),
            "config": config,
            "split": "test",
            "revision": content.run.collection_digest or content.run.recipe_digest,
        },
        "metrics": metrics,
    }


def _metrics(row: Drop) -> list[dict[str, Any]]:
    return [
        _accuracy(row.accuracy),
        {"type": "accuracy_drop", "name": "drop in points, paired by photo", "value": _rounded(row.drop)},
        {"type": "accuracy_drop_ci_low", "name": "95 % interval from", "value": _rounded(row.ci_low)},
        {"type": "accuracy_drop_ci_high", "name": "95 % interval to", "value": _rounded(row.ci_high)},
    ]


def _accuracy(value: float) -> dict[str, Any]:
    return {"type": "accuracy", "name": "top-1 accuracy, percent", "value": _rounded(value)}


def _entry(content: ReportContent, task: str, value: float, note: str) -> dict[str, Any]:
    dataset = {"id": f"OWNER/{_set_name(content)}", "task_id": task}
    return {"dataset": dataset, "value": _rounded(value), "notes": note}


def _set_name(content: ReportContent) -> str:
    return content.run.collection or content.run.recipe


def _rounded(value: float) -> float:
    return round(value, 4) + 0.0


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def log_to_mlflow(content: ReportContent, report: Path) -> None:
    """One MLflow run per model in the experiment `counterfoil`; MLFLOW_TRACKING_URI says where."""
    mlflow = _load_tracker("mlflow")
    mlflow.set_experiment(_PROJECT)
    for model in content.run.models:
        with mlflow.start_run(run_name=model):
            mlflow.log_params(_parameters(content, model))
            mlflow.log_metrics(dict(_tracker_metrics(content, model)))
            mlflow.log_artifact(str(report))


def log_to_wandb(content: ReportContent, report: Path) -> None:
    """One Weights & Biases run per model in the project `counterfoil`; WANDB_MODE says whether online."""
    wandb = _load_tracker("wandb")
    for model in content.run.models:
        run = wandb.init(project=_PROJECT, name=model, config=_parameters(content, model))
        run.log(dict(_tracker_metrics(content, model)))
        artifact = wandb.Artifact("report", type="report")
        artifact.add_file(str(report))
        run.log_artifact(artifact)
        run.finish()


def log_to_tracker(name: str, content: ReportContent, report: Path) -> None:
    """Send the results to a tracker; raises `UserError` where it refuses them."""
    with reporting_errors(f"expected {name} to take the results, but it refuses", "; the report is complete"):
        TRACKERS[name](content, report)


TRACKERS: dict[str, Callable[[ReportContent, Path], None]] = {"mlflow": log_to_mlflow, "wandb": log_to_wandb}


def _load_tracker(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(f"expected the package {name} for --log {name}, got none; run: pip install {name}") from error


def _parameters(content: ReportContent, model: str) -> dict[str, str]:
    run = content.run
    parameters = {
        "model": model, "weights": run.model_digests.get(model, ""), "recipe": run.recipe,
        "recipe_digest": run.recipe_digest, "collection": run.collection, "collection_digest": run.collection_digest,
        "surrogate": SURROGATE_MEANING if model in find_surrogates(run) else "",
        "seed": str(run.seed), "photos": str(content.photos),
        "counterfoil": run.environment.get("counterfoil", ""),
    }  # fmt: skip
    return {name: value for name, value in parameters.items() if value}


def _tracker_metrics(content: ReportContent, model: str) -> Iterator[tuple[str, float]]:
    """accuracy/original, then accuracy, drop and interval by edit and level; rows without a number are left out."""
    for group in content.accuracies:
        if group.model == model and group.top1.n and not content.has_drops:
            yield _metric_name("top1", group.attribute, group.edit, group.level), group.top1.value
    rows = [row for row in content.drops if row.model == model and row.n]
    if rows:
        yield "accuracy/original", max(rows, key=lambda row: row.n).accuracy_original
    for row in rows:
        values = {"accuracy": row.accuracy, "drop": row.drop, "ci_low": row.ci_low, "ci_high": row.ci_high}
        for name, value in values.items():
            if not math.isnan(value):
                yield _metric_name(name, row.edit, row.level), value


def _metric_name(*parts: str) -> str:
    """The metric name without characters that trackers refuse."""
    return re.sub(r"[^\w\-./]+", "_", "/".join(parts)).rstrip("/.")
