"""Which of an attribute's rows speaks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from counterfoil.analyse import significant
from counterfoil.report.finding import NO_ATTRIBUTE
from counterfoil.types import Drop


def costliest(rows: Sequence[Drop]) -> list[Drop]:
    """The row by which an attribute is judged: its costliest significant one, or where none is, its costliest."""
    telling = [row for row in rows if row.attribute not in NO_ATTRIBUTE]
    clear = {row.attribute: row for row in worst_by_attribute(telling, costs)}
    return [clear.get(row.attribute, row) for row in worst_by_attribute(telling)]


def worst_by_attribute(rows: Iterable[Drop], wanted: Callable[[Drop], bool] = lambda row: True) -> list[Drop]:
    """Of each attribute the row with the largest drop, of those that are wanted."""
    worst: dict[str, Drop] = {}
    for row in filter(wanted, rows):
        if row.attribute not in worst or row.drop > worst[row.attribute].drop:
            worst[row.attribute] = row
    return list(worst.values())


def costs(row: Drop) -> bool:
    """Whether an edit costs accuracy for sure."""
    return significant(row) and row.drop > 0


def leaves_out_zero(row: Drop) -> bool:
    """Whether the interval says so before any correction."""
    return row.ci_low > 0 or row.ci_high < 0
