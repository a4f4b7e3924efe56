"""How a drop varies over classes, and what to expect of a class that was not photographed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.intervals import Estimate, student_quantile

FEWEST_CLASSES = 5  # with at least two photos each; with fewer, the spread over classes is unknown


class ClassPrediction(NamedTuple):
    """The mean of a measure over classes, and the range in which a new class's falls 95 times in 100."""

    mean: Estimate  # every class counting once; n counts classes
    deviation: float  # of the classes' true means; 0 where photos alone explain the differences
    low: float  # of the mean measured on a new class with about as many photos
    high: float
    photos: int


def predict_new_class(values: NDArray[np.float64], label: NDArray[np.intp]) -> ClassPrediction | None:
    """Predict a new class from the spread of the classes' means; None with fewer than five classes of two photos.

    The range is Student's prediction interval of one more class mean. It holds the mean that would be measured there,
    so it is wide enough for the true one.

    Args:
        values: A measure by photo; NaN where it is unknown.
        label: The class of each photo; negative where it is unknown.
    """
    known = np.isfinite(values) & (label >= 0)
    _, place, sizes = np.unique(label[known], return_inverse=True, return_counts=True)
    enough = sizes >= 2
    count = int(enough.sum())
    if count < FEWEST_CLASSES:
        return None
    kept = enough[place]
    x, own = values[known][kept], np.cumsum(enough)[place[kept]] - 1
    n = np.bincount(own).astype(np.float64)
    means = np.bincount(own, x) / n
    within = float(((x - means[own]) ** 2).sum() / (len(x) - count))
    spread = float(means.var(ddof=1))
    mean, quantile = float(means.mean()), student_quantile(count - 1)
    error, reach = (quantile * math.sqrt(spread * share) for share in (1 / count, 1 + 1 / count))
    return ClassPrediction(
        Estimate(mean, mean - error, mean + error, count),
        math.sqrt(max(0.0, spread - within * float((1 / n).mean()))),
        mean - reach,
        mean + reach,
        len(x),
    )
