"""Model-index and eval_results files; MLflow and Weights & Biases."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from counterfoil.errors import UserError
from counterfoil.report.report_input import ReportInput
from counterfoil.report.words import MEANING, interval, number
from counterfoil.statistics.accuracy import ALL, GroupAccuracy
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Drop

_TASK = {"type": "image-classification", "name": "Image Classification"}
_NAME = "counterfoil"


def hugging_face_files(content: ReportInput) -> dict[str, str]:
    """One model-index and one eval_results file per model, since a card is about one model.

    The eval_results form asks for the id of a data set on the hub. Only who published one knows it: the recipe's name
    stands in its place, to be replaced.
    """
    if content.accuracies and not content.has_drops:
        return _lone_files(content)
    files: dict[str, str] = {}
    for model in dict.fromkeys(row.model for row in content.drops):
        rows = [row for row in content.drops if row.model == model and row.n]
        if rows:
            files |= _files(model, _model_index(model, rows, content), _eval_results(rows, content))
    return files


def _files(model: str, index: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, str]:
    name = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.")
    return {
        f"huggingface/{name}/model-index.yaml": _yaml(index),
        f"huggingface/{name}/.eval_results/{_NAME}.yaml": _yaml(results),
    }


def _lone_files(content: ReportInput) -> dict[str, str]:
    """The same of a collection without originals: accuracies alone; surrogates say that they are."""
    files: dict[str, str] = {}
    surrogates = find_surrogates(content.run)
    for model in dict.fromkeys(row.model for row in content.accuracies):
        rows = {_config(row): row for row in content.accuracies if row.model == model and row.top1.n}
        results = [
            {**_result(config, config, content), "metrics": [_accuracy(row.top1.value)]} for config, row in rows.items()
        ]
        entries = [_entry(content, config, row.top1.value, _lone_note(row, surrogates)) for config, row in rows.items()]
        files |= _files(model, {"model-index": [{"name": model, "results": results}]}, entries)
    return files


def _config(row: GroupAccuracy) -> str:
    return "-".join(name for name in (row.attribute, row.edit, row.level) if name not in (ALL, "")) or ALL


def _lone_note(row: GroupAccuracy, surrogates: tuple[str, ...]) -> str:
    told = f"top-1 {interval(row.top1)}, n = {row.top1.n}"
    return f"{told}; {MEANING}" if row.model in surrogates else told


def _model_index(model: str, rows: list[Drop], content: ReportInput) -> dict[str, Any]:
    widest = max(rows, key=lambda row: row.n)
    original = {**_result("original", "unedited photos", content), "metrics": [_accuracy(widest.accuracy_original)]}
    edited = [
        {**_result(f"{row.edit}-{row.level}", f"{row.edit} {row.level}".strip(), content), "metrics": _metrics(row)}
        for row in rows
    ]
    return {"model-index": [{"name": model, "results": [original, *edited]}]}


def _result(config: str, told: str, content: ReportInput) -> dict[str, Any]:
    return {
        "task": _TASK,
        "dataset": {
            "name": f"counterfoil {_set_name(content)}: {told}",
            "type": _set_name(content),
            "config": config,
            "split": "test",
            "revision": content.run.collection_digest or content.run.recipe_digest,
        },
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


def _eval_results(rows: list[Drop], content: ReportInput) -> list[dict[str, Any]]:
    widest = max(rows, key=lambda row: row.n)
    entries = [("original", widest.accuracy_original, f"top-1 on the unedited photos, n = {widest.n}")]
    entries += [(f"{row.edit}-{row.level}", row.accuracy, _note(row)) for row in rows]
    return [_entry(content, *entry) for entry in entries]


def _entry(content: ReportInput, task: str, value: float, note: str) -> dict[str, Any]:
    dataset = {"id": f"OWNER/{_set_name(content)}", "task_id": task}
    return {"dataset": dataset, "value": _rounded(value), "notes": note}


def _set_name(content: ReportInput) -> str:
    return content.run.collection or content.run.recipe


def _note(row: Drop) -> str:
    return f"top-1; drop {number(row.drop)} points {interval(row)}, n = {row.n}"


def _rounded(value: float) -> float:
    return round(value, 4) + 0.0


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


_PROJECT = "counterfoil"


def log_to_mlflow(content: ReportInput, report: Path) -> None:
    """One MLflow run per model in the experiment `counterfoil`; MLFLOW_TRACKING_URI says where."""
    mlflow = _package("mlflow")
    mlflow.set_experiment(_PROJECT)
    for model in content.run.models:
        with mlflow.start_run(run_name=model):
            mlflow.log_params(_settings(content, model))
            mlflow.log_metrics(dict(_tracker_metrics(content, model)))
            mlflow.log_artifact(str(report))


def log_to_wandb(content: ReportInput, report: Path) -> None:
    """One Weights & Biases run per model in the project `counterfoil`; WANDB_MODE says whether online."""
    wandb = _package("wandb")
    for model in content.run.models:
        run = wandb.init(project=_PROJECT, name=model, config=_settings(content, model))
        run.log(dict(_tracker_metrics(content, model)))
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
        "surrogate": MEANING if model in find_surrogates(run) else "",
        "seed": str(run.seed), "photos": str(content.photos),
        "counterfoil": run.environment.get("counterfoil", ""),
    }  # fmt: skip
    return {name: value for name, value in told.items() if value}


def _tracker_metrics(content: ReportInput, model: str) -> Iterator[tuple[str, float]]:
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
