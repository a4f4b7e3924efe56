"""The numbers as CSV, JSON and Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields

from counterfoil.analyse import FEWEST_PHOTOS, Contrast, Estimate
from counterfoil.analyse.accuracies import GroupAccuracy
from counterfoil.report.confidence import confidence_record, confidence_rows
from counterfoil.report.content import ReportInput
from counterfoil.report.findings import findings_of
from counterfoil.report.paper_tables import markdown_cell, paper_record
from counterfoil.report.places import place_record
from counterfoil.report.surrogates import marked, surrogates_among
from counterfoil.report.wording import ABSENT, interval, number, p_value
from counterfoil.types import Drop, Skipped

SUMMARY_FORMAT = 1  # raised when a key of summary.json changes its meaning or goes

ACCURACY_COLUMNS = (
    "model", "attribute", "edit", "level", "n", "photos", "top1", "top1_low", "top1_high", "top5", "top5_low",
    "top5_high", "tied_group", "surrogate",
)  # fmt: skip
_PROBABILITIES = {"p_value", "p_holm", "p_bh"}
_DECIMALS = 4
_DIGITS = 6  # significant ones, so that small p values survive


def drops_csv(drops: Sequence[Drop]) -> str:
    """The table of drops; accuracies and shares in percent, drops in points, `nan` where there is no number."""
    names = [field.name for field in fields(Drop)]
    return csv_text(names, ([_cell(name, getattr(row, name)) for name in names] for row in drops))


def skipped_csv(skipped: Sequence[Skipped]) -> str:
    """Every picture that was left out, with its reason."""
    names = [field.name for field in fields(Skipped)]
    return csv_text(names, ([getattr(row, name) for name in names] for row in skipped))


def accuracies_csv(rows: Sequence[GroupAccuracy], surrogates: tuple[str, ...] = ()) -> str:
    """The table of accuracies in percent; "all" stands where attributes, edits or levels are together."""
    lines = ([_cell(name, value) for name, value in _flat(row, surrogates).items()] for row in rows)
    return csv_text(ACCURACY_COLUMNS, lines)


def accuracies_markdown(rows: Sequence[GroupAccuracy], surrogates: tuple[str, ...] = ()) -> str:
    """The table of accuracies for a README or a pull request."""
    lines = [
        "| model | attribute | edit | level | n | top-1 [95 %] | top-5 [95 %] | tied group |",
        "|---|---|---|---|--:|--:|--:|---|",
    ]
    for row in rows:
        names = [markdown_cell(name) for name in (marked(row.model, surrogates), row.attribute, row.edit, row.level)]
        rates = [f"{number(rate.value)} {interval(rate)}" if rate.n else ABSENT for rate in (row.top1, row.top5)]
        lines.append(f"| {' | '.join([*names, str(row.top1.n), *rates, row.letters])} |")
    return "\n".join(lines) + "\n"


def markdown(drops: Sequence[Drop], surrogates: tuple[str, ...] = ()) -> str:
    """The table of drops for a README or a pull request."""
    lines = [
        "| model | attribute | edit | level | n | original | accuracy | drop [95 %] | p (Holm) |",
        "|---|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in drops:
        names = [markdown_cell(name) for name in (marked(row.model, surrogates), row.attribute, row.edit, row.level)]
        lines.append(f"| {' | '.join([*names, str(row.n), *_told_drop(row)])} |")
    return "\n".join(lines) + "\n"


def _told_drop(row: Drop) -> list[str]:
    """Accuracy before and after, drop and p; of too few photos nothing is told."""
    if row.n < FEWEST_PHOTOS:
        return [ABSENT, ABSENT, "too few" if row.n else "no data", ABSENT]
    drop = f"{number(row.drop)} {interval(row)}"
    return [number(row.accuracy_original), number(row.accuracy), drop, p_value(row.p_holm)]


def summary(content: ReportInput) -> dict[str, object]:
    """What summary.json holds: plain JSON, null where there is no number."""
    findings = findings_of(content)
    surrogates = surrogates_among(content.run)
    return {
        "format": SUMMARY_FORMAT,
        "title": content.title,
        "headline": [finding.text for finding in findings],
        "findings": [{"model": finding.model, "kind": finding.kind, "text": finding.text} for finding in findings],
        "counts": {
            "photos": content.photos,
            "variants": content.variants,
            "skipped": len(content.skipped),
            "unscored": dict(content.unscored),
        },
        "drops": [_record(row) for row in content.drops],
        "attributes": [
            {**_record(row), "tied_group": content.letters.get((row.attribute, row.model), "")}
            for row in content.attribute_drops
        ],
        "means": [
            _plain({"model": model, "drop": row.value, "ci_low": row.ci_low, "ci_high": row.ci_high, "n": row.n})
            for model, row in content.means.items()
        ],
        "contrasts": [contrast_record(row) for row in content.contrasts],
        "skipped": [
            {"stage": stage, "edit": edit, "reason": reason, "count": times}
            for (stage, edit, reason), times in skipped_by_reason(content.skipped).items()
        ],
        "accuracies": [accuracy_record(row, surrogates) for row in content.accuracies],
        "confidences": [_plain(confidence_record(row)) for row in confidence_rows(content.confidences)],
        "places": [place_record(row) for row in content.places if row.found.n.any()],
        "surrogates": list(surrogates),
        "papers": [paper_record(table) for table in content.papers],
        "run": asdict(content.run),
        "runs": [asdict(run) for run in content.runs],
    }


def skipped_by_reason(skipped: Iterable[Skipped]) -> dict[tuple[str, str, str], int]:
    """How often each stage, edit and reason occurs, most frequent first."""
    return dict(Counter((row.stage, row.edit, row.reason) for row in skipped).most_common())


def csv_text(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    return text.getvalue()


def _cell(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    rounded = _rounded(name, value)
    return f"{rounded:.{_DIGITS}g}" if name in _PROBABILITIES else f"{rounded:.{_DECIMALS}f}"


def accuracy_record(row: GroupAccuracy, surrogates: tuple[str, ...]) -> dict[str, object]:
    """One row of the table of accuracies as plain JSON."""
    return _plain(_flat(row, surrogates))


def _flat(row: GroupAccuracy, surrogates: tuple[str, ...]) -> dict[str, object]:
    group = (row.model, row.attribute, row.edit, row.level, row.top1.n, row.photos)
    rates = (*_bounded(row.top1), *_bounded(row.top5))
    return dict(zip(ACCURACY_COLUMNS, (*group, *rates, row.letters, row.model in surrogates), strict=True))


def _bounded(rate: Estimate) -> tuple[float, float, float]:
    return rate.value, rate.ci_low, rate.ci_high


def contrast_record(row: Contrast) -> dict[str, object]:
    """How far two models lie apart under one condition, as plain JSON."""
    values = row._asdict()
    return {**values.pop("condition")._asdict(), **_plain(values)}


def _record(row: Drop) -> dict[str, object]:
    return _plain(asdict(row))


def _plain(values: dict[str, object]) -> dict[str, object]:
    return {
        name: (None if math.isnan(value) else _rounded(name, value)) if isinstance(value, float) else value
        for name, value in values.items()
    }


def _rounded(name: str, value: float) -> float:
    """As many digits as are told; adding 0.0 turns a negative zero into zero."""
    return float(f"{value:.{_DIGITS}g}") if name in _PROBABILITIES else round(value, _DECIMALS) + 0.0
