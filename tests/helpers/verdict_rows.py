"""Rows of the table of drops, and the verdicts on them, with the numbers given and not computed."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.statistics.attribute_verdicts import AttributeVerdict, costs
from counterfoil.statistics.families import MAIN_FAMILY, family_of
from counterfoil.types import Attribute, Drop


def drop_row(
    attribute: Attribute,
    edit: str,
    drop: float,
    half: float = 8.0,
    *,
    model: str = "net",
    level: str = "",
    n: int = 64,
    reference: str = "original",
    tool: float = 0.0,
) -> Drop:
    """A row that loses `drop` points against its reference, clear where that is more than `half`."""
    p = 0.001 if abs(drop) > half else 0.5
    return Drop(
        model=model,
        attribute=attribute,
        edit=edit,
        level=level,
        n=n,
        accuracy_original=80,
        accuracy_control=80,
        accuracy=80 - drop,
        drop=drop,
        ci_low=drop - half,
        ci_high=drop + half,
        drop_vs_control=drop,
        p_value=p,
        object_share=20.0,
        reference=reference,
        n_reference=n,
        accuracy_reference=80,
        drop_vs_reference=drop,
        reference_low=drop - half,
        reference_high=drop + half,
        tool_uncertainty=tool,
        family=family_of(attribute),
        p_adjusted=p,
    )


def judge_rows(drops: Sequence[Drop], ties: Sequence[Attribute] = ()) -> list[AttributeVerdict]:
    """The verdicts on rows; an attribute's first row is its main one, and `ties` cannot be told from the costliest."""
    groups: dict[tuple[str, str], list[Drop]] = {}
    for row in drops:
        if row.attribute not in ("control", "presence", "combination"):
            groups.setdefault((row.model, row.attribute), []).append(row)
    verdicts = []
    for (model, attribute), rows in groups.items():
        costly = sorted((row for row in rows if costs(row)), key=lambda row: -row.drop_vs_reference)
        chosen = rows[0] if not costly or rows[0] in costly else costly[0]
        verdicts.append((model, attribute, rows, chosen, bool(costly)))
    leading = {}
    for model, attribute, _, _, clear in sorted(verdicts, key=lambda row: row[3].drop_vs_reference):
        if clear and family_of(attribute) == MAIN_FAMILY:
            leading[model] = attribute
    return [
        AttributeVerdict(
            model=model,
            attribute=attribute,
            family=family_of(attribute),
            rows=tuple(rows),
            main=rows[0],
            representative=chosen,
            costs=clear,
            is_costliest=leading.get(model) == attribute,
            ties_costliest=attribute in ties and leading.get(model) != attribute,
        )
        for model, attribute, rows, chosen, clear in verdicts
    ]
