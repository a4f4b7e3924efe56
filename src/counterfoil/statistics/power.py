"""Power of McNemar's test: photos needed to detect a drop, and the smallest drop that the photos could detect."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.control_losses import losses_from_controls, one_sided_confidence
from counterfoil.statistics.families import divisor_of
from counterfoil.statistics.intervals import exact_mean
from counterfoil.statistics.photo_tests import mean_interval
from counterfoil.statistics.references import ReferenceRates, find_reference, group_conditions, tool_uncertainty
from counterfoil.statistics.significance import SIGNIFICANCE

_NORMAL = NormalDist()
_EXACT_UP_TO = 200  # changed photos; above, the normal approximation is within 0.01
_POWER = 0.8  # of a detectable drop
_MOST_PHOTOS = 100_000_000
_FINEST_DROP = 1e-5  # precision of the search for a drop, as a share: a thousandth of a point


class Discordance(NamedTuple):
    """The shares of photos that an edit changes from right to wrong and from wrong to right."""

    lost: float
    gained: float


class DetectableDrop(NamedTuple):
    """The smallest drop, in points, that a model's photos under a condition detect with the wanted power."""

    model: str
    condition: Condition
    drop: float  # NaN where even a loss of every photo would not be significant


def discordance_from_total(drop: float, discordance: float) -> Discordance:
    """The shares lost and gained, from the drop and the share of photos whose answer changes (shares, not percent)."""
    if not 0.0 < drop <= discordance <= 1.0:
        raise UserError(
            f"expected 0 < drop <= discordance <= 100 percent, got a drop of {100 * drop:g} and a discordance of "
            f"{100 * discordance:g}; at least as many answers change as are lost"
        )
    return Discordance((discordance + drop) / 2.0, (discordance - drop) / 2.0)


def discordance_from_accuracy(drop: float, accuracy: float, correlation: float) -> Discordance:
    """The shares lost and gained, from the accuracy before and the correlation of right answers before and after."""
    after = accuracy - drop
    if not 0.0 < drop <= accuracy <= 1.0:
        raise UserError(
            f"expected 0 < drop <= accuracy <= 100 percent, got a drop of {100 * drop:g} from {100 * accuracy:g}"
        )
    shared = correlation * math.sqrt(accuracy * (1.0 - accuracy) * after * (1.0 - after))
    lost, gained = accuracy * (1.0 - after) - shared, (1.0 - accuracy) * after - shared
    # a correlation that the two accuracies do not allow is reduced to the largest that they do
    return Discordance(lost, gained) if gained >= 0.0 else Discordance(drop, 0.0)


def mcnemar_power(n: int, change: Discordance, *, alpha: float = 0.05) -> float:
    """The probability that McNemar's exact test over n photos gives p < alpha."""
    discordance = change.lost + change.gained
    if n * discordance <= _EXACT_UP_TO:
        return _exact_power(n, change, alpha)
    return _normal_power(n, change, alpha)


