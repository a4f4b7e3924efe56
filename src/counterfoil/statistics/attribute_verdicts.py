"""One verdict per model and attribute: the row that it is judged by, whether it costs, and what it ties with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import NO_ATTRIBUTE, Answers, Condition
from counterfoil.statistics.drops import is_significant, widen
from counterfoil.statistics.families import MAIN_FAMILY, family_of
from counterfoil.statistics.interactions import Interaction
from counterfoil.statistics.intervals import Interval
from counterfoil.statistics.photo_tests import mean_interval, p_of_mean
from counterfoil.statistics.references import reference_losses
from counterfoil.statistics.significance import SIGNIFICANCE, holm_factors
from counterfoil.types import Attribute, Drop, EditLevel


@dataclass(frozen=True, kw_only=True)
class AttributeVerdict:
    """What the rows of one attribute say about one model."""

    model: str
    attribute: Attribute
    family: str
    rows: tuple[Drop, ...]  # every edit and level, in the order of the table
    main: Drop  # the same edit and level for every model: for charts and comparisons
    representative: Drop  # the main row if it costs, else the largest that costs, else the main row
    costs: bool  # whether the representative's drop against its reference is significant and positive
    interactions: tuple[Interaction, ...] = ()  # that cost: rows which they explain do not count for the attribute
    is_costliest: bool = False  # the largest of the model's main family that costs
    ties_costliest: bool = False  # costs too, and the photos cannot tell it apart from the costliest


def judge_attributes(
    answers: Answers,
    drops: Sequence[Drop],
    main_edits: Mapping[str, EditLevel],
    interactions: Sequence[Interaction] = (),
) -> list[AttributeVerdict]:
    """Return the verdicts of each model in the order of the table; rows of too few photos are never significant.

    Args:
        answers: The answers that the rows were measured on.
        drops: The table of drops.
        main_edits: The edit and level that each attribute is judged by first; else its first row.
        interactions: Of the same answers. A row that costs more than its parts together is an interaction and does
            not speak for its attribute: what costs only small objects on the left is not "position".
    """
    groups: dict[tuple[str, str], list[Drop]] = {}
    for row in drops:
        if row.attribute not in NO_ATTRIBUTE:
            groups.setdefault((row.model, row.attribute), []).append(row)
    verdicts = [_judge(rows, main_edits, [own for own in interactions if own.costs]) for rows in groups.values()]
    return [own for model in answers.models for own in _mark_ties(answers, [v for v in verdicts if v.model == model])]


def costs(row: Drop) -> bool:
    """Whether a row shows a drop against its reference: enough photos, significant, and accuracy falls."""
    return is_significant(row) and row.drop_vs_reference > 0


def _judge(
    rows: Sequence[Drop], main_edits: Mapping[str, EditLevel], interactions: Sequence[Interaction]
) -> AttributeVerdict:
    attribute = rows[0].attribute
    own = {(it.condition.edit, it.condition.level): it for it in interactions if it.model == rows[0].model}
    explained = [row for row in rows if (row.edit, row.level) in own]
    main = next((row for row in rows if main_edits.get(attribute) == (row.edit, row.level)), rows[0])
    costly = [row for row in rows if costs(row) and row not in explained]
    representative = main if not costly or main in costly else max(costly, key=lambda row: row.drop_vs_reference)
    return AttributeVerdict(
        model=main.model,
        attribute=attribute,
        family=family_of(attribute),
        rows=tuple(rows),
        main=main,
        representative=representative,
        costs=bool(costly),
        interactions=tuple(own[row.edit, row.level] for row in explained),
    )


def _mark_ties(answers: Answers, verdicts: Sequence[AttributeVerdict]) -> list[AttributeVerdict]:
    """Mark the costliest of the main family, and those that the same photos cannot tell apart from it."""
    rivals = [own for own in verdicts if own.costs and own.family == MAIN_FAMILY]
    if not rivals:
        return list(verdicts)
    first = max(rivals, key=lambda own: own.representative.drop_vs_reference)
    others = [own for own in rivals if own is not first]
    tied = {own.attribute for own, apart in zip(others, _differ(answers, first, others), strict=True) if not apart}
    return [replace(own, is_costliest=own is first, ties_costliest=own.attribute in tied) for own in verdicts]


def _differ(answers: Answers, first: AttributeVerdict, others: Sequence[AttributeVerdict]) -> list[bool]:
    """Whether the costliest costs more than each other one, photo by photo, the tool's spread in the interval."""
    gaps = [_gap(answers, first.representative, own.representative) for own in others]
    factors = holm_factors([p_of_mean(gap, 4) for gap in gaps])
    apart = []
    for own, gap, factor in zip(others, gaps, factors, strict=True):
        if math.isnan(factor):
            apart.append(False)
            continue
        interval = mean_interval(gap, 4, confidence=1.0 - SIGNIFICANCE / factor)
        spread = np.nansum([first.representative.tool_uncertainty**2, own.representative.tool_uncertainty**2]) ** 0.5
        apart.append(widen(float(gap.mean()), Interval(*interval), float(spread) / 100).low > 0)
    return apart


def _gap(answers: Answers, first: Drop, second: Drop) -> NDArray[np.float64]:
    """The loss under the first row minus that under the second, over the photos that have both."""
    model = answers.model_index(first.model)
    losses = [
        reference_losses(answers, answers.conditions.index(Condition(row.attribute, row.edit, row.level)))[model]
        for row in (first, second)
    ]
    gaps = losses[0] - losses[1]
    return np.asarray(gaps[np.isfinite(gaps)])
