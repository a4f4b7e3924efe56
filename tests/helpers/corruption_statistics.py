"""Statistics by which corruptions are compared: mean, spread and spectrum of the picture, over several draws."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage import data

Bytes = NDArray[np.uint8]

SIDE = 224
PHOTOS = ("chelsea", "coffee", "astronaut")
SEVERITIES = (1, 2, 3, 4, 5)
NAMES = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
# Where a draw moves the whole picture, many are needed before means mean something.
DRAWS = {"fog": 300, "frost": 150, "snow": 40, "motion_blur": 25, "glass_blur": 3, "elastic_transform": 6}
FEW_DRAWS = 3
WITHOUT_CHANCE = ("defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression")
OCTAVES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # cycles per pixel


class Statistics(NamedTuple):
    """Means over the draws, and standard errors of these means; first mean and spread in levels, then five octaves."""

    values: list[float]
    errors: list[float]


def photo(name: str) -> Bytes:
    """The middle of one of scikit-image's photos."""
    image = np.asarray(getattr(data, name)(), np.uint8)
    side = min(image.shape[:2])
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    square = image[top : top + side, left : left + side]
    return np.asarray(cv2.resize(square, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


def draws_of(name: str) -> int:
    """How many draws are compared."""
    return 1 if name in WITHOUT_CHANCE else DRAWS.get(name, FEW_DRAWS)


def statistics(draw: Callable[[], Bytes], draws: int) -> Statistics:
    """Statistics over that many draws."""
    rows = np.array([_measured(draw()) for _ in range(draws)])
    errors = rows.std(axis=0, ddof=1) / draws**0.5 if draws > 1 else np.zeros(rows.shape[1])
    return Statistics(rows.mean(axis=0).tolist(), errors.tolist())


def _measured(image: Bytes) -> list[float]:
    gray = image.astype(np.float64).mean(axis=2)
    strength = np.abs(np.fft.fft2(gray)) / SIDE
    down, across = np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE), indexing="ij")
    frequency = np.hypot(down, across)
    octaves = [float(strength[(frequency >= low) & (frequency < high)].mean()) for low, high in pairwise(OCTAVES)]
    return [float(image.mean()), float(image.std()), *octaves]
