"""What models take the kept pictures for: whether surrogates agree in their error, and whether others follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NO_ANSWER = -1


def common_wrong_answer(answers: NDArray[np.intp], wrong: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The class that all failing surrogates name, (pictures,); -1 where they differ or fewer than two fail.

    Both are (surrogates, pictures); an answer is the position of a class, -1 where there is none.
    """
    failing = wrong & (answers >= 0)
    highest = np.where(failing, answers, -1).max(axis=0, initial=-1)
    lowest = np.where(failing, answers, np.iinfo(np.intp).max).min(axis=0, initial=np.iinfo(np.intp).max)
    return np.where((failing.sum(axis=0) > 1) & (highest == lowest), highest, NO_ANSWER)


def names_the_same(answers: NDArray[np.intp], wrong: NDArray[np.bool_], common: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Where a failing model names the class that the surrogates have in common, (models, pictures)."""
    return np.asarray(wrong & (common >= 0) & (answers == common))
