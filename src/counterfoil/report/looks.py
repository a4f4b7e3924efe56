"""How each model looks in every chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_COLOURS = 6
_SHAPES = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
    "M-4.2-4.2h8.4v8.4h-8.4z",
    "M0-5.8L5.8 0L0 5.8L-5.8 0z",
    "M0-5.4L5.4 4.2H-5.4z",
)


class Style(NamedTuple):
    """How one model looks in every chart: a colour and a shape, so that neither is needed alone."""

    model: str
    place: int  # in the table; the page's switches name a model by it
    colour: int
    shape: str  # an SVG path about the origin


def styles(models: Sequence[str]) -> dict[str, Style]:
    """A look for every model, by its place in the table."""
    return {
        model: Style(model, position, position % _COLOURS, _SHAPES[position % len(_SHAPES)])
        for position, model in enumerate(dict.fromkeys(models))
    }
