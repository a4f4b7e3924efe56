"""The preprocessing behind a transform that was given as code, found by what it does to fixed pictures.

A model written as a file can only be prepared by a description: size, resize, mean and deviation. A grey ramp tells
mean, deviation and the order of the colours; which resize it is, the trial pictures decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.preprocessing import LEVELS_ALLOWED, Transform, make_trial_pictures, measure_difference
from counterfoil.models.preprocessing import prepare_input as _prepare
from counterfoil.types import Preprocessing

_INTERPOLATIONS: tuple[Literal["bilinear", "bicubic", "lanczos"], ...] = ("bilinear", "bicubic", "lanczos")
_LARGEST_RESIZE = 1.5  # times the size of the crop


def infer_preprocessing(transform: Transform) -> Preprocessing | None:
    """The description that agrees with a transform within two levels of 255; None where there is none.

    Examples:
        >>> import numpy as np
        >>> from counterfoil.models.preprocessing import prepare_input
        >>> wanted = Preprocessing(size=(32, 32), resize=40, interpolation="bicubic")
        >>> inferred = infer_preprocessing(lambda picture: prepare_input(np.asarray(picture), wanted))
        >>> inferred.size, inferred.resize, inferred.interpolation
        ((32, 32), 40, 'bicubic')
    """
    black, white = (_plain(transform, (level,) * 3) for level in (0, 255))
    if black.shape[0] != 3 or not (np.ptp(black, axis=(1, 2)).max() < 1e-4 and (white > black).all()):
        return None
    low, high = black[:, 0, 0].astype(np.float64), white[:, 0, 0].astype(np.float64)
    deviation = 255 / (high - low)
    red = _plain(transform, (255, 0, 0))[:, 0, 0]
    is_bgr = abs(red[2] - high[2]) < 1e-3 and abs(red[0] - low[0]) < 1e-3
    size = (black.shape[1], black.shape[2])
    means, deviations = _three(-low * deviation), _three(deviation)
    guesses = [
        Preprocessing(size=size, resize=resize, interpolation=interpolation, mean=means, std=deviations,
                      colour_order="BGR" if is_bgr else "RGB")
        for resize in _resizes(size) for interpolation in _INTERPOLATIONS
    ]  # fmt: skip
    trial = make_trial_pictures()[0]
    theirs = transform(Image.fromarray(trial))
    best = min(guesses, key=lambda guess: float(np.abs(_prepare(trial, guess) - theirs).mean()))
    return best if measure_difference(transform, best) <= LEVELS_ALLOWED else None


def _plain(transform: Transform, colour: tuple[int, int, int]) -> NDArray[np.float32]:
    """What a transform makes of a picture of one colour."""
    return np.asarray(transform(Image.new("RGB", (400, 300), colour)), np.float32)


def _three(values: NDArray[np.float64]) -> tuple[float, float, float]:
    first, second, third = (round(float(value), 4) for value in values)
    return first, second, third


def _resizes(size: tuple[int, int]) -> Iterator[int | None]:
    """Squeezed to the size, or a shorter side from which the size is cropped."""
    yield None
    longest = max(size)
    yield from range(longest, int(_LARGEST_RESIZE * longest) + 1)
