"""What a person wants to know first, in sentences made from the numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from counterfoil.analyse import FEWEST_PHOTOS, Contrast
from counterfoil.report.content import Row
from counterfoil.report.finding import NO_ATTRIBUTE, Finding, too_few
from counterfoil.report.model_findings import Known, model_findings
from counterfoil.report.models_apart import paired_models, told_apart
from counterfoil.types import Drop


def headline(
    drops: Sequence[Drop], contrasts: Sequence[Contrast] = (), unseen: Mapping[Row, float] | None = None
) -> tuple[Finding, ...]:
    """The findings of each model in the order of the table, then what tells the models apart.

    Models are compared photo by photo where their contrasts are given.
    `unseen` says how large a drop may be without being noticed.
    """
    enough = [row for row in drops if row.n >= FEWEST_PHOTOS]
    if not enough:
        most = max((row.n for row in drops), default=0)
        return (too_few(most, "photo", "scored before and after an edit"),)
    clear = [row for row in contrasts if told_apart(row)]
    known = Known(sum(not math.isnan(row.p_value) for row in drops), clear, unseen or {})
    found = [
        finding
        for model in dict.fromkeys(row.model for row in enough)
        for finding in model_findings(
            [row for row in enough if row.model == model], replace(known, few=_scattered(drops, model))
        )
    ]
    between = paired_models(clear) if contrasts else []
    return (*found, *between, *_left_unsaid(drops))


def _scattered(drops: Sequence[Drop], model: str) -> int:
    """Rows of a model's attributes that rest on too few photos."""
    own = [row for row in drops if row.model == model and row.attribute not in NO_ATTRIBUTE]
    return sum(row.n < FEWEST_PHOTOS for row in own)


def _left_unsaid(drops: Sequence[Drop]) -> list[Finding]:
    few = [row for row in drops if row.n < FEWEST_PHOTOS]
    if not few:
        return []
    told = (
        f"Too few photos: {len(few)} of {len(drops)} rows of the table rest on fewer than {FEWEST_PHOTOS} photos; "
        "nothing is said about them."
    )
    return [Finding("", "data", told)]
