"""The comparison of two models, attribute by attribute: as an aligned table, CSV, JSON and a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.report.csv_tables import to_csv
from counterfoil.report.drop_findings import differ_significantly
from counterfoil.report.summary_json import contrast_record
from counterfoil.report.words import format_interval, format_number, format_p_value
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.drops import FEWEST_PHOTOS

COMPARISON_FORMAT = 1  # raised when a key changes its meaning or is removed

_HEADINGS = ("attribute", "edit", "level", "n", "first", "second", "difference", "95 %", "p (adjusted)", "")
_NUMBERS = range(3, 9)  # right-aligned columns


def comparison_to_text(rows: Sequence[Contrast]) -> str:
    """Return an aligned table; significant differences and rows of few photos are marked."""
    lines = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(row: Contrast) -> tuple[str, ...]:
    names = (row.condition.attribute, row.condition.edit, row.condition.level, str(row.n))
    if row.n < FEWEST_PHOTOS:
        return (*names, "", "", "", "", "", "too few")
    values = (format_number(row.value_first), format_number(row.value_second), format_number(row.difference))
    return (
        *names,
        *values,
        format_interval(row),
        format_p_value(row.p_adjusted),
        "differ" if differ_significantly(row) else "",
    )


def comparison_to_csv(rows: Sequence[Contrast]) -> str:
    """Return one line per row; numbers with four decimals, `nan` where there is none."""
    records = [contrast_record(row) for row in rows]
    lines = [["nan" if value is None else value for value in record.values()] for record in records]
    return to_csv(list(records[0]) if records else [], lines)


def comparison_to_json(
    accuracy: Contrast,
    attributes: Sequence[Contrast],
    levels: Sequence[Contrast],
    kind: str = "drops",
    surrogates: Sequence[str] = (),
) -> dict[str, object]:
    """Return plain JSON, null where there is no number; every difference is the first minus the second."""
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


def describe_comparison(accuracy: Contrast, kind: str = "drops") -> str:
    """Describe both models' accuracy on the unedited photos, or on all pictures where there are none."""
    pictures = "the unedited photos" if kind == "drops" else "all pictures"
    return (
        f"On {pictures} {accuracy.first} is right on {format_number(accuracy.value_first)} % and {accuracy.second} "
        f"on {format_number(accuracy.value_second)} %: difference {format_number(accuracy.difference)} points "
        f"{format_interval(accuracy)}, n = {accuracy.n}."
    )
