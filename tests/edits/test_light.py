"""Exposure against its formula, colour temperatures against the standard illuminants."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.edits.light import tint_of
from counterfoil.edits.registry import edit_named
from counterfoil.errors import UserError
from counterfoil.types import Picture
from edit_pictures import blob_on_grass


def plain(level: int) -> Picture:
    given = blob_on_grass()
    return Picture(np.full_like(given.image, level), given.alpha)


def decode(level: float) -> float:
    """The standard's formula, written once more."""
    share = level / 255
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("stops", [-3.0, -1.0, 0.5, 1.0])
def test_exposure_multiplies_the_linear_light(stops: float) -> None:
    made = edit_named("exposure", {"stops": stops})(plain(120), np.random.default_rng(0))
    level = int(made.image[0, 0, 0])
    expected = decode(120) * 2**stops
    assert decode(level - 1) < expected < decode(level + 1)
    assert (edit_named("exposure", {"stops": 5})(plain(120), np.random.default_rng(0)).image == 255).all()


def test_colour_temperatures_agree_with_the_standard_illuminants() -> None:
    # CIE chromaticities: illuminant A (2856 K) 0.44757, 0.40745; a black body of 6500 K 0.3135, 0.3237.
    to_srgb = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
    for kelvin, x, y in ((2856, 0.44757, 0.40745), (6500, 0.3135, 0.3237)):
        rgb = to_srgb @ (x / y, 1, (1 - x - y) / y)
        np.testing.assert_allclose(tint_of(kelvin), rgb / rgb.max(), atol=0.01)


def test_white_balance_tints_grey_warm_or_cold_and_keeps_its_luminance() -> None:
    for kelvin, warm in ((3000, True), (12000, False)):
        made = edit_named("white-balance", {"kelvin": kelvin})(plain(100), np.random.default_rng(0))
        red, green, blue = (int(value) for value in made.image[0, 0])
        assert (red > green > blue) is warm
        assert (blue > red) is not warm
        light = 0.2126 * decode(red) + 0.7152 * decode(green) + 0.0722 * decode(blue)
        assert abs(light / decode(100) - 1) < 0.02


def test_settings_without_effect_or_beyond_the_range_are_refused() -> None:
    for name, settings in (("exposure", {"stops": 0}), ("exposure", {"stops": 9}), ("white-balance", {"kelvin": 6500})):
        with pytest.raises(UserError, match="expected"):
            edit_named(name, settings)
