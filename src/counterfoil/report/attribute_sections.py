"""The report's sections, one per attribute: a sentence, facts, a chart and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counterfoil.edits.registry import own_ground_of
from counterfoil.report.attribute_chart import (
    Styles,
    build_edits_chart,
    describe_reference,
    main_rows,
    order_attributes,
)
from counterfoil.report.content import ReportContent
from counterfoil.report.dose_chart import DoseChart, build_dose_chart, build_steps_chart
from counterfoil.report.drop_findings import has_enough, summarize_attribute
from counterfoil.report.forest_chart import ForestChart
from counterfoil.report.gallery import Card, GallerySection
from counterfoil.report.place_maps import PlaceGrid, build_place_grids
from counterfoil.report.words import (
    brackets_to_comma,
    capitalize_first,
    describe_row,
    describe_threshold,
    format_number,
    format_range,
    name_attribute,
    pluralize,
)
from counterfoil.statistics.attribute_verdicts import costs
from counterfoil.types import Attribute, Drop

MOST_OPEN = 3  # sections; the others are folded
_FREQUENT = 0.1  # of an edit's pictures: a donor of more is mentioned
_MOST_MODELS = 6  # in the charts of a section; with more, the best, the middle and the worst


class AttributeSection(NamedTuple):
    """What is shown of one attribute."""

    attribute: Attribute
    name: str
    sentence: str
    brief: str  # its result in a few words, where it is folded
    facts: list[str]
    curve: DoseChart | None
    edits: ForestChart | None
    places: list[PlaceGrid]
    notes: list[str]
    steps: list[Card]  # one photo at every level
    cards: list[Card]


def build_sections(content: ReportContent, gallery: Sequence[GallerySection], styles: Styles) -> list[AttributeSection]:
    """Build a section for every attribute with enough photos, the costliest first."""
    cards = {section.attribute: section.cards for section in gallery}
    return [_section(content, name, cards.get(name, []), styles) for name in order_attributes(content)]


def _section(content: ReportContent, attribute: Attribute, cards: Sequence[Card], styles: Styles) -> AttributeSection:
    main = main_rows(content, attribute)
    shown = _choose_models(content, main)
    drops = [row for row in content.drops if row.model in shown and has_enough(row)]
    own = [row for row in drops if row.attribute == attribute]
    drawn = [row for row in main if row.model in shown]
    curve = build_steps_chart(drops, drawn, styles) or build_dose_chart(own, main[0].edit, styles)
    in_curve = {(row.edit, row.level) for row in own if curve and curve.kind == "dose" and row.edit == curve.name}
    rest = [row for row in own if (row.edit, row.level) not in in_curve]
    several = len({(row.edit, row.level) for row in rest}) > (0 if in_curve else 1)
    return AttributeSection(
        attribute=attribute,
        name=capitalize_first(name_attribute(attribute)),
        sentence=" ".join([summarize_attribute(main), *_describe_costlier(content, attribute, main)]),
        brief=_describe_briefly(main),
        facts=_list_facts(content, main),
        curve=curve,
        edits=build_edits_chart(rest, styles) if several else None,
        places=build_place_grids(content.places, "moved", styles) if attribute == "position" else [],
        notes=[describe_threshold(row) for row in content.failures.size_thresholds] if attribute == "size" else [],
        steps=[card for card in cards if card.step and card.edited],
        cards=[card for card in cards if not card.step],
    )


def _choose_models(content: ReportContent, main: Sequence[Drop]) -> set[str]:
    """The models of a section's charts: all, or of many the least and the most affected and those between."""
    models = [row.model for row in sorted(main, key=lambda row: row.drop_vs_reference)]
    if len(models) <= _MOST_MODELS:
        return set(models)
    middle = len(models) // 2
    return {models[0], models[middle - 1], models[middle], models[-1]}


def _describe_costlier(content: ReportContent, attribute: Attribute, main: Sequence[Drop]) -> list[str]:
    """The attribute's costliest edit where it is another one and clear: each model may have its own."""
    worst = max(row.drop_vs_reference for row in main)
    others = [row for row in content.drops if row.attribute == attribute and has_enough(row) and costs(row)]
    others = [row for row in others if row.model in content.judged_models and row.drop_vs_reference > worst]
    if not others:
        return []
    first = max(others, key=lambda row: row.drop_vs_reference)
    same = [row for row in content.drops if (row.edit, row.level) == (first.edit, first.level) and costs(row)]
    return [f"Its costliest edit, {brackets_to_comma(describe_row(first))}, costs {format_range(same)}."]


def _describe_briefly(main: Sequence[Drop]) -> str:
    clear = [row for row in main if costs(row)]
    if not clear:
        return "may cost nothing"
    text = f"costs {format_range(clear)}"
    return text if len(clear) == len(main) else f"{text} ({len(clear)} of {len(main)} models)"


def _list_facts(content: ReportContent, main: Sequence[Drop]) -> list[str]:
    used = min(row.n_reference for row in main)
    share = 100 * used / content.photos if content.photos else 0.0
    facts = [f"{used} of {pluralize(content.photos, 'photo')} could be used ({format_number(share, 0)} %)"]
    facts += [
        f"The other {row.photos} are right on {_span(row.lowest, row.highest)} unedited"
        for row in content.unused
        if row.attribute == main[0].attribute
    ]
    facts.append(f"Compared with {describe_reference(main[0])}")
    facts += _describe_donors(content, main[0])
    facts += _describe_natural_ground(content, main[0])
    tool = max((row.tool_uncertainty for row in main if row.tool_uncertainty == row.tool_uncertainty), default=0.0)
    if tool:
        facts.append(f"Tool uncertainty ±{format_number(tool)} points")
    return facts


def _describe_donors(content: ReportContent, main: Drop) -> list[str]:
    """From how few photos the edit took backgrounds, scenes or objects: what it costs may be their doing."""
    table = content.manifest
    if "donor_id" not in table:
        return []
    own = (np.asarray(table["edit"]) == main.edit) & (np.asarray(table["level"]) == main.level)
    own &= np.asarray(table["attribute"]) == main.attribute
    donors = Counter(donor for donor in np.asarray(table["donor_id"])[own].tolist() if donor)
    if not donors:
        return []
    total, most = donors.total(), max(donors.values())
    if most <= _FREQUENT * total:
        return []
    return [f"Uses {pluralize(len(donors), 'other photo')}, one of them in {most} of {total} pictures"]


def _describe_natural_ground(content: ReportContent, main: Drop) -> list[str]:
    """What the same change costs on the other ground: in another scene, or on the photo's own background, filled."""
    scenes = [row for row in content.drops if own_ground_of(row.edit, row.level) == (main.edit, main.level)]
    own = own_ground_of(main.edit, main.level)
    others = scenes or [row for row in content.drops if own == (row.edit, row.level)]
    rows = [row for row in others if row.model in content.judged_models and has_enough(row)]
    where = "In another scene" if own is None else "On the photo's own background, filled,"
    if not rows:
        photos = max((row.n_reference for row in others), default=0)
        return [f"{where} only {pluralize(photos, 'photo')} could be used"] if others else []
    unclear = sum(not costs(row) for row in rows)
    doubt = f", not clear for {unclear} of {pluralize(len(rows), 'model')}" if unclear else ""
    return [f"{where} it costs {format_range(rows)} ({pluralize(rows[0].n_reference, 'photo')}){doubt}"]


def _span(low: float, high: float) -> str:
    texts = dict.fromkeys(format_number(value, 0) for value in (low, high))
    return f"{' to '.join(texts)} %"
