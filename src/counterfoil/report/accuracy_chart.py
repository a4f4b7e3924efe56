"""The geometry of the chart of accuracies; the template draws it as it draws drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from counterfoil.analyse import FEWEST_PHOTOS
from counterfoil.analyse.accuracies import ALL, GroupAccuracy
from counterfoil.report.axis import Axis
from counterfoil.report.drops_chart import LANE, DropsChart, Mark, Row
from counterfoil.report.looks import Style, styles
from counterfoil.report.surrogates import MARK
from counterfoil.report.wording import attribute_name, count, interval, number

_MOST_LEVELS = 25  # of an edit; with more, such as one per prompt, the table alone has each
PERCENT = Axis(0.0, 100.0, tuple(range(0, 101, 10)))


def accuracy_chart(rows: Sequence[GroupAccuracy], surrogates: Sequence[str]) -> DropsChart | None:
    """Every group of pictures, a lane per model; hollow marks are surrogates. None where nothing can be drawn."""
    if not any(_drawable(row) for row in rows):
        return None
    looks = styles([row.model for row in rows])
    groups: dict[tuple[str, str, str], list[GroupAccuracy]] = {}
    levels = Counter((row.attribute, row.edit) for row in rows)
    for row in rows:
        if row.level == ALL or levels[row.attribute, row.edit] <= _MOST_LEVELS * len(looks):
            groups.setdefault((row.attribute, row.edit, row.level), []).append(row)
    shelves: dict[str, list[Row]] = {}
    for (attribute, _, _), members in groups.items():
        shelves.setdefault(attribute, []).append(_row(members, looks, surrogates))
    named = [(name, "all pictures" if name == ALL else attribute_name(name), lines) for name, lines in shelves.items()]
    return DropsChart(PERCENT.ticks, PERCENT.at(0), named)


def _drawable(row: GroupAccuracy) -> bool:
    return row.photos >= FEWEST_PHOTOS


def _row(members: Sequence[GroupAccuracy], looks: dict[str, Style], surrogates: Sequence[str]) -> Row:
    marks = [
        Mark(
            looks[row.model],
            y=LANE * place + LANE // 2,
            at=PERCENT.at(row.top1.value),
            low=PERCENT.at(row.top1.ci_low),
            high=PERCENT.at(row.top1.ci_high),
            filled=row.model not in surrogates,
            told=_told(row, surrogates),
        )
        for place, row in enumerate(members)
        if _drawable(row)
    ]
    fewest, most = min(row.top1.n for row in members), max(row.top1.n for row in members)
    pictures = f"n = {count(most)}" if fewest == most else f"n = {count(fewest)}–{count(most)}"
    first = members[0]
    edit = "together" if first.edit == ALL else first.edit
    level = ("together" if first.edit != ALL else "") if first.level == ALL else first.level
    return Row(edit, level, pictures, LANE * len(members), marks, [(looks[row.model], _value(row)) for row in members])


def _value(row: GroupAccuracy) -> str:
    if _drawable(row):
        return f"{number(row.top1.value)} {interval(row.top1)}"
    return "too few" if row.top1.n else "no data"


def _told(row: GroupAccuracy, surrogates: Sequence[str]) -> str:
    kind = " ".join(name for name in (row.attribute, row.edit, row.level) if name not in (ALL, "")) or "all pictures"
    mark = f", {MARK}" if row.model in surrogates else ""
    return (
        f"{row.model}{mark}, {kind}: right on {number(row.top1.value)} %, 95 % interval {number(row.top1.ci_low)} to "
        f"{number(row.top1.ci_high)}, n = {row.top1.n}"
    )
