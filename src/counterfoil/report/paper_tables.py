"""Tables by a paper's own rule, and published numbers, as JSON and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from counterfoil.report.content import PaperTable
from counterfoil.report.wording import ABSENT, number

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
        "rows": [[_plain(value) for value in row] for row in table.rows],
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


def _plain(value: str | float | None) -> str | float | None:
    return None if isinstance(value, float) and math.isnan(value) else value
