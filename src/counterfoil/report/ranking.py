"""The ranking of many models: by right answers on edited pictures, ranks as ranges, ties joined by lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from counterfoil.report.attribute_chart import order_attributes
from counterfoil.report.attribute_words import capital_subject, describe_attribute
from counterfoil.report.chart_parts import Axis, Style, Tick
from counterfoil.report.cluster_table import name_clusters
from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import find_largest_loss, has_enough
from counterfoil.report.forest_chart import Lane, accuracy_lane, drop_lane
from counterfoil.report.headline import make_drop_table
from counterfoil.report.words import capitalize_first, format_number, join_words, name_attribute
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.families import MAIN_FAMILY

_MOST_ATTRIBUTES = 8  # columns
_MOST_NAMED = 4
_MOST_LANES = 12  # of lines that join ties
_MOST_OPEN = 30  # models; of more, only the first and the last are open
_FIRST_OPEN, _LAST_OPEN = 10, 3
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
    lines: list[str]  # of each lane, what it shows of a line that joins ties: "first", "on", "last", or empty
    may_be_best: bool
    cluster: str  # its letter; empty where the models form none
    folded: bool  # in the middle of a long table: hidden by the page's script until it is asked for


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
    rows, lines, clusters = [], _draw_lines(order), name_clusters(content)
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
                lines=lines[place],
                may_be_best=_share(row, order[0]),
                cluster=clusters.get(row.model, ""),
                folded=len(order) > _MOST_OPEN and _FIRST_OPEN <= place < len(order) - _LAST_OPEN,
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


def _draw_lines(order: Sequence[GroupAccuracy]) -> list[list[str]]:
    """For each row, what each lane shows of the lines that join ties; a group of one has no line.

    Lines that do not overlap share a lane. Where that needs too many lanes there are none: ranks tell the same.
    """
    sizes = Counter(letter for row in order for letter in row.letters)
    lanes: list[list[tuple[int, int]]] = []
    for first, last in sorted(_span(order, letter) for letter, size in sizes.items() if size > 1):
        free = next((lane for lane in lanes if lane[-1][1] < first), None)
        if free is None:
            lanes.append([(first, last)])
        else:
            free.append((first, last))
    if len(lanes) > _MOST_LANES:
        return [[] for _ in order]
    return [[_draw_lane(lane, place) for lane in lanes] for place in range(len(order))]


def _draw_lane(lane: Sequence[tuple[int, int]], place: int) -> str:
    for first, last in lane:
        if first <= place <= last:
            return "first" if place == first else "last" if place == last else "on"
    return ""


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
