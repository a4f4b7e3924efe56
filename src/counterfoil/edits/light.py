"""The light of the whole picture: exposed too long or too briefly, taken for light of another colour."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition, Levelled, Plane
from counterfoil.edits.edit_protocol import ComposedEdit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute

Bytes = NDArray[np.uint8]
Doubles = NDArray[np.float64]

MOST_STOPS = 5.0
COLDEST, WARMEST = 20_000, 2_000  # kelvin
DAYLIGHT = 6_500  # kelvin: the light that stays as it is
# CIE 1931 XYZ to linear sRGB, as IEC 61966-2-1 gives it.
_TO_SRGB = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
_LUMA = np.array([0.2126, 0.7152, 0.0722])


@dataclass(frozen=True)
class Exposure(ComposedEdit):
    """Expose the whole picture longer or more briefly, by stops: 1 doubles the light, -1 halves it."""

    attribute: ClassVar[Attribute] = "light"
    stops: float = -2.0

    def __post_init__(self) -> None:
        if not 0 < abs(self.stops) <= MOST_STOPS:
            raise UserError(f"stops: expected from -{MOST_STOPS:g} to {MOST_STOPS:g} and not 0, got {self.stops:g}")

    @property
    def uses_mask(self) -> bool:
        """No: the whole picture changes."""
        return False

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        try:
            stops = float(level)
        except ValueError:
            return f"another exposure ({level})" if level else "another exposure"
        return f"{'over' if stops > 0 else 'under'}exposing the picture by {abs(stops):g} stops"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Multiply the light; what is beyond white is white."""
        subject.check_object()
        table = _to_levels(_to_light() * 2.0**self.stops)
        return Composition(Levelled(Plane(subject.picture.image), table), subject.picture.alpha)


@dataclass(frozen=True)
class WhiteBalance(ComposedEdit):
    """Give the picture the tint of a light of another colour temperature that the camera took for daylight."""

    attribute: ClassVar[Attribute] = "light"
    kelvin: int = 3_000  # of the light: below 6500 the picture is warmer, above it colder

    def __post_init__(self) -> None:
        if not WARMEST <= self.kelvin <= COLDEST or self.kelvin == DAYLIGHT:
            raise UserError(
                f"kelvin: expected from {WARMEST} to {COLDEST} and not {DAYLIGHT}, which is daylight, got {self.kelvin}"
            )

    @property
    def uses_mask(self) -> bool:
        """No: the whole picture changes."""
        return False

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return f"white balance off (light of {level} K)" if level.isdigit() else f"white balance off ({level})"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Multiply the light of each channel; the luminance of grey stays."""
        subject.check_object()
        gains = tint_of(self.kelvin) / tint_of(DAYLIGHT)
        gains /= float(_LUMA @ gains)
        table = np.stack([_to_levels(_to_light() * gain) for gain in gains], axis=1)
        return Composition(Levelled(Plane(subject.picture.image), table), subject.picture.alpha)


@lru_cache(maxsize=1)
def _to_light() -> Doubles:
    """Linear light, 0..1, of the 256 levels of sRGB."""
    level = np.arange(256) / 255
    light = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    light.flags.writeable = False
    return light


def _to_levels(light: Doubles) -> Bytes:
    """The levels of sRGB of linear light; beyond 1 is white."""
    light = np.clip(light, 0, 1)
    level = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(level * 255), np.uint8)


def tint_of(kelvin: float) -> Doubles:
    """Linear sRGB of a black body, brightest channel 1; from cubic fits to the Planckian locus in CIE xy."""
    t = 1000.0 / kelvin
    warm = kelvin <= 4000
    x = np.polyval(
        [-0.2661239, -0.2343589, 0.8776956, 0.179910] if warm else [-3.0258469, 2.1070379, 0.2226347, 0.24039], t
    )
    if kelvin <= 2222:
        y = np.polyval([-1.1063814, -1.34811020, 2.18555832, -0.20219683], x)
    elif warm:
        y = np.polyval([-0.9549476, -1.37418593, 2.09137015, -0.16748867], x)
    else:
        y = np.polyval([3.0817580, -5.87338670, 3.75112997, -0.37001483], x)
    rgb = np.maximum(_TO_SRGB @ np.array([x / y, 1.0, (1 - x - y) / y]), 0.02)
    return np.asarray(rgb / rgb.max(), np.float64)
