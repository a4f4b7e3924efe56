"""The report's charts of points lost: the first one with every attribute, and one with an attribute's edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from counterfoil.report.chart_parts import Style
from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import has_enough
from counterfoil.report.forest_chart import (
    ForestChart,
    Lane,
    RowName,
    accuracy_lane,
    build_percent_chart,
    build_points_chart,
    drop_lane,
    group,
)
from counterfoil.report.headline import divide_pictures, kind_name
from counterfoil.report.words import capitalize_first, describe_change, describe_row, name_attribute
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.families import MAIN_FAMILY
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Attribute, Drop

CHANGED = {"position": "moved", "direction": "turned"}  # what is done to an object that was made small before
_MOST_KINDS = 16  # of pictures; some collections have hundreds

Styles = Mapping[str, Style]


def order_attributes(content: ReportContent) -> list[Attribute]:
    """The attributes of the first chart by the mean loss to their main edits, costliest first; surface edits last."""
    verdicts = [row for row in content.verdicts if row.model in content.judged_models and has_enough(row.main)]
    losses = group([(row.attribute, row.main.drop_vs_reference) for row in verdicts])
    family = {row.attribute: row.family for row in verdicts}
    return sorted(losses, key=lambda name: (family[name] != MAIN_FAMILY, -sum(losses[name]) / len(losses[name])))


def main_rows(content: ReportContent, attribute: Attribute) -> list[Drop]:
    """The row of an attribute's main edit of every judged model that has enough photos."""
    own = [row for row in content.verdicts if row.attribute == attribute and row.model in content.judged_models]
    return [row.main for row in own if has_enough(row.main)]


def build_losses_chart(content: ReportContent, styles: Styles) -> ForestChart | None:
    """Build the first chart: one edit of each attribute, the same for every model; None where photos are too few."""
    main = {row.attribute for row in content.verdicts if row.family == MAIN_FAMILY}
    rows: dict[RowName, list[Lane]] = {}
    for attribute in order_attributes(content):
        drops = main_rows(content, attribute)
        if attribute in main:
            name = capitalize_first(name_attribute(attribute))
            rows[RowName(name, describe_against(drops[0]), attribute)] = [
                drop_lane(row, styles[row.model]) for row in drops
            ]
    return build_points_chart(rows)


def build_edits_chart(drops: Sequence[Drop], styles: Styles) -> ForestChart | None:
    """Build the chart of some edits of an attribute, the costliest first."""
    lanes = group(
        [((row.edit, row.level), (row, drop_lane(row, styles[row.model]))) for row in drops if has_enough(row)]
    )
    order = sorted(lanes.values(), key=lambda members: -sum(lane.value for _, lane in members) / len(members))
    return build_points_chart(
        {
            RowName(capitalize_first(describe_row(members[0][0])), _note(members[0][0])): [lane for _, lane in members]
            for members in order
        }
    )


def describe_against(row: Drop) -> str:
    """Describe the edit of a row, and its reference where that is not the original."""
    if row.reference == "original":
        return describe_row(row)
    changed = CHANGED.get(row.attribute)
    if changed is None:
        return f"{describe_row(row)}, against {describe_reference(row)}"
    return f"{changed} against not {changed}, {describe_reference(row).removeprefix('the object ')}"


def describe_reference(row: Drop) -> str:
    """Describe what an edit is compared with."""
    if row.reference == "original":
        return "the unedited photo"
    edit, _, level = row.reference.partition(" ")
    return describe_change(edit, level)


def _note(row: Drop) -> str:
    return "" if row.reference == "original" else f"against {describe_reference(row)}"


def build_kinds_chart(content: ReportContent, styles: Styles) -> ForestChart | None:
    """Build accuracies by kind of picture, lowest first, for mined pictures and those without originals."""
    kinds = divide_pictures(content.accuracies)
    by_attribute = content.is_mined and len({row.attribute for row in kinds}) > 1
    surrogates = find_surrogates(content.run)

    def lane(row: GroupAccuracy) -> Lane:
        return accuracy_lane(row, styles[row.model], surrogates)

    enough = sorted((row for row in kinds if row.photos >= FEWEST_PHOTOS), key=lambda row: row.top1.value)
    named = [(name_attribute(row.attribute) if by_attribute else kind_name(row), row) for row in enough]
    groups = group([(RowName(capitalize_first(name), "", row.attribute), lane(row)) for name, row in named])
    overall = [lane(row) for row in content.accuracies if row.overall and row.photos >= FEWEST_PHOTOS]
    shown = {RowName("All pictures"): overall} if overall else {}
    shown |= dict(list(groups.items())[:_MOST_KINDS]) if len(groups) > 1 else {}
    chart = build_percent_chart(shown)
    return chart._replace(left_out=max(0, len(groups) - _MOST_KINDS)) if chart else None
