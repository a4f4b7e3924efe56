"""The diffusion sampler: its schedule and its solver, which keeps known pixels at every step.

It works on NumPy arrays and on torch tensors, and returns the kind that it is given. Every picture has its own noise,
so a picture does not depend on its batch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

LAST_RATIO = 6.0  # log signal-to-noise ratio of the last step, where noise is below a few levels
SHIFT = 2 * math.log(4)  # the schedule of 64 px pictures, made noisier for 256 px
STRONGEST = 0.97  # start of the schedule: nothing of the old background is left
SPAN = 3  # steps repeated at a time: enough for the second-order solver, too few to lose the layout
TURNS = (0.6180339887, 0.7548776662)  # shares of height and width whose multiples never come close to a whole

Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor, (n, channels, height, width), from -1 to 1
Predict: TypeAlias = Callable[[Array, float], Array]  # planes and log ratio to v
Guide: TypeAlias = Callable[[Array, float], Array]  # the predicted picture and the share of noise, to a guided picture


@dataclass(frozen=True)
class Scene:
    """The pictures to paint and the pixels to keep; arrays of one kind, with one picture per row."""

    background: Array  # (n, 3, height, width), where the painting starts from
    colours: Array  # (n, 3, height, width), of what stays
    known: Array  # (n, 1, height, width), 1 where the colours stay and 0 where they are painted
    noise: Array  # (n, 3, height, width)


def log_ratio(strength: float) -> float:
    """The log signal-to-noise ratio at which an edit of this strength starts."""
    return -2 * math.log(math.tan(math.pi / 2 * min(strength, STRONGEST))) - SHIFT


def levels(ratio: float) -> tuple[float, float]:
    """The shares of picture and noise at this ratio; their squares add up to 1."""
    return 1 / math.sqrt(1 + math.exp(-ratio)), 1 / math.sqrt(1 + math.exp(ratio))


def ratios(strength: float, steps: int) -> list[float]:
    """The ratios at which the network is run, evenly spaced."""
    return [float(ratio) for ratio in np.linspace(log_ratio(strength), LAST_RATIO, steps)]


def repeat_steps(schedule: Sequence[float], times: int) -> list[float]:
    """The schedule with every few steps repeated `times` times, with noise added in between."""
    repeated = list(schedule[:1])
    for start in range(0, len(schedule) - 1, SPAN):
        span = list(schedule[start : start + SPAN + 1])
        repeated += span[1:] + (times - 1) * span
    return repeated


class StepWeights(NamedTuple):
    """The numbers of one step of the solver: floats, or tensors on a device."""

    signal: Any  # share of picture in the noisy picture
    noise: Any  # share of noise in it
    ahead: Any  # of the change between the last two clean pictures, which is added to the last
    carry: Any  # of the noisy picture, in the next one
    add: Any  # of the clean picture, in the next one
    next_signal: Any
    next_noise: Any


def step_weights(schedule: Sequence[float], place: int, has_earlier: bool) -> StepWeights:
    """The numbers of the step at this place of the schedule; the last step leads nowhere."""
    now = schedule[place]
    after = schedule[place + 1] if place + 1 < len(schedule) else now
    (signal, noise), (next_signal, next_noise) = levels(now), levels(after)
    ahead = (after - now) / (2 * (now - schedule[place - 1])) if has_earlier else 0.0
    shrink = math.exp((now - after) / 2)
    return StepWeights(
        signal, noise, ahead, next_noise / noise, next_signal * (1 - shrink), next_signal, next_noise
    )  # fmt: skip


def sample_background(predict: Predict, scene: Scene, schedule: Sequence[float], guide: Guide | None = None) -> Array:
    """Solve from the first ratio of the schedule to a clean picture; known pixels are unchanged.

    Where the schedule goes back to a lower ratio, noise is added instead of running the network.
    """
    noisy = add_first_noise(scene, schedule)
    clean = earlier = None
    turns = 0
    for place, ratio in enumerate(schedule):
        if place + 1 < len(schedule) and schedule[place + 1] < ratio:
            turns += 1
            noisy, clean = _add_noise(scene, noisy, (ratio, schedule[place + 1]), turns), None
            continue
        weights = step_weights(schedule, place, has_earlier=clean is not None)
        planes = _module(noisy).concatenate([noisy, scene.known * scene.colours, scene.known], 1)
        earlier, clean = clean, find_clean(scene, noisy, predict(planes, ratio), guide, weights)
        if place + 1 < len(schedule):
            noisy = advance(scene, noisy, clean, earlier, weights)
    return clean


def add_first_noise(scene: Scene, schedule: Sequence[float]) -> Array:
    """The noisy picture from which the solver starts."""
    signal, noise = levels(schedule[0])
    return signal * _keep_known(scene, scene.background) + noise * scene.noise


def find_clean(scene: Scene, noisy: Array, velocity: Array, guide: Guide | None, weights: StepWeights) -> Array:
    """The clean picture that the network's answer stands for, guided."""
    module = _module(noisy)
    clean = _keep_known(scene, module.clip(weights.signal * noisy - weights.noise * velocity, -1, 1))
    if guide is None:
        return clean
    return _keep_known(scene, module.clip(guide(clean, weights.noise), -1, 1))


def advance(scene: Scene, noisy: Array, clean: Array, earlier: Array | None, weights: StepWeights) -> Array:
    """The noisy picture of the next step; known pixels get the noise they had from the beginning.

    The clean picture is extrapolated to the middle of the step from its last two predictions, where there are two.
    """
    ahead = clean if earlier is None else clean + (clean - earlier) * weights.ahead
    moved = weights.carry * noisy + weights.add * ahead
    stays = weights.next_signal * scene.colours + weights.next_noise * scene.noise
    return scene.known * stays + (1 - scene.known) * moved


def _keep_known(scene: Scene, picture: Array) -> Array:
    return scene.known * scene.colours + (1 - scene.known) * picture


def _add_noise(scene: Scene, noisy: Array, step: tuple[float, float], turn: int) -> Array:
    """The picture with noise added to reach a lower ratio; known pixels keep the noise they had."""
    (signal, noise), (next_signal, next_noise) = (levels(ratio) for ratio in step)
    share = next_signal / signal
    # The picture's own noise, shifted, serves as new noise and needs no generator on the device.
    shifts = tuple(int(turn * part * side) for part, side in zip(TURNS, noisy.shape[-2:], strict=True))
    fresh = _module(noisy).roll(scene.noise, shifts, (2, 3))
    moved = share * noisy + math.sqrt(next_noise**2 - (share * noise) ** 2) * fresh
    stays = next_signal * scene.colours + next_noise * scene.noise
    return scene.known * stays + (1 - scene.known) * moved


def _module(array: Array) -> Any:
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]
