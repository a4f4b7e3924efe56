"""Attributes by models at a glance; the template draws it as a table, so that it reads, sorts and copies."""

from __future__ import annotations

import math
from typing import NamedTuple

from counterfoil.analyse import FEWEST_PHOTOS, Estimate, significant
from counterfoil.report.content import ReportInput
from counterfoil.report.looks import Style, styles
from counterfoil.report.wording import attribute_name, interval, number, sentence_start
from counterfoil.types import Drop

_STRONGEST = 60.0  # percent of colour: text on it must stay readable
_LEAST_FULL_HEAT = 10.0  # points; a table of tiny drops must not glow


class Cell(NamedTuple):
    """What one attribute costs one model."""

    style: Style
    drop: float
    told: str
    interval: str
    letters: str  # of the tied group; models that share one cannot be told apart
    significant: bool
    heat: float  # percent of colour
    worse: bool


class HeatMap(NamedTuple):
    """One row per attribute, one column per model."""

    looks: list[Style]
    rows: list[tuple[str, list[Cell | None]]]
    lettered: bool


def heat_map(content: ReportInput) -> HeatMap | None:
    """All edits and levels of an attribute together; None where there is but one model, or nothing to show."""
    rows = [row for row in content.attribute_drops if row.attribute != "presence" and row.n >= FEWEST_PHOTOS]
    looks = list(styles([row.model for row in content.drops]).values())
    if len(looks) < 2 or not rows:
        return None
    full = max(_LEAST_FULL_HEAT, *(abs(row.drop) for row in rows))
    found = {(row.attribute, row.model): row for row in rows}
    lines = [
        (
            sentence_start(attribute_name(name)),
            [_cell(found.get((name, style.model)), style, full, content) for style in looks],
        )
        for name in dict.fromkeys(row.attribute for row in rows)
    ]
    if content.means:
        lines.append(("Mean of the edits", [_mean(content.means.get(style.model), style, full) for style in looks]))
    return HeatMap(looks, lines, any(content.letters.values()))


def _mean(row: Estimate | None, style: Style, full: float) -> Cell | None:
    """ImageNet-E's summary: every edit and level counts once, control and diagnostics left out."""
    if row is None or row.n < FEWEST_PHOTOS or math.isnan(row.value):
        return None
    clear = row.ci_low > 0 or row.ci_high < 0
    heat = round(min(_STRONGEST, _STRONGEST * abs(row.value) / full), 1)
    return Cell(style, row.value, number(row.value), interval(row), "", clear, heat, row.value > 0)


def _cell(row: Drop | None, style: Style, full: float, content: ReportInput) -> Cell | None:
    if row is None or math.isnan(row.drop):
        return None
    return Cell(
        style,
        row.drop,
        number(row.drop),
        interval(row),
        content.letters.get((row.attribute, row.model), ""),
        significant(row),
        round(_STRONGEST * abs(row.drop) / full, 1),
        row.drop > 0,
    )
