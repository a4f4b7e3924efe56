"""Edits of the background's colour: hue, grey, brightness, contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Grey, HueStepped, Levelled, Plane
from counterfoil.edits.edit_protocol import LEAST_CHANGE_OF_COLOUR, ComposedEdit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute

RANGES = {"red": ((0, 30), (150, 180)), "green": ((30, 90),), "blue": ((90, 150),)}  # of XImageNet-12; ends excluded
LEAST_CHROMA = 1.0  # mean levels between the strongest and the weakest channel
SPARSE = 4  # every fourth pixel each way is enough to detect colour
MOST_SHIFT = 90  # of XImageNet-12's rainbow

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class BackgroundHue(ComposedEdit):
    """Set the hue of the whole background to one value of red, green or blue; saturation and value stay."""

    attribute: ClassVar[Attribute] = "background"
    hue: Literal["red", "green", "blue"] = "red"

    @property
    def least_change(self) -> float:
        """A fifth of the background: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Draw a hue in the range of that name and set it on every background pixel."""
        behind = _require_colour(subject.background)
        hues = np.concatenate([np.arange(*ends) for ends in RANGES[self.hue]])
        return subject.compose_on(HueStepped(Plane(behind), int(rng.choice(hues)), keep=False))


@dataclass(frozen=True)
class BackgroundRainbow(ComposedEdit):
    """Turn the background's hues by up to half the colour circle, all by the same step."""

    attribute: ClassVar[Attribute] = "background"
    per_pixel: bool = False  # a separate step for every pixel

    @property
    def level(self) -> str:
        """The word random, or "per pixel"."""
        return "per pixel" if self.per_pixel else "random"

    @property
    def least_change(self) -> float:
        """A fifth of the background: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Draw the step from 0..90 of 180 and add it."""
        behind = _require_colour(subject.background)
        shape = behind.shape[:2] if self.per_pixel else (1, 1)
        return subject.compose_on(HueStepped(Plane(behind), rng.integers(0, MOST_SHIFT + 1, shape, np.uint16)))


def _require_colour(image: Bytes) -> Bytes:
    """The picture itself; raises `Unusable` where it has no colour to change."""
    if np.ptp(image[::SPARSE, ::SPARSE].astype(np.int16), axis=2).mean() < LEAST_CHROMA:
        raise Unusable("the background has no colour to change")
    return image


@dataclass(frozen=True)
class BackgroundGrayscale(ComposedEdit):
    """Take the colour out of the background."""

    attribute: ClassVar[Attribute] = "background"
    words: ClassVar[str] = "taking its colour"

    @property
    def level(self) -> str:
        """Always "gray"."""
        return "gray"

    @property
    def least_change(self) -> float:
        """A fifth of the background: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Keep only the luma of the background."""
        return subject.compose_on(Grey(Plane(_require_colour(subject.background))))


@dataclass(frozen=True)
class BackgroundBrightness(ComposedEdit):
    """Multiply the background's brightness, or glare it as XImageNet-12 does: 1.5 x + 0.9 mean(x, 9 x 9) + 1.9."""

    attribute: ClassVar[Attribute] = "background"
    factor: float | Literal["ximagenet-12"] = 1.5

    def __post_init__(self) -> None:
        if self.factor != "ximagenet-12" and not self.factor >= 0:
            raise UserError(f"factor: expected 0 or more, or 'ximagenet-12', got {self.factor}")

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Make the background brighter or darker, clipped at white."""
        behind = subject.background
        if self.factor == "ximagenet-12":
            bright = cv2.addWeighted(behind, 1.5, np.asarray(cv2.blur(behind, (9, 9))), 0.9, 1.9)
            return subject.compose_on(Plane(np.asarray(bright, np.uint8)))
        return subject.compose_on(Levelled(Plane(behind), _round_levels(np.arange(256) * self.factor)))


@dataclass(frozen=True)
class BackgroundContrast(ComposedEdit):
    """Stretch or flatten the background about the mean of each of its channels."""

    attribute: ClassVar[Attribute] = "background"
    factor: float = 0.3

    def __post_init__(self) -> None:
        if not self.factor >= 0:
            raise UserError(f"factor: expected 0 or more, got {self.factor}")

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Move every background level away from the mean or towards it."""
        behind = subject.background
        mean = np.array(cv2.mean(behind)[:3])
        table = _round_levels((np.arange(256)[:, None] - mean) * self.factor + mean)
        return subject.compose_on(Levelled(Plane(behind), table))


def _round_levels(values: NDArray[np.floating]) -> Bytes:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)
