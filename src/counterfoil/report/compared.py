"""A comparison of two models for the terminal, as CSV and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.analyse import FEWEST_PHOTOS, Contrast
from counterfoil.report.models_apart import told_apart
from counterfoil.report.tables import contrast_record, csv_text
from counterfoil.report.wording import number, p_value

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
    return (*names, *values, interval, p_value(row.p_holm), "differ" if told_apart(row) else "")


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if 3 <= column <= 8 else cell.ljust(width)
