"""How much more a model loses than a baseline, attribute by attribute, on the same photos; how many photos decide it.

A gate asks two questions of one number. It *fails* where the growth is larger than a margin: a lower bound, corrected
for all rows of a gate together, so that a model that did not change fails in at most about 5 % of gates. It *holds*
where the growth is at most the margin: a 95 % upper bound for each attribute by itself, since all have to hold.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.answers import NO_ATTRIBUTE, Answers
from counterfoil.statistics.contrasts import keep_common_pictures
from counterfoil.statistics.families import DIVISORS, family_of
from counterfoil.statistics.intervals import exact_mean
from counterfoil.statistics.photo_tests import AnswerCount, mean_interval
from counterfoil.statistics.references import attribute_losses

ACCURACY = "accuracy"  # in place of an attribute: points of accuracy lost on the unedited photos
LEVEL = 0.05  # one-sided, of failing (all rows of a gate together) and of holding (each)
_ACCURACY_DIVISOR = 4  # a quarter of the level is for the accuracy, the rest for the attributes: see `divide_level`
MOST_PHOTOS = 1_000_000  # nobody has more
_NORMAL = NormalDist()


class Growth(NamedTuple):
    """How much more points a model loses than the baseline, paired by photo."""

    attribute: str
    n: int
    before: float  # points that the baseline loses; of the accuracy, its errors on unedited photos in percent
    after: float
    growth: float  # after - before
    low: float  # it grew by at least this much, at the corrected level
    high: float  # it grew by at most this much, at 95 %
    spread: float  # standard deviation over photos, in points


def measure_growth(answers: Answers, baseline: str, model: str) -> list[Growth]:
    """The growth of the loss on unedited photos, then of each attribute's drops against their references.

    All pictures of an attribute count together, every photo once; only pictures that both models answered count.
    """
    answers = keep_common_pictures(answers, (baseline, model))
    old, new = answers.model_index(baseline), answers.model_index(model)
    errors = 1.0 - answers.original_rates
    rows = [compare_losses(ACCURACY, errors[old], errors[new], 2)]
    for attribute, losses in attribute_losses(answers).items():
        if attribute not in NO_ATTRIBUTE:
            rows.append(compare_losses(attribute, losses[old], losses[new]))
    return rows


def compare_losses(
    name: str, before: NDArray[np.float64], after: NDArray[np.float64], count: AnswerCount = 4
) -> Growth:
    """The growth from the losses of each photo, (photos,), as shares; NaN where a photo was not answered."""
    both = np.isfinite(before) & np.isfinite(after)
    gaps = after[both] - before[both]
    if not len(gaps):
        return Growth(name, 0, *[math.nan] * 6)
    return Growth(
        name,
        len(gaps),
        before=100 * exact_mean(before[both]),
        after=100 * exact_mean(after[both]),
        growth=100 * exact_mean(gaps),
        low=100 * mean_interval(gaps, count, confidence=1.0 - 2.0 * divide_level(name)).low,
        high=100 * mean_interval(gaps, count, confidence=1.0 - 2.0 * LEVEL).high,
        spread=100 * _spread(gaps),
    )


def divide_level(name: str) -> float:
    """The level at which one row of a gate fails: the accuracy's, or an attribute's.

    The accuracy has a quarter of the whole, the twelve main attributes a half, and the three of the surface a quarter:
    each attribute has half of what it is tested with in the table of drops.
    """
    return LEVEL / (_ACCURACY_DIVISOR if name == ACCURACY else 2 * DIVISORS.get(family_of(name), 1))


def _spread(gaps: NDArray[np.float64]) -> float:
    """The standard deviation, with one photo more that gains and one that loses: it is uncertain even where it is 0."""
    extended = np.concatenate([np.sort(gaps), [1.0, -1.0]])
    return float(np.sqrt(np.mean((extended - extended.mean()) ** 2)))


def photos_to_hold(spread: float, margin: float, *, growth: float = 0.0, power: float = 0.8) -> int:
    """The photos with which a gate says "holds" with this probability where the drop truly grew by `growth` points.

    Args:
        spread: Standard deviation of the growth over photos, in points.
        margin: The growth that is allowed, in points.
        growth: The true growth, in points; below the margin.
        power: The probability.

    Raises:
        UserError: The margin is not above the growth: no number of photos would show it.
    """
    if not margin > growth:
        raise UserError(f"expected a margin above the growth, got a margin of {margin:g} and a growth of {growth:g}")
    return _photos(spread, margin - growth, LEVEL, power)


def photos_to_fail(spread: float, margin: float, *, growth: float, attribute: str = "", power: float = 0.8) -> int:
    """The photos with which a gate fails with this probability where the drop truly grew by `growth` points."""
    if not growth > margin:
        raise UserError(f"expected a growth above the margin, got a growth of {growth:g} and a margin of {margin:g}")
    return _photos(spread, growth - margin, divide_level(attribute), power)


def _photos(spread: float, distance: float, level: float, power: float) -> int:
    quantile = _NORMAL.inv_cdf(1.0 - level)
    by_spread = ((quantile + _NORMAL.inv_cdf(power)) * spread / distance) ** 2
    unchanged = quantile**2 * (1.0 - distance / 100) / (distance / 100)  # where no answer changes at all
    return math.ceil(max(by_spread, unchanged if distance < 100 else 0.0, 2.0))


def spread_of_changes(changed: float, pictures: int, correlation: float) -> float:
    """The standard deviation of the growth over photos, from a share of changed answers; all as shares.

    Args:
        changed: Share of pictures that the two versions answer differently in being right or wrong, as many gained
            as lost.
        pictures: Edited pictures of the attribute per photo.
        correlation: Of two changes on pictures of the same photo.
    """
    if not 0.0 < changed <= 1.0:
        raise UserError(f"expected a share of changed answers above 0 and up to 100 percent, got {100 * changed:g}")
    edited = (1.0 + (pictures - 1) * correlation) / pictures
    return math.sqrt(changed * max(1.0 + edited - 2.0 * correlation, 0.0))
