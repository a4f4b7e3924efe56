"""What the models said beyond right or wrong, in columns beside `Answers`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import Answers

NO_LABEL = -1


@dataclass(frozen=True)
class Details:
    """Columns of the length of the answers; labels are positions in `labels`, -1 where there is none."""

    answers: Answers
    labels: tuple[str, ...]
    label: NDArray[np.intp]  # the true class
    answer: NDArray[np.intp]  # the class ranked first
    true_score: NDArray[np.float64]  # probability of the true class
    top_score: NDArray[np.float64]  # probability of the answer
    other_score: NDArray[np.float64]  # highest probability of a class that is not the true one
    lender: NDArray[np.intp]  # the class of the photo or texture that lent background or texture
    centre: NDArray[np.float64]  # (rows, 2), object's centre as x and y shares of the picture, NaN where unknown


def photo_labels(details: Details) -> NDArray[np.intp]:
    """The true class of each photo, (photos,)."""
    labels = np.full(len(details.answers.samples), NO_LABEL, np.intp)
    labels[details.answers.sample] = details.label
    return labels
