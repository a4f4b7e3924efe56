"""One verdict per model and attribute: the row that it is judged by, whether it costs, and what it ties with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import NO_ATTRIBUTE, Answers, Condition
from counterfoil.statistics.control_losses import (
    CountedLosses,
    count_from_controls,
    one_sided_confidence,
    subtract_losses,
)
from counterfoil.statistics.drops import is_significant, widen
from counterfoil.statistics.families import MAIN_FAMILY, family_of
from counterfoil.statistics.interactions import Interaction
from counterfoil.statistics.intervals import exact_mean
from counterfoil.statistics.photo_tests import mean_interval, p_of_mean
from counterfoil.statistics.references import find_reference
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
    first, *others = sorted(rivals, key=lambda own: -own.representative.drop_vs_reference)
    tied = {own.attribute for own, apart in zip(others, _differ(answers, first, others), strict=True) if not apart}
    return [replace(own, is_costliest=own is first, ties_costliest=own.attribute in tied) for own in verdicts]


def _differ(answers: Answers, first: AttributeVerdict, others: Sequence[AttributeVerdict]) -> list[bool]:
    """Whether the costliest costs more than each other one, photo by photo.

    The costliest was chosen by its loss, so the correction is over all pairs of attributes that cost. Its loss is
    counted from its reference and from each control that applies to it, and must be the larger one each time: of what
    a control costs, all may be in it, and nothing in the other's.
    """
    rows = [own.representative for own in (first, *others)]
    losses = [_losses_under(answers, row) for row in rows]
    factors = _holm_over_pairs(losses)
    return [
        _is_larger(rows[0], losses[0], rows[place], losses[place].from_reference, factors[0, place])
        for place in range(1, len(rows))
    ]


class _RowLosses(NamedTuple):
    """One model's losses under a row, by photo."""

    from_reference: NDArray[np.float64]  # (photos,), NaN where unanswered
    from_controls: Sequence[CountedLosses]  # from each control that applies


def _losses_under(answers: Answers, row: Drop) -> _RowLosses:
    model = answers.model_index(row.model)
    place = answers.conditions.index(Condition(row.attribute, row.edit, row.level))
    reference = find_reference(answers, place)
    losses = reference.rates[model] - answers.rates[model, place]
    return _RowLosses(losses, count_from_controls(answers, [place], [reference], model))


def _holm_over_pairs(losses: Sequence[_RowLosses]) -> dict[tuple[int, int], float]:
    """The factor by which Holm's method multiplies the p of each pair of rows."""
    pairs = list(itertools.combinations(range(len(losses)), 2))
    gaps = [losses[one].from_reference - losses[two].from_reference for one, two in pairs]
    factors = holm_factors([p_of_mean(gap[np.isfinite(gap)], 4) for gap in gaps])
    return dict(zip(pairs, factors, strict=True))


def _is_larger(first: Drop, losses: _RowLosses, second: Drop, others: NDArray[np.float64], factor: float) -> bool:
    """Whether the first row costs more than the second, the tool's spread and the controls in the interval."""
    if math.isnan(factor):  # no photo has both
        return False
    confidence = 1.0 - SIGNIFICANCE / factor
    spread = np.nansum([first.tool_uncertainty**2, second.tool_uncertainty**2]) ** 0.5
    gap = losses.from_reference - others
    readings = [(gap[np.isfinite(gap)], confidence)]
    readings += [(subtract_losses(own, others)[0], one_sided_confidence(confidence)) for own in losses.from_controls]
    return all(
        widen(exact_mean(values), mean_interval(values, 4, confidence=level), float(spread) / 100).low > 0
        for values, level in readings
    )
