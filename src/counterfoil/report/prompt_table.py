"""Templates side by side, as a table for the terminal and as plain JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.analyse import Estimate

_HEAD = ("workspace", "attribute", "template", "pictures", "shared failures %", "verified %", "diversity")


@dataclass(frozen=True)
class TemplateRow:
    """One template of one workspace; rates in percent, distances as 1 - cosine."""

    workspace: str
    attribute: str
    template: str
    prompt: str  # one of its prompts, where pictures were painted
    pictures: int
    failures: Estimate  # of the pictures, those that mining kept
    verified: Estimate  # of the pictures that people decided on, those that they kept
    diversity: Estimate  # mean distance between two pictures of one class


def prompt_table(rows: Sequence[TemplateRow]) -> str:
    """The table, columns aligned; a dash where there is no number."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    return "\n".join("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
                     for line in cells)  # fmt: skip


def prompt_json(rows: Sequence[TemplateRow]) -> list[dict[str, Any]]:
    """The same as plain JSON, null where there is no number."""
    return [
        {
            "workspace": row.workspace, "attribute": row.attribute, "template": row.template, "prompt": row.prompt,
            "pictures": row.pictures, "shared_failures_percent": _plain(row.failures),
            "verified_percent": _plain(row.verified), "diversity": _plain(row.diversity),
        }
        for row in rows
    ]  # fmt: skip


def _cells(row: TemplateRow) -> tuple[str, ...]:
    rates = (_told(row.failures, 1), _told(row.verified, 1), _told(row.diversity, 3))
    return (row.workspace, row.attribute, row.template, f"{row.pictures:,}", *rates)


def _told(value: Estimate, decimals: int) -> str:
    if not value.n:
        return "-"
    low, high = (f"{bound:.{decimals}f}" for bound in (value.ci_low, value.ci_high))
    return f"{value.value:.{decimals}f} [{low}, {high}] n={value.n}"


def _plain(value: Estimate) -> dict[str, float | int | None]:
    return {name: None if math.isnan(number) else number for name, number in value._asdict().items()}
