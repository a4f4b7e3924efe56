"""Two models compared in sentences: what they get right on edited photos, then what each attribute costs them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from counterfoil.report.drop_findings import differ_significantly
from counterfoil.report.words import format_count, format_number, join_words, name_attribute
from counterfoil.statistics.answers import NO_ATTRIBUTE
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.drops import FEWEST_PHOTOS
from counterfoil.statistics.families import DIVISORS, family_of
from counterfoil.statistics.growth import MOST_PHOTOS
from counterfoil.statistics.significance import SIGNIFICANCE
from counterfoil.study.comparison import RunComparison

_NORMAL = NormalDist()
_POWER = 0.8


def conclude(found: RunComparison) -> str:
    """The comparison in a paragraph: who gets more edited photos right, and which attributes explain it."""
    sentences = [] if found.edited is None else [_compare_edited(found.edited)]
    if found.kind == "drops":
        sentences.append(_compare_attributes(found.attributes))
    return " ".join(sentences)


def _compare_edited(row: Contrast) -> str:
    first, second = (f"{format_number(value)} %" for value in (row.value_first, row.value_second))
    if differ_significantly(row):
        more = row.difference < 0
        low, high = (-row.ci_high, -row.ci_low) if more else (row.ci_low, row.ci_high)
        gap, bounds = _bounds(abs(row.difference), low, high)
        much = f"{gap} points {'more' if more else 'less'}"
        return f"{row.second} is right on {much} of the edited pictures than {row.first} {bounds}."
    text = f"On edited pictures {row.n:,} photos cannot tell {row.first} ({first}) and {row.second} ({second}) apart"
    photos = count_photos(row)
    return f"{text}; about {format_count(photos)} would." if photos else f"{text}."


def _compare_attributes(rows: Sequence[Contrast]) -> str:
    """Which attributes cost the two models differently, or how many photos would show it."""
    usable = [row for row in rows if row.condition.attribute not in NO_ATTRIBUTE and row.n >= FEWEST_PHOTOS]
    if not usable:
        return "No attribute has enough photos to compare the two."
    clear = sorted((row for row in usable if differ_significantly(row)), key=lambda row: -abs(row.difference))
    if clear:
        first, second = clear[0].first, clear[0].second
        parts = [_describe(row, first if place == 0 else "") for place, row in enumerate(clear)]
        return f"{second} loses {join_words(parts)}; nothing else differs by as much as these photos can show."
    needed = {row.condition.attribute: photos for row in usable if (photos := count_photos(row))}
    text = "By attribute these photos cannot tell the two apart"
    if not needed:
        return f"{text}."
    nearest = min(needed, key=needed.__getitem__)
    return f"{text}; about {format_count(needed[nearest])} would settle {name_attribute(nearest)}."


def _describe(row: Contrast, first: str) -> str:
    """Such as "6.9 points less than A to size [1.2, 12.4]"."""
    less = row.difference > 0
    low, high = (row.adjusted_low, row.adjusted_high) if less else (-row.adjusted_high, -row.adjusted_low)
    value, bounds = _bounds(abs(row.difference), low, high)
    than = f" than {first}" if first else ""
    return f"{value} points {'less' if less else 'more'}{than} to {name_attribute(row.condition.attribute)} {bounds}"


def _bounds(value: float, low: float, high: float) -> tuple[str, str]:
    return format_number(value), f"[{format_number(low)}, {format_number(high)}]"


def count_photos(row: Contrast) -> int:
    """The photos that would show this difference, if it is the true one, with probability 0.8; 0 for too many."""
    if row.n < FEWEST_PHOTOS or not abs(row.difference) > 0:
        return 0
    error = (row.ci_high - row.ci_low) / 2 / _NORMAL.inv_cdf(0.975)
    quantile = _NORMAL.inv_cdf(1 - SIGNIFICANCE / DIVISORS.get(family_of(row.condition.attribute), 1) / 2)
    needed = row.n * ((quantile + _NORMAL.inv_cdf(_POWER)) * error / row.difference) ** 2
    if needed > MOST_PHOTOS:
        return 0
    unit = int(10.0 ** max(0, int(math.log10(max(needed, 1.0))) - 1))  # two digits: it is an estimate
    return max(row.n + 1, math.ceil(needed / unit) * unit)
