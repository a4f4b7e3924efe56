"""The families of tests that are corrected together, and the correction.

A family is of one model, and its divisor is a constant: another model, another attribute, or another edit of another
attribute changes nobody's p. Within an attribute the edits and levels are corrected by Holm's method.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from counterfoil.statistics.significance import SIGNIFICANCE, holm_factors
from counterfoil.types import Attribute

SURFACE: frozenset[Attribute] = frozenset({"texture", "material", "shape"})  # the object's own look is replaced
INTERACTIONS = "interaction"  # of combined edits, and of position and direction with the object's size
FAMILY_OF: dict[Attribute, str] = {
    **dict.fromkeys(SURFACE, "surface"),
    "original": "original",
    "presence": "diagnostic",
    "control": "control",
    "combination": INTERACTIONS,
}
MAIN_FAMILY = "attributes"  # of every other attribute
# Attributes that the family is corrected for, whether or not the recipe has all of them. The first leaves room for one
# more than the built-in attributes that are in no other family: background, size, position, direction, colour, blur,
# occlusion, text, second-object, light, corruption. There are three attributes of the surface, and three kinds of
# interactions (combined edits, position and direction with size); they have half the level, so that less than 5 % of
# tables call anything costly by mistake, all families together.
DIVISORS = {MAIN_FAMILY: 12, "surface": 6, INTERACTIONS: 6}  # 1 for all others


class Correction(NamedTuple):
    """A p value corrected within its family, and the level at which its own interval agrees with the verdict."""

    p_adjusted: float
    confidence: float  # the interval at this level excludes zero exactly where `p_adjusted` is below 0.05


def family_of(attribute: Attribute) -> str:
    """The family that the tests of an attribute belong to."""
    return FAMILY_OF.get(attribute, MAIN_FAMILY)


def divisor_of(attribute: Attribute) -> int:
    """The number of attributes that the family of this one is corrected for."""
    return DIVISORS.get(family_of(attribute), 1)


def correct_tests(tests: Sequence[tuple[Hashable, Attribute, float]], family: str | None = None) -> list[Correction]:
    """Correct p values, given as (model or pair of models, attribute, p); NaN is not counted and stays NaN.

    The family is that of the attribute unless one is given for all tests.
    """
    groups: dict[tuple[Hashable, Attribute], list[int]] = {}
    for place, (subject, attribute, _) in enumerate(tests):
        groups.setdefault((subject, attribute), []).append(place)
    corrections = [Correction(math.nan, math.nan)] * len(tests)
    for (_, attribute), places in groups.items():
        p_values = [tests[place][2] for place in places]
        divisor = DIVISORS.get(family or family_of(attribute), 1)
        for place, p, factor in zip(places, p_values, holm_factors(p_values), strict=True):
            if not math.isnan(p):
                times = factor * divisor
                corrections[place] = Correction(min(1.0, p * times), 1.0 - SIGNIFICANCE / times)
    return corrections
