"""Markdown: findings, the tables of drops and accuracies, and the papers' tables."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.report.content import PaperTable, ReportContent
from counterfoil.report.headline import write_headline
from counterfoil.report.title import write_title
from counterfoil.report.words import ABSENT, format_interval, format_number, format_p_value, mark_surrogate
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Drop

PAPER_HEADINGS = {"scored": "Scored as the paper does", "published": "Published numbers beside yours"}


def export_markdown(content: ReportContent) -> dict[str, str]:
    """Return the findings, the table of drops or of accuracies, and the paper's tables."""
    surrogates = find_surrogates(content.run)
    parts = [
        f"# {write_title(content)}\n",
        "\n".join(f"- {finding.text}" for finding in write_headline(content)) + "\n",
    ]
    parts += [f"> {note}\n" for note in content.run.notes]
    if content.drops or not content.accuracies:
        parts.append(drops_to_markdown(content.drops, surrogates))
    if content.accuracies:
        parts.append(_accuracies_to_markdown(content.accuracies, surrogates))
    for kind, heading in PAPER_HEADINGS.items():
        tables = [table for table in content.papers if table.kind == kind]
        if tables:
            parts += [f"## {heading}\n", *(_paper_to_markdown(table) for table in tables)]
    return {"results.md": "\n".join(parts)}


def drops_to_markdown(drops: Sequence[Drop], surrogates: tuple[str, ...] = ()) -> str:
    """Return the table of drops for a README or a pull request."""
    lines = [
        "| model | attribute | edit | level | n | original | accuracy | drop [95 %] | p (adjusted) |",
        "|---|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in drops:
        numbers = [ABSENT, ABSENT, "too few" if row.n else "no data", ABSENT]
        if row.n >= FEWEST_PHOTOS:
            drop = f"{format_number(row.drop)} {format_interval(row)}"
            numbers = [
                format_number(row.accuracy_original),
                format_number(row.accuracy),
                drop,
                format_p_value(row.p_adjusted) if row.n_reference >= FEWEST_PHOTOS else ABSENT,
            ]
        lines.append(_line([*_row_names(row, surrogates), str(row.n), *numbers]))
    return "\n".join(lines) + "\n"


def _accuracies_to_markdown(rows: Sequence[GroupAccuracy], surrogates: tuple[str, ...]) -> str:
    lines = [
        "| model | attribute | edit | level | n | top-1 [95 %] | top-5 [95 %] | tied group |",
        "|---|---|---|---|--:|--:|--:|---|",
    ]
    for row in rows:
        rates = [
            f"{format_number(rate.value)} {format_interval(rate)}" if rate.n else ABSENT
            for rate in (row.top1, row.top5)
        ]
        lines.append(_line([*_row_names(row, surrogates), str(row.top1.n), *rates, row.letters]))
    return "\n".join(lines) + "\n"


def _row_names(row: Drop | GroupAccuracy, surrogates: tuple[str, ...]) -> list[str]:
    return [_escape(name) for name in (mark_surrogate(row.model, surrogates), row.attribute, row.edit, row.level)]


def _paper_to_markdown(table: PaperTable) -> str:
    """The table with heading, rule and footnotes; rows of this run in bold."""
    lines = [f"### {table.title}\n", f"{table.rule}\n"]
    lines += [_line(table.columns), _line(["---"] * len(table.columns))]
    for place, row in enumerate(table.rows):
        cells = [_escape(format_cell(value, table.decimals)) for value in row]
        lines.append(_line([f"**{cell}**" if place in table.own and cell else cell for cell in cells]))
    return "\n".join([*lines, "", *(f"{note}\n" for note in table.footnotes)])


def format_cell(value: str | float | None, decimals: int) -> str:
    """Format a cell of a paper's table; a dash where there is no number."""
    if isinstance(value, str):
        return value
    return ABSENT if value is None else format_number(value, decimals)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Escape text that would break a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
