"""Where a value stands along an axis, in percent of its length, so that charts stretch with the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_ROUND_STEPS = (1, 2, 5, 10)
_LOGARITHMIC_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


class Tick(NamedTuple):
    """A labelled place on an axis."""

    at: float  # percent of the axis
    value: float
    odd: bool = False  # an odd number of steps from zero: the label to leave out where room is scarce


@dataclass(frozen=True)
class Axis:
    """A stretch of values, straight or logarithmic, with its ticks."""

    low: float
    high: float
    tick_values: tuple[float, ...]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value, in percent from the low end."""
        low, high, value = (math.log(x) if self.logarithmic else x for x in (self.low, self.high, value))
        return round(100 * (value - low) / (high - low), 3)

    @property
    def ticks(self) -> list[Tick]:
        """The ticks from low to high."""
        step = self.tick_values[-1] - self.tick_values[-2] if len(self.tick_values) > 1 else 1.0
        return [Tick(self.at(value), value, round(value / step) % 2 == 1) for value in self.tick_values]


def straight_axis(values: Sequence[float], most_ticks: int = 8) -> Axis:
    """An axis from tick to tick that holds all values and zero."""
    low, high = min(0.0, *values), max(0.0, *values)
    step = _round_step(max(high - low, 1.0) / most_ticks)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    ticks = tuple(step * position for position in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def snug_axis(values: Sequence[float], most_ticks: int = 6) -> Axis:
    """An axis from tick to tick about the values, zero or not, with room at both ends."""
    low, high = min(values), max(values)
    step = _round_step(max(high - low, 1.0) / (most_ticks - 2))
    first, last = math.ceil(low / step) - 1, math.floor(high / step) + 1
    ticks = tuple(step * position for position in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def logarithmic_axis(values: Sequence[float], margin: float = 1.25) -> Axis:
    """An axis that holds all values, which are above zero, with some room at both ends."""
    low, high = min(values) / margin, max(values) * margin
    return Axis(low, high, tuple(tick for tick in _LOGARITHMIC_TICKS if low <= tick <= high), logarithmic=True)


def _round_step(least: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(least))
    return next(magnitude * step for step in _ROUND_STEPS if magnitude * step >= least * 0.999)
