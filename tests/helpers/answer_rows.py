"""Small sets of answers for the tests of the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers, Condition, Details, encode_labels
from counterfoil.types import PredictionOutcome

ORIGINAL = Condition("original", "original", "none")
CONTROL = Condition("control", "control", "none")
SWAP = Condition("background", "background-swap", "other")
SAME = Condition("background", "background-swap", "same")
SMALL = Condition("size", "size", "0.05")
TURN = Condition("direction", "direction", "-45..45")


class Answer(NamedTuple):
    """One model's answer to one variant."""

    model: str
    sample_id: str
    condition: Condition
    correct: bool
    outcome: PredictionOutcome = "scored"
    object_share: float = float("nan")  # of the picture, in percent
    replicate: int = 0


def collect(rows: Iterable[Answer], *, models: Sequence[str] = (), conditions: Sequence[Condition] = ()) -> Answers:
    """Put answers into columns; names without a given order are in order of first appearance."""
    kept = list(rows)
    known_models, model = encode_labels((row.model for row in kept), models)
    known_conditions, condition = encode_labels((row.condition for row in kept), conditions)
    samples, sample = encode_labels(row.sample_id for row in kept)
    return Answers(
        models=known_models,
        conditions=known_conditions,
        samples=samples,
        model=model,
        condition=condition,
        sample=sample,
        replicate=np.array([row.replicate for row in kept], dtype=np.intp),
        correct=np.array([row.correct for row in kept], dtype=bool),
        scored=np.array([row.outcome == "scored" for row in kept], dtype=bool),
        object_share=np.array([row.object_share for row in kept], dtype=np.float64),
    )


def answers_of(correct: Mapping[tuple[str, Condition], Sequence[float]]) -> Answers:
    """One answer per photo, by model and condition: 1 right, 0 wrong, NaN unscored."""
    return collect(
        Answer(model, f"cat/{photo}", condition, right == 1, "error" if np.isnan(right) else "scored")
        for (model, condition), row in correct.items()
        for photo, right in enumerate(row)
    )


def details_of(
    said: Mapping[tuple[str, Condition], Sequence[str]],
    truth: Sequence[str],
    *,
    lenders: Mapping[Condition, Sequence[str]] | None = None,
    scores: Mapping[Condition, Sequence[tuple[float, float]]] | None = None,
) -> Details:
    """Details of one answer per photo; scores are (answer's, best other's), true class's by the answer."""
    rows = [(m, c, p, answer) for (m, c), row in said.items() for p, answer in enumerate(row)]
    answers = collect(Answer(m, f"{truth[p]}/{p}", c, answer == truth[p]) for m, c, p, answer in rows)
    lent = [(lenders or {}).get(c, [""] * len(truth))[p] for _, c, p, _ in rows]
    labels = tuple(sorted({*truth, *lent, *(answer for *_, answer in rows)} - {""}))

    def places(names: Sequence[str]) -> NDArray[np.intp]:
        return np.array([labels.index(name) if name else -1 for name in names], dtype=np.intp)

    pairs = np.array([(scores or {}).get(c, [(np.nan, np.nan)] * len(truth))[p] for _, c, p, _ in rows]).reshape(-1, 2)
    label, answer = places([truth[p] for _, _, p, _ in rows]), places([answer for *_, answer in rows])
    right = label == answer
    return Details(
        answers=answers,
        labels=labels,
        label=label,
        answer=answer,
        true_score=np.where(right, pairs[:, 0], pairs[:, 1]),
        top_score=pairs[:, 0],
        other_score=np.where(right, pairs[:, 1], pairs[:, 0]),
        donor=places(lent),
        centre=np.full((len(rows), 2), np.nan),
    )
