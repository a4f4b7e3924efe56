"""Edits of the background's colour: hue, grey, brightness, contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import LEAST_CHANGE_OF_COLOUR, Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, Picture

HUES = 180  # OpenCV counts hue in steps of two degrees, 0..179
RANGES = {"red": ((0, 30), (150, 180)), "green": ((30, 90),), "blue": ((90, 150),)}  # of XImageNet-12; ends excluded
LEAST_CHROMA = 1.0  # mean levels between the strongest and the weakest channel
SPARSE = 4  # every fourth pixel each way is enough to detect colour
MOST_SHIFT = 90  # of XImageNet-12's rainbow

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class BackgroundHue(Edit):
    """Set the hue of the whole background to one value of red, green or blue; saturation and value stay."""

    attribute: ClassVar[Attribute] = "background"
    hue: Literal["red", "green", "blue"] = "red"

    @property
    def least_change(self) -> float:
        """A fifth of the background: where hardly any of it has colour, the colour of the rest does not matter."""
        return LEAST_CHANGE_OF_COLOUR

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Draw a hue in the range of that name and set it on every background pixel."""
        behind = _require_colour(subject.background)
        hues = np.concatenate([np.arange(*ends) for ends in RANGES[self.hue]])
        colours = np.asarray(cv2.cvtColor(behind, cv2.COLOR_RGB2HSV), np.uint8)
        colours[..., 0] = rng.choice(hues)
        return subject.on_background(np.asarray(cv2.cvtColor(colours, cv2.COLOR_HSV2RGB), np.uint8))


@dataclass(frozen=True)
class BackgroundRainbow(Edit):
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

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Draw the step from 0..90 of 180 and add it."""
        behind = _require_colour(subject.background)
        shape = behind.shape[:2] if self.per_pixel else (1, 1)
        return subject.on_background(turn_hue(behind, rng.integers(0, MOST_SHIFT + 1, shape, np.uint16)))


def _require_colour(image: Bytes) -> Bytes:
    """The picture itself; raises `Unusable` where it has no colour to change."""
    if np.ptp(image[::SPARSE, ::SPARSE].astype(np.int16), axis=2).mean() < LEAST_CHROMA:
        raise Unusable("the background has no colour to change")
    return image


def turn_hue(image: Bytes, step: NDArray[np.uint16]) -> Bytes:
    """The picture with its hues turned by this many steps of two degrees."""
    colours = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2HSV), np.uint8)
    colours[..., 0] = (colours[..., 0] + step) % HUES
    return np.asarray(cv2.cvtColor(colours, cv2.COLOR_HSV2RGB), np.uint8)


@dataclass(frozen=True)
class BackgroundGrayscale(Edit):
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

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Keep only the luma of the background."""
        gray = cv2.cvtColor(_require_colour(subject.background), cv2.COLOR_RGB2GRAY)
        return subject.on_background(np.asarray(cv2.cvtColor(gray, cv2.COLOR_GRAY2RGB), np.uint8))


@dataclass(frozen=True)
class BackgroundBrightness(Edit):
    """Multiply the background's brightness, or glare it as XImageNet-12 does: 1.5 x + 0.9 mean(x, 9 x 9) + 1.9."""

    attribute: ClassVar[Attribute] = "background"
    factor: float | Literal["ximagenet-12"] = 1.5

    def __post_init__(self) -> None:
        if self.factor != "ximagenet-12" and not self.factor >= 0:
            raise UserError(f"factor: expected 0 or more, or 'ximagenet-12', got {self.factor}")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Make the background brighter or darker, clipped at white."""
        behind = subject.background
        if self.factor == "ximagenet-12":
            bright = cv2.addWeighted(behind, 1.5, np.asarray(cv2.blur(behind, (9, 9))), 0.9, 1.9)
        else:
            bright = cv2.LUT(behind, _round_levels(np.arange(256) * self.factor))
        return subject.on_background(np.asarray(bright, np.uint8))


@dataclass(frozen=True)
class BackgroundContrast(Edit):
    """Stretch or flatten the background about the mean of each of its channels."""

    attribute: ClassVar[Attribute] = "background"
    factor: float = 0.3

    def __post_init__(self) -> None:
        if not self.factor >= 0:
            raise UserError(f"factor: expected 0 or more, got {self.factor}")

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Move every background level away from the mean or towards it."""
        behind = subject.background
        mean = np.array(cv2.mean(behind)[:3])
        table = _round_levels((np.arange(256)[:, None] - mean) * self.factor + mean)
        return subject.on_background(np.asarray(cv2.LUT(behind, table[None]), np.uint8))


def _round_levels(values: NDArray[np.floating]) -> Bytes:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)
