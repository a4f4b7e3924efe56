"""The ranking of many models: by right answers on edited pictures, ranks as ranges, ties joined by lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from counterfoil.report.attribute_chart import order_attributes
from counterfoil.report.attribute_words import capital_subject, describe_attribute
from counterfoil.report.chart_parts import Axis, Style, Tick
from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import find_largest_loss, has_enough
from counterfoil.report.forest_chart import Lane, accuracy_lane, drop_lane
from counterfoil.report.headline import make_drop_table
from counterfoil.report.words import capitalize_first, format_number, join_words, name_attribute
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.families import MAIN_FAMILY

_MOST_ATTRIBUTES = 8  # columns
_MOST_NAMED = 4
_PLAIN = Style("", 0, 4, "")


class RankCell(NamedTuple):
    """A mark with its whisker, in percent of the cell's width."""

    text: str
    at: float
    low: float
    high: float
    filled: bool


class RankColumn(NamedTuple):
    """The scale of a column."""

    name: str
    ticks: list[Tick]
    zero: float | None


class RankRow(NamedTuple):
    """One model."""

    rank: str
    model: str
    unedited: str
    edited: str
    cells: list[RankCell | None]  # accuracy on edited pictures, then points lost by attribute
    ties: list[int]  # places of the models that cannot be told apart from it, itself included
    lines: list[str]  # for each line of ties: "first", "on", or empty
    may_be_best: bool


class Ranking(NamedTuple):
    """The table of many models, best first."""

    sentence: str
    columns: list[RankColumn]
    rows: list[RankRow]


def build_ranking(content: ReportContent) -> Ranking:
    """Build the table; models that share a letter cannot be told apart."""
    order = sorted(
        (row for row in content.edited_accuracies if row.model in content.judged_models),
        key=lambda row: -row.top1.value,
    )
    family = {row.attribute: row.family for row in content.verdicts}
    attributes = [name for name in order_attributes(content) if family[name] == MAIN_FAMILY][:_MOST_ATTRIBUTES]
    main = {(row.model, row.attribute): row.main for row in content.verdicts if has_enough(row.main)}
    lost = [drop_lane(row, _PLAIN) for (_, name), row in main.items() if name in attributes]
    points = Axis.linear([bound for lane in lost for bound in (lane.low, lane.high)] or [1.0], most_ticks=5)
    percent = Axis.tight([bound for row in order for bound in (row.top1.ci_low, row.top1.ci_high)], most_ticks=4)
    unedited = {row.model: row.accuracy for row in content.overall_accuracies}
    rows = []
    for place, row in enumerate(order):
        ties = [other for other, there in enumerate(order) if _share(row, there)]
        drops = [main.get((row.model, name)) for name in attributes]
        rows.append(
            RankRow(
                rank=_range(ties, place, order),
                model=row.model,
                unedited=format_number(unedited.get(row.model, float("nan"))),
                edited=format_number(row.top1.value),
                cells=[
                    _cell(accuracy_lane(row, _PLAIN, ()), percent),
                    *(None if drop is None else _cell(drop_lane(drop, _PLAIN), points) for drop in drops),
                ],
                ties=ties,
                lines=_lines(order, place),
                may_be_best=_share(row, order[0]),
            )
        )
    names = [capitalize_first(name_attribute(name)) for name in attributes]
    columns = [RankColumn("Edited, with interval", percent.ticks, None)]
    columns += [RankColumn(name, points.ticks, points.at(0)) for name in names]
    return Ranking(_describe(content, order), columns, rows)


def _share(first: GroupAccuracy, second: GroupAccuracy) -> bool:
    return first is second or bool(set(first.letters) & set(second.letters))


def _range(ties: Sequence[int], place: int, order: Sequence[GroupAccuracy]) -> str:
    """The ranks that a model may have: below those clearly better, above those clearly worse."""
    better = sum(other < place and other not in ties for other in range(len(order)))
    worse = sum(other > place and other not in ties for other in range(len(order)))
    first, last = better + 1, len(order) - worse
    return str(first) if first == last else f"{first} to {last}"


def _lines(order: Sequence[GroupAccuracy], place: int) -> list[str]:
    """For each group of ties, whether its line passes a row; a group of one has no line."""
    sizes = Counter(letter for row in order for letter in row.letters)
    letters = sorted((letter for letter, size in sizes.items() if size > 1), key=lambda letter: _span(order, letter))
    return [
        "" if not first <= place <= last else "first" if place == first else "last" if place == last else "on"
        for first, last in (_span(order, letter) for letter in letters)
    ]


def _span(order: Sequence[GroupAccuracy], letter: str) -> tuple[int, int]:
    places = [place for place, row in enumerate(order) if letter in row.letters]
    return places[0], places[-1]


def _cell(lane: Lane, axis: Axis) -> RankCell:
    low, high = (min(100.0, max(0.0, axis.at(bound))) for bound in (lane.low, lane.high))
    return RankCell(lane.text, axis.at(lane.value), low, high, lane.filled)


def _describe(content: ReportContent, order: Sequence[GroupAccuracy]) -> str:
    best = [row for row in order if _share(row, order[0])]
    shares = [format_number(row.top1.value, 0) for row in (best[-1], best[0])]
    right = f"{shares[0]} %" if shares[0] == shares[1] else f"{shares[0]} to {shares[1]} %"
    names = join_words([row.model for row in best]) if len(best) <= _MOST_NAMED else f"{len(best)} models"
    text = f"{names} {'is' if len(best) == 1 else 'are'} right on {right} of the edited photos"
    text += "." if len(best) == 1 else f"; {content.photos:,} photos cannot tell them apart."
    table = make_drop_table(content)
    leads = Counter(lead.attribute for row in order if (lead := find_largest_loss(row.model, table)) is not None)
    if not leads:
        return text
    attribute, count = leads.most_common(1)[0]
    verb = describe_attribute(attribute).costs
    return f"{text} {capital_subject(attribute)} {verb} {count} of {len(order)} models most."
