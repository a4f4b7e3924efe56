"""Results for a model card on the Hugging Face hub: `model-index`, and the newer `.eval_results` files."""

from __future__ import annotations

import re
from typing import Any

import yaml

from counterfoil.analyse.accuracies import ALL, GroupAccuracy
from counterfoil.report.content import ReportInput
from counterfoil.report.surrogates import MEANING, surrogates_among
from counterfoil.report.wording import interval, number
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
    surrogates = surrogates_among(content.run)
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
