"""How likely a count is at least so large by chance: draws without replacement, and unequal independent trials.

Small samples are summed exactly. Large ones are summed in logarithms or by Fourier transforms, so that the time grows
with the number of photos and not with its square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
_MOST_EXACT = 2000  # photos up to which a tail is summed in integers
_MOST_TRIALS = 2000  # up to which their distribution is built trial by trial
_SHORTEST_FOURIER = 256  # entries; shorter distributions are multiplied directly
_BISECTIONS = 60  # of the tilt, which need not be exact


def hypergeometric_tail(least: int, total: int, marked: int, drawn: int) -> float:
    """P(at least `least` marked among `drawn` of `total` without replacement)."""
    if total > _MOST_EXACT:
        return _hypergeometric_tail_in_logarithms(least, total, marked, drawn)
    hits = range(least, min(marked, drawn) + 1)
    draws = sum(math.comb(marked, k) * math.comb(total - marked, drawn - k) for k in hits)
    return draws / math.comb(total, drawn)  # integers of any size, so exact


def _hypergeometric_tail_in_logarithms(least: int, total: int, marked: int, drawn: int) -> float:
    """The same to about eight digits: exact integers of thousands of digits take seconds."""
    logs = _log_factorials(total.bit_length())
    unmarked = total - marked
    hits = np.arange(max(least, drawn - unmarked), min(marked, drawn) + 1)
    chosen = logs[marked] - logs[hits] - logs[marked - hits]
    others = logs[unmarked] - logs[drawn - hits] - logs[unmarked - drawn + hits]
    every = logs[total] - logs[drawn] - logs[total - drawn]
    return float(min(1.0, np.exp(chosen + others - every).sum()))


@lru_cache(maxsize=2)  # a report asks for as many totals as there are classes, all of about the same size
def _log_factorials(bits: int) -> Floats:
    """The logarithms of 0!, 1!, ... of every number of so many bits."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 1 << bits)))])


def poisson_binomial_tail(chances: Floats, hits: int) -> float:
    """P(at least `hits` hits) of independent trials with these probabilities; NaN without a trial."""
    if len(chances) == 0:
        return math.nan
    if len(chances) > _MOST_TRIALS:
        return _poisson_binomial_tail_by_fourier(chances, hits)
    distribution = np.array([1.0])
    for chance in chances:
        distribution = np.convolve(distribution, [1.0 - chance, chance])
    return float(min(1.0, distribution[hits:].sum()))


def _poisson_binomial_tail_by_fourier(chances: Floats, hits: int) -> float:
    """The same for many trials, to about ten digits however small the tail is.

    Fourier transforms lose what is small beside the peak. The trials are therefore tilted, each chance p to
    p e^t / (1 - p + p e^t), until about `hits` hits are expected; the terms of the tail then are at the peak, and the
    tilt is taken back term by term.
    """
    possible = chances[chances > 0.0]
    if hits > len(possible):
        return 0.0
    tilt = _find_tilt(possible, hits)
    growth = np.log1p(possible * math.expm1(tilt))  # log of 1 - p + p e^t
    tilted = possible * math.exp(tilt) / np.exp(growth)
    terms = _multiply([np.array([1.0 - chance, chance]) for chance in tilted])[hits:]
    back = float(growth.sum()) - tilt * np.arange(hits, len(possible) + 1)
    with np.errstate(divide="ignore"):  # the logarithm of no chance at all
        return float(min(1.0, np.exp(np.log(np.maximum(terms, 0.0)) + back).sum()))


def _find_tilt(chances: Floats, hits: int) -> float:
    """The tilt, not below 0, at which as many hits are expected; by bisection."""
    if chances.sum() >= hits:
        return 0.0
    low, high = 0.0, 50.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        expected = float((chances / (chances + (1.0 - chances) * math.exp(-middle))).sum())
        low, high = (middle, high) if expected < hits else (low, middle)
    return low


def _multiply(distributions: Sequence[Floats]) -> Floats:
    """The distribution of a sum, from those of its independent summands, two and two."""
    while len(distributions) > 1:
        pairs = zip(distributions[::2], distributions[1::2], strict=False)
        rest = distributions[len(distributions) // 2 * 2 :]
        distributions = [*(_convolve(first, second) for first, second in pairs), *rest]
    return distributions[0]


def _convolve(first: Floats, second: Floats) -> Floats:
    length = len(first) + len(second) - 1
    if length < _SHORTEST_FOURIER:
        return np.convolve(first, second)
    size = 1 << (length - 1).bit_length()
    spectrum = np.fft.rfft(first, size) * np.fft.rfft(second, size)
    return np.maximum(np.fft.irfft(spectrum, size)[:length], 0.0)
