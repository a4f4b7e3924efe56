"""A figure as a list of simple things, in points from the top left, that SVG, PDF and PNG are drawn from."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Colour: TypeAlias = tuple[int, int, int]

INK: Colour = (28, 35, 43)
MUTED: Colour = (93, 104, 114)
GRID: Colour = (222, 218, 210)
WHITE: Colour = (255, 255, 255)
WORSE: Colour = (224, 112, 58)
BETTER: Colour = (60, 143, 196)
MODELS: tuple[Colour, ...] = (
    (0, 114, 178), (184, 79, 0), (0, 127, 92), (173, 79, 134), (89, 98, 108), (143, 98, 0),
)  # as on the page  # fmt: skip


class Line(NamedTuple):
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: Colour
    width: float = 0.8
    dashed: bool = False


class Label(NamedTuple):
    """A line of text; y is its baseline."""

    x: float
    y: float
    text: str
    size: float = 8.0
    anchor: Literal["start", "middle", "end"] = "start"
    colour: Colour = INK
    bold: bool = False


class Mark(NamedTuple):
    """A model's mark: circle, square, diamond or triangle."""

    x: float
    y: float
    shape: int
    colour: Colour
    filled: bool


class Box(NamedTuple):
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour


Item: TypeAlias = "Line | Label | Mark | Box"


class Drawing(NamedTuple):
    """A whole figure."""

    width: float
    height: float
    items: list[Item]


CORNERS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-2.6, -2.6), (2.6, -2.6), (2.6, 2.6), (-2.6, 2.6)),
    ((0.0, -3.6), (3.6, 0.0), (0.0, 3.6), (-3.6, 0.0)),
    ((0.0, -3.4), (3.4, 2.6), (-3.4, 2.6)),
)  # of the shapes about their centre; the first, a circle, has none
RADIUS = 2.8


def model_mark(x: float, y: float, place: int, filled: bool) -> Mark:
    """The mark of the model at this place of the table."""
    return Mark(x, y, place % len(CORNERS), MODELS[place % len(MODELS)], filled)


def blended(colour: Colour, share: float) -> Colour:
    """A colour laid on white, so strongly."""
    red, green, blue = (round(255 + (value - 255) * share) for value in colour)
    return red, green, blue
