"""People's answers to one question in a table: one row per picture, one column per annotator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.answers import coded
from counterfoil.types import Verdict

NO_ANSWER = -1


class Ratings(NamedTuple):
    """Answers as positions in `answers`, -1 where an annotator gave none to a picture."""

    pictures: tuple[str, ...]  # variant ids
    annotators: tuple[str, ...]
    answers: tuple[str, ...]
    codes: NDArray[np.intp]  # (pictures, annotators)

    @property
    def one_hot(self) -> NDArray[np.float64]:
        """1 where an annotator gave an answer, (pictures, annotators, answers)."""
        return np.asarray(self.codes[:, :, None] == np.arange(len(self.answers)), np.float64)

    @property
    def counts(self) -> NDArray[np.float64]:
        """How often each answer was given, (pictures, answers)."""
        return np.asarray(self.one_hot.sum(axis=1), np.float64)


def latest(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts that count: of an answer and its corrections the last."""
    found: dict[tuple[str, str, str, str], Verdict] = {}
    for verdict in verdicts:
        key = (verdict.variant_id, verdict.annotator, verdict.question, verdict.control)
        if key not in found or found[key].version <= verdict.version:
            found[key] = verdict
    return list(found.values())


def ratings_of(verdicts: Iterable[Verdict], question: str, *, answers: Sequence[str] = ()) -> Ratings:
    """The answers to one question, hidden controls left out; `answers` fixes their order where it is known."""
    kept = [verdict for verdict in latest(verdicts) if verdict.question == question and not verdict.control]
    pictures, picture = coded(verdict.variant_id for verdict in kept)
    annotators, annotator = coded(verdict.annotator for verdict in kept)
    known, answer = coded((verdict.answer for verdict in kept), answers)
    codes = np.full((len(pictures), len(annotators)), NO_ANSWER, np.intp)
    codes[picture, annotator] = answer
    return Ratings(pictures, annotators, known, codes)
