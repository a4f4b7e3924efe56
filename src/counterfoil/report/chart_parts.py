"""Parts that all charts share: axes with ticks, the colour and shape of each model, marks with whiskers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_ROUND_STEPS = (1, 2, 5, 10)
_LOGARITHMIC_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_COLOURS = 6
_SHAPES = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
    "M-4.2-4.2h8.4v8.4h-8.4z",
    "M0-5.8L5.8 0L0 5.8L-5.8 0z",
    "M0-5.4L5.4 4.2H-5.4z",
)


class Tick(NamedTuple):
    """A labelled position on an axis."""

    at: float  # percent of the axis, or pixels from the top
    value: float
    odd: bool = False  # an odd number of steps from zero: the label is dropped where there is no room


@dataclass(frozen=True)
class Axis:
    """A range of values, linear or logarithmic, with its ticks."""

    low: float
    high: float
    tick_values: tuple[float, ...]
    is_logarithmic: bool = False

    @classmethod
    def linear(cls, values: Sequence[float], most_ticks: int = 8) -> Axis:
        """An axis from tick to tick that includes all values and zero."""
        low, high = min(0.0, *values), max(0.0, *values)
        step = _round_step(max(high - low, 1.0) / most_ticks)
        first = math.floor(low / step)
        return cls._from_ticks(step, first, max(math.ceil(high / step), first + 1))

    @classmethod
    def tight(cls, values: Sequence[float], most_ticks: int = 6) -> Axis:
        """An axis from tick to tick around the values, with or without zero, with margins."""
        low, high = min(values), max(values)
        step = _round_step(max(high - low, 1.0) / (most_ticks - 2))
        return cls._from_ticks(step, math.ceil(low / step) - 1, math.floor(high / step) + 1)

    @classmethod
    def logarithmic(cls, values: Sequence[float], margin: float = 1.25) -> Axis:
        """An axis that includes all values, which must be above zero, with margins."""
        low, high = min(values) / margin, max(values) * margin
        return cls(low, high, tuple(tick for tick in _LOGARITHMIC_TICKS if low <= tick <= high), is_logarithmic=True)

    @classmethod
    def _from_ticks(cls, step: float, first: int, last: int) -> Axis:
        ticks = tuple(step * position for position in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks)

    def at(self, value: float) -> float:
        """The position of a value, in percent from the low end."""
        low, high, value = (math.log(x) if self.is_logarithmic else x for x in (self.low, self.high, value))
        return round(100 * (value - low) / (high - low), 3)

    def from_top(self, value: float, height: float) -> float:
        """The position of a value on a vertical axis of this height, in pixels from the top."""
        return round(height * (1 - self.at(value) / 100), 2)

    @property
    def ticks(self) -> list[Tick]:
        """The ticks from low to high, in percent."""
        step = self.tick_values[-1] - self.tick_values[-2] if len(self.tick_values) > 1 else 1.0
        return [Tick(self.at(value), value, round(value / step) % 2 == 1) for value in self.tick_values]

    def ticks_from_top(self, height: float) -> list[Tick]:
        """The ticks of a vertical axis of this height, in pixels from the top."""
        return [Tick(self.from_top(value, height), value) for value in self.tick_values]


PERCENT = Axis(0.0, 100.0, tuple(range(0, 101, 10)))


def _round_step(least: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(least))
    return next(magnitude * step for step in _ROUND_STEPS if magnitude * step >= least * 0.999)


class Style(NamedTuple):
    """The look of one model in every chart: a colour and a shape, so that either alone identifies it."""

    model: str
    place: int  # in the table; the page's switches use it to identify a model
    colour: int
    shape: str  # an SVG path about the origin


def assign_styles(models: Sequence[str]) -> dict[str, Style]:
    """Assign a style to every model, by its place in the table."""
    return {
        model: Style(model, position, position % _COLOURS, _SHAPES[position % len(_SHAPES)])
        for position, model in enumerate(dict.fromkeys(models))
    }


class PointMark(NamedTuple):
    """A mark with a vertical whisker; x in percent of the width, the others in pixels from the top."""

    style: Style
    x: float
    y: float
    low: float
    high: float
    filled: bool
    label: str
