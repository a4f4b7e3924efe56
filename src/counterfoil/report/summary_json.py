"""summary.json: the content of the report as plain JSON, and its schema."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict
from importlib import resources

from counterfoil.report.cluster_table import CLUSTER_NAMES
from counterfoil.report.content import PaperTable, ReportContent
from counterfoil.report.csv_tables import accuracy_values, natural_ground_values, round_value
from counterfoil.report.headline import write_headline
from counterfoil.report.reliability import ConfidenceRow, list_confidence_rows
from counterfoil.report.title import write_title
from counterfoil.statistics.contrasts import Contrast
from counterfoil.study.confidence import ModelPositionMap
from counterfoil.study.runs import find_surrogates

SUMMARY_FORMAT = 1  # raised when a key of summary.json changes its meaning or is removed
_PARTS = ("confidence", "accuracy", "calibration_error")  # fields of `Calibration`


def summarize(content: ReportContent) -> dict[str, object]:
    """Return the content of summary.json: plain JSON, null where there is no number."""
    findings = write_headline(content)
    surrogates = find_surrogates(content.run)
    reasons = Counter((row.stage, row.edit, row.reason) for row in content.skipped)
    return {
        "format": SUMMARY_FORMAT,
        "title": write_title(content),
        "headline": [finding.text for finding in findings],
        "findings": [{"model": finding.model, "kind": finding.kind, "text": finding.text} for finding in findings],
        "counts": {
            "photos": content.photos,
            "variants": content.variants,
            "skipped": len(content.skipped),
            "unscored": dict(content.unscored),
        },
        "drops": [_plain(asdict(row)) for row in content.drops],
        "attributes": [
            {**_plain(asdict(row)), "tied_group": content.letters.get((row.attribute, row.model), "")}
            for row in content.attribute_drops
        ],
        "natural_ground": [_plain(natural_ground_values(row)) for row in content.natural_ground],
        "means": [
            _plain({"model": model, "drop": row.value, "ci_low": row.ci_low, "ci_high": row.ci_high, "n": row.n})
            for model, row in content.means.items()
        ],
        "contrasts": [contrast_record(row) for row in content.contrasts],
        "skipped": [
            {"stage": stage, "edit": edit, "reason": reason, "count": times}
            for (stage, edit, reason), times in reasons.most_common()
        ],
        "accuracies": [_plain(accuracy_values(row, surrogates)) for row in content.accuracies],
        "confidences": [_confidence_record(row) for row in list_confidence_rows(content.confidences)],
        "places": [_place_record(row) for row in content.places if row.positions.n.any()],
        "clusters": _cluster_records(content),
        "surrogates": list(surrogates),
        "papers": [_paper_record(table) for table in content.papers],
        "run": asdict(content.run),
        "runs": [asdict(run) for run in content.runs],
    }


def summary_schema() -> str:
    """Return the JSON schema of summary.json."""
    return resources.files("counterfoil.report").joinpath("summary.schema.json").read_text(encoding="utf-8")


def export_json(content: ReportContent) -> dict[str, str]:
    """Return summary.json and its schema."""
    document = {"$schema": "summary.schema.json", **summarize(content)}
    return {
        "summary.json": json.dumps(document, indent=1, allow_nan=False) + "\n",
        "summary.schema.json": summary_schema(),
    }


def contrast_record(row: Contrast) -> dict[str, object]:
    """Return the difference of two models under one condition as plain JSON."""
    values = row._asdict()
    return {**values.pop("condition")._asdict(), **_plain(values)}


def _confidence_record(row: ConfidenceRow) -> dict[str, object]:
    change = row.change
    record: dict[str, object] = {"model": row.model, "attribute": change.attribute, "n": change.excess_rise.n}
    record |= {f"{name}_before": value for name, value in zip(_PARTS, change.before, strict=True)}
    record |= {f"{name}_after": value for name, value in zip(_PARTS, change.after, strict=True)}
    estimates = {"excess_rise": change.excess_rise, "error_rise": change.error_rise, "margin_loss": row.margin}
    for name, estimate in estimates.items():
        record[name] = estimate.value if estimate else None
        record[f"{name}_low"] = estimate.ci_low if estimate else None
        record[f"{name}_high"] = estimate.ci_high if estimate else None
    return _plain(record)


def _cluster_records(content: ReportContent) -> list[dict[str, object]]:
    """Clusters of models that fail on the same pictures, where many were judged and some stand out."""
    clusters = content.model_clusters
    if clusters is None or clusters.number < 2:
        return []
    return [
        _plain({
            "name": name, "models": clusters.members(place), "agreement_within": clusters.agreement_within(place),
            "agreement_with_others": clusters.agreement_with_others(place),
        })
        for place, name in enumerate(CLUSTER_NAMES[: clusters.number])
    ]  # fmt: skip


def _place_record(row: ModelPositionMap) -> dict[str, object]:
    """One map, rows from the top; null where there was no object."""
    accuracy = [
        [None if math.isnan(value) else round(value, 4) for value in line] for line in row.positions.accuracy.tolist()
    ]
    return {"model": row.model, "pictures": row.kind, "accuracy": accuracy, "n": row.positions.n.tolist()}


def _paper_record(table: PaperTable) -> dict[str, object]:
    return {
        "kind": table.kind,
        "title": table.title,
        "rule": table.rule,
        "columns": list(table.columns),
        "rows": [
            [None if isinstance(value, float) and math.isnan(value) else value for value in row] for row in table.rows
        ],
        "own": sorted(table.own),
        "footnotes": list(table.footnotes),
    }


def _plain(values: dict[str, object]) -> dict[str, object]:
    """Rounded values; null where there is no number."""
    return {
        name: (None if math.isnan(value) else round_value(name, value)) if isinstance(value, float) else value
        for name, value in values.items()
    }
