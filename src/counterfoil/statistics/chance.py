"""Whether answers are better than guessing: an exact binomial test, exact bounds, and labels matched to answers."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_HALVINGS = 60  # of the bracket of a bound


class ChanceTest(NamedTuple):
    """Right answers compared with guessing; shares, not percent."""

    n: int
    right: int
    chance: float  # the share of right answers by guessing
    p_value: float  # of at least so many right answers by guessing
    upper: float  # 95 % upper bound of the share of right answers

    @property
    def share(self) -> float:
        """The share of right answers; NaN where there is none."""
        return self.right / self.n if self.n else math.nan


def compare_with_chance(labels: NDArray[np.intp], answers: NDArray[np.intp], classes: int) -> ChanceTest:
    """The exact test of right answers against guessing; labels and answers are numbers of classes, photo by photo."""
    n, right = len(labels), int((labels == answers).sum())
    chance = guess_rate(labels, answers, classes)
    return ChanceTest(n, right, chance, binomial_tail(right, n, chance), upper_bound(right, n))


def guess_rate(labels: NDArray[np.intp], answers: NDArray[np.intp], classes: int) -> float:
    """The share of right answers by guessing.

    One of the classes that compete; or, where that is more, what the same answers would give in another order of
    photos: a model that gives one answer to all photos is right on the share of that class.
    """
    if not len(labels):
        return 1.0 / max(classes, 1)
    most = int(max(labels.max(initial=0), answers.max(initial=0))) + 1
    shares = [np.bincount(values[values >= 0], minlength=most) / len(values) for values in (labels, answers)]
    return max(1.0 / max(classes, 1), float(shares[0] @ shares[1]))


def binomial_tail(successes: int, trials: int, chance: float) -> float:
    """P(at least `successes` in `trials`), exact; NaN without trials."""
    if trials == 0:
        return math.nan
    if successes <= 0:
        return 1.0
    if chance <= 0.0 or chance >= 1.0:
        return 0.0 if chance <= 0.0 else 1.0
    logs = _binomial_logs(trials, chance)[successes:]
    return min(1.0, math.fsum(np.exp(logs).tolist()))


def upper_bound(successes: int, trials: int, *, confidence: float = 0.95) -> float:
    """The exact one-sided upper bound of a share by Clopper and Pearson; 1 where nothing was tried."""
    if successes >= trials:
        return 1.0
    low, high = successes / trials, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        below = 1.0 - binomial_tail(successes + 1, trials, middle)  # P(at most as many as seen)
        low, high = (middle, high) if below > 1.0 - confidence else (low, middle)
    return high


def match_answers(labels: NDArray[np.intp], answers: NDArray[np.intp]) -> tuple[NDArray[np.bool_], dict[int, int]]:
    """Which answers fit the best one-to-one naming of the classes, and that naming, from label to answer.

    The naming that one half of each class's photos suggests is tried on the other half, and the other way round. So
    a model whose labels are in any wrong order fits well, one that is wrong at random does not, and one that
    gives the same answer to several classes fits one of them.
    """
    fold = _alternate(labels)
    fits = np.zeros(len(labels), bool)
    for half in (0, 1):
        naming = _name_one_to_one(labels[fold != half], answers[fold != half])
        held_out = fold == half
        expected = np.array([naming.get(label, -2) for label in labels[held_out].tolist()], np.intp)
        fits[held_out] = expected == answers[held_out]
    return fits, _name_one_to_one(labels, answers)


def _alternate(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """0 and 1 in turn within each class."""
    seen: dict[int, int] = {}
    fold = np.zeros(len(labels), np.intp)
    for place, label in enumerate(labels.tolist()):
        seen[label] = seen.get(label, -1) + 1
        fold[place] = seen[label] % 2
    return fold


def _name_one_to_one(labels: NDArray[np.intp], answers: NDArray[np.intp]) -> dict[int, int]:
    """Each label's answer, the most frequent pairs first; of equally frequent ones the label itself."""
    pairs, counts = np.unique(np.stack([labels, answers]), axis=1, return_counts=True)
    rows = zip(pairs[0].tolist(), pairs[1].tolist(), counts.tolist(), strict=True)
    naming: dict[int, int] = {}
    used: set[int] = set()
    for label, answer, _ in sorted(rows, key=lambda row: (-row[2], row[0] != row[1], row[0], row[1])):
        if answer >= 0 and label not in naming and answer not in used:
            naming[label] = answer
            used.add(answer)
    return naming


def _binomial_logs(trials: int, chance: float) -> NDArray[np.float64]:
    """Logarithms of the probabilities of 0..trials successes."""
    k = np.arange(trials + 1, dtype=np.float64)
    choices = np.concatenate(([0.0], np.cumsum(np.log((trials - k[:-1]) / k[1:]))))
    logs: NDArray[np.float64] = choices + k * math.log(chance) + (trials - k) * math.log1p(-chance)
    return logs