def photos_needed(change: Discordance, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """The number of photos with which the test reaches the power, and with one photo fewer does not."""
    high = 8
    while mcnemar_power(high, change, alpha=alpha) < power:
        high *= 2
        if high > _MOST_PHOTOS:
            raise UserError(f"expected a drop that can be seen, got one that needs over {_MOST_PHOTOS:,} photos")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if mcnemar_power(middle, change, alpha=alpha) >= power else (middle, high)
    return high


@lru_cache(maxsize=4_096)
def minimum_detectable_drop(n: int, discordance: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest drop (a share) that n photos detect if at least this share of answers changes; NaN where none."""

    def seen(drop: float) -> bool:
        return mcnemar_power(n, discordance_from_total(drop, max(drop, discordance)), alpha=alpha) >= power

    if n == 0 or not seen(1.0):
        return math.nan
    low, high = 0.0, 1.0
    while high - low > _FINEST_DROP:
        middle = (low + high) / 2.0
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


def detectable_drops(answers: Answers) -> list[DetectableDrop]:
    """For every model and condition, the smallest drop against its reference that would likely have been called clear.

    With power 0.8, at the level that the row is tested at: 5 % over its family and the rows of its attribute. The
    tool's uncertainty and the controls, which the interval of the row allows for, are part of it.
    """
    levels = {
        place: SIGNIFICANCE / (divisor_of(name) * len(places))
        for name, places in group_conditions(answers).items()
        for place in places
    }
    references = {place: find_reference(answers, place) for place in levels}
    return [
        DetectableDrop(
            model, answers.conditions[place], 100 * _detectable_drop(answers, place, own, (m, levels[place]))
        )
        for m, model in enumerate(answers.models)
        for place, own in sorted(references.items())
    ]


def _detectable_drop(answers: Answers, place: int, reference: ReferenceRates, tested: tuple[int, float]) -> float:
    """What the row of one model, tested at a level, detects: the most that its reference or a control asks for."""
    model, alpha = tested
    losses = reference.rates[model] - answers.rates[model, place]
    known = losses[np.isfinite(losses)]
    spread = tool_uncertainty([reference.shifts], model, [answers.conditions[place].edit], photos=len(known))
    level, power = _NORMAL.inv_cdf(1.0 - alpha / 2.0), _NORMAL.inv_cdf(_POWER)
    half = _smallest_drop(known, alpha) * level / (level + power)
    asked = [_raise_by_tool(half, level, spread)]
    one_sided = one_sided_confidence(1.0 - alpha)
    level = _NORMAL.inv_cdf(0.5 + one_sided / 2.0)
    for own in losses_from_controls(answers, [place], [reference], model):
        mean = exact_mean(own.values)
        half = mean - mean_interval(own.values, own.answers, confidence=one_sided).low
        asked.append(_raise_by_tool(half, level, spread) + exact_mean(known) - mean)  # the control's cost comes on top
    return min(1.0, max(asked)) if not math.isnan(asked[0]) else math.nan


def _raise_by_tool(half: float, level: float, spread: float) -> float:
    """The drop of which the interval, half as wide as given and widened by the tool, excludes zero with the power."""
    widened = math.hypot(half, spread) if spread > 0.0 else half
    return widened + _NORMAL.inv_cdf(_POWER) * half / level


def _smallest_drop(losses: NDArray[np.float64], alpha: float) -> float:
    changed, n = int((np.abs(losses) > _FINEST_DROP).sum()), len(losses)
    # one photo more on either side: the share of changes is uncertain even where none changed
    return minimum_detectable_drop(n, (changed + 1) / (n + 2), alpha=alpha)


def _exact_power(n: int, change: Discordance, alpha: float) -> float:
    """The sum of the rejecting outcomes over the number of changed photos and of lost ones among them."""
    discordance = change.lost + change.gained
    changed = np.arange(n + 1)
    chance = _binomial(n, discordance)
    likely = changed[chance > 1e-12]
    share = change.lost / discordance
    return float(sum(chance[m] * _rejecting(int(m), share, alpha) for m in likely))


def _rejecting(changed: int, share_lost: float, alpha: float) -> float:
    """P(p < alpha) given the number of changed photos."""
    fewest = _count_rejecting(changed, alpha)
    if not fewest:
        return 0.0
    chance = _binomial(changed, share_lost)
    return float(chance[:fewest].sum() + chance[changed - fewest + 1 :].sum())


@lru_cache(maxsize=4_096)
def _count_rejecting(changed: int, alpha: float) -> int:
    """How many outcomes reject on either side: 0 .. this number - 1 lost photos, or as many gained."""
    return int(np.searchsorted(2.0 * np.cumsum(_binomial(changed, 0.5)), alpha))


def _binomial(n: int, p: float) -> NDArray[np.float64]:
    """The probabilities of 0..n successes."""
    if p in (0.0, 1.0):
        certain = np.zeros(n + 1)
        certain[n if p else 0] = 1.0
        return certain
    k = np.arange(n + 1)
    steps = np.log((n - k[:-1]) / (k[1:])) if n else np.zeros(0)
    choices = np.concatenate(([0.0], np.cumsum(steps)))
    chances: NDArray[np.float64] = np.exp(choices + k * math.log(p) + (n - k) * math.log1p(-p))
    return chances


def _normal_power(n: int, change: Discordance, alpha: float) -> float:
    discordance, drop = change.lost + change.gained, change.lost - change.gained
    quantile = _NORMAL.inv_cdf(1.0 - alpha / 2.0)
    spread = math.sqrt(n * (discordance - drop**2)) or 1e-300
    # the exact test needs one photo more than the quantile
    return _NORMAL.cdf((n * drop - quantile * math.sqrt(n * discordance) - 1.0) / spread)
