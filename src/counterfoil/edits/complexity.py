"""The background made more or less complex: its Fourier spectrum raised or smoothed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, Picture

TOLERANCE = 0.01  # of the factor
MOST_STEPS = 12
LEAST_STRENGTH = np.float32(1e-3)  # amplitude of a wave; weaker ones come from rounding

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Complexes = NDArray[np.complex64]


@dataclass(frozen=True)
class Complexity(Edit):
    """Multiply the background's complexity, the mean of |FFT2|, by smoothing it or by adding to every wave it has."""

    attribute: ClassVar[Attribute] = "background"
    words: ClassVar[str] = "background-complexity"
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.factor < 100 or self.factor == 1:
            raise UserError(f"factor: expected more than 0, other than 1 and less than 100, got {self.factor:g}")

    @property
    def least_change(self) -> float:
        """More than elsewhere: a plain background has no complexity to change."""
        return 0.05

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Change the filled background, so that the object's outline does not count, and put the object back."""
        return subject.on_background(change_complexity(subject.background, self.factor))


def change_complexity(image: Bytes, factor: float) -> Bytes:
    """The picture with `factor` times its complexity, within one percent; raises `Unusable` where none can be found."""
    start = complexity(image)
    goal = factor * start
    if factor > 1:
        return _search_strength(_make_raiser(image), start, goal, goal - start)
    return _search_strength(lambda sigma: _blur(image, sigma), start, goal, 1.0)


def complexity(image: Bytes) -> float:
    """The mean of |FFT2| over channels and frequencies, levels from 0 to 1."""
    # Channel by channel, to bound memory on large photos.
    return float(np.mean([np.abs(_spectrum(image[..., i])).mean(dtype=np.float64) for i in range(3)]))


def _spectrum(channel: Bytes) -> Complexes:
    """The full spectrum, both halves, so that its mean needs no weights."""
    levels = np.ascontiguousarray(channel) / np.float32(255)
    return np.asarray(cv2.dft(levels, flags=cv2.DFT_COMPLEX_OUTPUT), np.float32).view(np.complex64)[..., 0]


def _make_raiser(image: Bytes) -> Callable[[float], Bytes]:
    """A function that adds the same number to the amplitude of every wave: the smallest change of pixels."""
    waves = np.dstack([_unit_waves(_spectrum(image[..., i])) for i in range(3)])

    def raise_waves(added: float) -> Bytes:
        return np.asarray(cv2.addWeighted(image, 1, waves, 255 * added, 0, dtype=cv2.CV_8U), np.uint8)

    return raise_waves


def _unit_waves(spectrum: Complexes) -> Floats:
    """The picture with the same phases and every amplitude 1; the mean level stays."""
    strength = np.abs(spectrum)
    # A wave of amplitude 0 has no phase; rounding must not add one.
    spectrum /= np.maximum(strength, LEAST_STRENGTH)
    spectrum[strength < LEAST_STRENGTH] = 0
    spectrum[0, 0] = 0
    flat = spectrum.view(np.float32).reshape(*spectrum.shape, 2)
    return np.asarray(cv2.idft(flat, flags=cv2.DFT_SCALE | cv2.DFT_REAL_OUTPUT), np.float32)


def _blur(image: Bytes, sigma: float) -> Bytes:
    """A Gaussian blur; a wide one is computed on a coarser grid, which is much faster."""
    height, width = image.shape[:2]
    step = max(1, int(sigma / 4))
    small = (max(1, width // step), max(1, height // step))
    reduced = image.astype(np.float32) if step == 1 else cv2.resize(image, small, interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(np.asarray(reduced, np.float32), (0, 0), sigma / step, borderType=cv2.BORDER_REFLECT)
    large = soft if step == 1 else cv2.resize(soft, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.asarray(np.clip(np.rint(large), 0, 255), np.uint8)


def _search_strength(change: Callable[[float], Bytes], start: float, goal: float, first: float) -> Bytes:
    """The picture of the wanted complexity, found by search from `start`; complexity is monotonic in the strength."""
    low, high, strength = _Trial(0, start), None, first
    for _ in range(MOST_STEPS):
        picture = change(strength)
        trial = _Trial(strength, complexity(picture))
        if abs(trial.complexity / goal - 1) <= TOLERANCE:
            return picture
        if (trial.complexity < goal) == (low.complexity < goal):
            low = trial
        else:
            high = trial
        strength = 2 * strength if high is None else _interpolate(low, high, goal)
    raise Unusable(
        f"the background's complexity cannot be brought from {start:.3g} to {goal:.3g}, only to {trial.complexity:.3g}"
    )


class _Trial(NamedTuple):
    strength: float
    complexity: float


def _interpolate(low: _Trial, high: _Trial, goal: float) -> float:
    """The strength at which a line between two trials meets the goal, kept away from both ends."""
    share = (goal - low.complexity) / (high.complexity - low.complexity)
    return low.strength + min(max(share, 0.1), 0.9) * (high.strength - low.strength)
