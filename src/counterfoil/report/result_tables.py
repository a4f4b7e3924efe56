"""Comparison of two models as text; paper tables as JSON and Markdown; CSV, JSON and Markdown tables."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields

from counterfoil.report.curves import confidence_record, confidence_rows, place_record
from counterfoil.report.findings import findings_of
from counterfoil.report.model_findings import differ_significantly
from counterfoil.report.report_input import PaperTable, ReportInput
from counterfoil.report.words import ABSENT, interval, marked, number, p_value
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.paired import Contrast
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Drop, Skipped

HEADINGS = {"scored": "Scored as the paper does", "published": "Published numbers beside yours"}


def cell_text(value: str | float | None, decimals: int) -> str:
    """A cell as it is read; a dash where there is no number."""
    if isinstance(value, str):
        return value
    return ABSENT if value is None else number(value, decimals)


def paper_record(table: PaperTable) -> dict[str, object]:
    """A table as plain JSON, null where there is no number."""
    return {
        "kind": table.kind,
        "title": table.title,
        "rule": table.rule,
        "columns": list(table.columns),
        "rows": [[_plain_cell(value) for value in row] for row in table.rows],
        "own": sorted(table.own),
        "footnotes": list(table.footnotes),
    }


def papers_markdown(tables: Sequence[PaperTable]) -> list[str]:
    """The tables with headings, rules and footnotes; rows of this run in bold."""
    parts = []
    for kind, heading in HEADINGS.items():
        members = [table for table in tables if table.kind == kind]
        if members:
            parts += [f"## {heading}\n", *(_markdown(table) for table in members)]
    return parts


def _markdown(table: PaperTable) -> str:
    lines = [f"### {table.title}\n", f"{table.rule}\n"]
    lines += [_line(table.columns), _line(["---"] * len(table.columns))]
    for place, row in enumerate(table.rows):
        cells = [markdown_cell(cell_text(value, table.decimals)) for value in row]
        lines.append(_line([f"**{cell}**" if place in table.own and cell else cell for cell in cells]))
    return "\n".join([*lines, "", *(f"{note}\n" for note in table.footnotes)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_cell(text: str) -> str:
    """Text that cannot break out of a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _plain_cell(value: str | float | None) -> str | float | None:
    return None if isinstance(value, float) and math.isnan(value) else value


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
    surrogates = find_surrogates(content.run)
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


COMPARISON_FORMAT = 1  # raised when a key changes its meaning or goes

_HEADINGS = ("attribute", "edit", "level", "n", "first", "second", "difference", "95 %", "p (Holm)", "")


def comparison_text(rows: Sequence[Contrast]) -> str:
    """An aligned table; what the photos tell apart is marked, and few photos are named as such."""
    cells = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(_aligned(cell, width, column) for column, (cell, width) in enumerate(zip(line, widths, strict=True)))
        .rstrip()
        for line in cells
    )  # fmt: skip


def comparison_csv(rows: Sequence[Contrast]) -> str:
    """One line per row; numbers with four decimals, `nan` where there is none."""
    records = [contrast_record(row) for row in rows]
    lines = [["nan" if value is None else value for value in record.values()] for record in records]
    return csv_text(list(records[0]) if records else [], lines)


def comparison_json(
    accuracy: Contrast,
    attributes: Sequence[Contrast],
    levels: Sequence[Contrast],
    kind: str = "drops",
    surrogates: Sequence[str] = (),
) -> dict[str, object]:
    """Plain JSON, null where there is no number; every difference is the first minus the second."""
    return {
        "format": COMPARISON_FORMAT,
        "first": accuracy.first,
        "second": accuracy.second,
        "kind": kind,
        "surrogates": list(surrogates),
        "accuracy": contrast_record(accuracy),
        "attributes": [contrast_record(row) for row in attributes],
        "levels": [contrast_record(row) for row in levels],
    }


def comparison_sentence(accuracy: Contrast, kind: str = "drops") -> str:
    """How the two do on the unedited photos, or on all pictures where there are none."""
    pictures = "the unedited photos" if kind == "drops" else "all pictures"
    return (
        f"On {pictures} {accuracy.first} is right on {number(accuracy.value_first)} % and {accuracy.second} "
        f"on {number(accuracy.value_second)} %: difference {number(accuracy.difference)} points "
        f"[{number(accuracy.ci_low)}, {number(accuracy.ci_high)}], n = {accuracy.n}."
    )


def _cells(row: Contrast) -> tuple[str, ...]:
    names = (row.condition.attribute, row.condition.edit, row.condition.level, str(row.n))
    if row.n < FEWEST_PHOTOS:
        return (*names, "", "", "", "", "", "too few")
    interval = f"[{number(row.ci_low)}, {number(row.ci_high)}]"
    values = (number(row.value_first), number(row.value_second), number(row.difference))
    return (*names, *values, interval, p_value(row.p_holm), "differ" if differ_significantly(row) else "")


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if 3 <= column <= 8 else cell.ljust(width)
