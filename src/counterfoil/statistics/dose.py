"""The size of the object at which accuracy has dropped by a given amount."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers
from counterfoil.statistics.intervals import percentile_interval, sum_resamples

Reached: TypeAlias = Literal["between levels", "not reached"]


class DropThreshold(NamedTuple):
    """The dose at which a model's accuracy has dropped by `points`, interpolated; a bound outside the levels is NaN."""

    model: str
    points: float
    level: float  # in the unit of the doses
    ci_low: float  # the lower of the two doses
    ci_high: float
    reached: Reached
    n: int


def size_thresholds(answers: Answers, rng: np.random.Generator, *, points: float = 10.0) -> list[DropThreshold]:
    """Return the object's share of the picture, in percent, at which shrinking it costs `points`."""
    share = _mean_shares(answers)
    originals = np.flatnonzero(answers.conditions_of({"original"})).tolist()
    if not originals or math.isnan(share[originals[0]]):
        return []
    largest = share[originals[0]]
    smaller = [c for c, condition in enumerate(answers.conditions) if condition.edit == "size" and share[c] < largest]
    doses = {c: float(share[c]) for c in (originals[0], *sorted(smaller, key=lambda c: -share[c]))}
    return _thresholds(answers, doses, rng, points)


def first_crossing(losses: NDArray[np.float64], points: float) -> NDArray[np.float64]:
    """Where each curve of mean losses (curves, steps) first reaches `points`, in steps: -inf before, inf never."""
    reached = losses >= points
    place = reached.argmax(axis=1)
    rows = np.arange(len(losses))
    high, low = losses[rows, place], losses[rows, np.maximum(place - 1, 0)]
    with np.errstate(invalid="ignore", divide="ignore"):  # curves that start above or never reach are set below
        position = place - 1 + (points - low) / (high - low)
    position = np.where(place == 0, np.where(losses[:, 0] == points, 0.0, -np.inf), position)
    return np.where(reached.any(axis=1), position, np.inf)


def _thresholds(
    answers: Answers, doses: Mapping[int, float], rng: np.random.Generator, points: float
) -> list[DropThreshold]:
    """The threshold of each model; doses are by condition, weakest first."""
    if len(doses) < 2:
        return []
    losses = answers.losses[:, list(doses)]
    levels = np.array(list(doses.values()))
    # the same photos at every step, so that missing answers bend no curve
    known: NDArray[np.bool_] = np.asarray(np.isfinite(losses).all(axis=1))
    sums = sum_resamples(
        [part for own, there in zip(losses, known, strict=True)
         for part in (there.astype(np.float64), np.where(there, own, 0.0).T)], rng,
    )  # fmt: skip
    return [
        _threshold(model, levels, losses[m][:, known[m]], (sums[2 * m], sums[2 * m + 1]), points)
        for m, model in enumerate(answers.models)
    ]


def _threshold(
    model: str, doses: NDArray[np.float64], losses: NDArray[np.float64],
    resampled: tuple[NDArray[np.float64], NDArray[np.float64]], points: float,
) -> DropThreshold:  # fmt: skip
    """The threshold from losses (steps, photos), and from the photos and the summed losses of each resample."""
    n = losses.shape[1]
    if n == 0:
        return DropThreshold(
            model=model, points=points, level=math.nan, ci_low=math.nan, ci_high=math.nan, reached="not reached", n=0
        )
    position = float(first_crossing(100 * losses.mean(axis=1)[None], points)[0])
    drawn, sums = resampled
    curves = 100 * sums[drawn > 0] / drawn[drawn > 0, None]
    interval = percentile_interval(first_crossing(curves, points))
    weaker, stronger = (_dose(doses, bound) for bound in interval)
    low, high = (weaker, stronger) if doses[0] < doses[-1] else (stronger, weaker)
    return DropThreshold(
        model=model,
        points=points,
        level=_dose(doses, position),
        ci_low=low,
        ci_high=high,
        reached=_reached(position),
        n=n,
    )


def _reached(position: float) -> Reached:
    return "not reached" if math.isinf(position) else "between levels"


def _dose(doses: NDArray[np.float64], position: float) -> float:
    return math.nan if math.isinf(position) else float(np.interp(position, np.arange(len(doses)), doses))


def _mean_shares(answers: Answers) -> NDArray[np.float64]:
    """Mean share of the picture by condition, over models and photos; NaN where unknown."""
    shares = answers.tally.object_share
    known = np.isfinite(shares)
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN: unknown
        means: NDArray[np.float64] = np.where(known, shares, 0.0).sum(axis=(0, 2)) / known.sum(axis=(0, 2))
    return means
