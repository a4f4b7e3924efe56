"""Accuracies by kind of picture as papers compute them, and the tables of benchmarks with a single accuracy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.published.archive import ArchiveCondition
from counterfoil.report.content import PaperTable
from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.intervals import RATE, Estimate, estimate
from counterfoil.study.runs import Study


@dataclass(frozen=True)
class Scores:
    """Correct answers, row by row as in the study's answers; unscored answers are excluded."""

    answers: Answers
    right: NDArray[np.bool_]

    def accuracy(self, model: str, kinds: Collection[ArchiveCondition] | None = None) -> float | None:
        """Percent correct over the pictures of these kinds, or of all; None where none was scored."""
        rows = self._rows(model, kinds)
        return 100 * float(self.right[rows].mean()) if rows.any() else None

    def interval(self, model: str) -> Estimate:
        """Percent correct over all pictures with its Wilson score interval."""
        return estimate(self.right[self._rows(model, None)].astype(np.float64), RATE).scaled(100)

    def count(self, model: str) -> int:
        """Number of pictures that were scored."""
        return int(self._rows(model, None).sum())

    def _rows(self, model: str, kinds: Collection[ArchiveCondition] | None) -> NDArray[np.bool_]:
        rows = (self.answers.model == self.answers.model_index(model)) & self.answers.scored
        if kinds is not None:
            wanted = {Condition(*kind) for kind in kinds}
            chosen = np.array([condition in wanted for condition in self.answers.conditions], dtype=bool)
            rows &= chosen[self.answers.condition]
        return np.asarray(rows, np.bool_)


def score_top1(study: Study) -> Scores:
    """Score an answer as correct where the first one is."""
    return Scores(study.answers, study.answers.correct)


def score_top5(study: Study) -> Scores:
    """Score an answer as correct where the true class is among the five best; a class with several ids counts once."""
    return Scores(study.answers, study.top5_correct)


def present_kinds(study: Study, kinds: dict[str, ArchiveCondition]) -> dict[str, ArchiveCondition]:
    """The kinds that the run has pictures of, by the archive's name for each."""
    return {name: kind for name, kind in kinds.items() if Condition(*kind) in study.answers.conditions}


def collect_notes(study: Study, *more: str) -> tuple[str, ...]:
    """Collect the notes below a table: the collection's notes, what could not be scored, and further ones."""
    lost = [
        f"{model}: {n:,} answers could not be scored and do not count."
        for model, n in study.answers.unscored.items()
        if n and not model.startswith("vlm:")
    ]
    return (*study.run.notes, *lost, *drop_empty(*more))


def drop_empty(*texts: str) -> tuple[str, ...]:
    """Drop empty sentences."""
    return tuple(text for text in texts if text)


def describe_missing(study: Study, kinds: dict[str, ArchiveCondition], what: str) -> str:
    """Return a sentence that names the kinds missing from the run; empty where it has all."""
    absent: Sequence[str] = [name for name in kinds if name not in present_kinds(study, kinds)]
    return (
        f"Missing in this run, so {what} is over fewer kinds than in the paper: {', '.join(absent)}." if absent else ""
    )


_ALL = "The arg-max over all of a model's columns counts."
_SUBSET = "Only the columns of the benchmark's {classes} classes compete (sub-set of the logits)."
_OTHER = {
    "subset": "The other convention, in which all columns compete, is --scoring all; the two are not comparable.",
    "all": "The other convention, in which only the benchmark's classes compete, is --scoring subset; the two are not"
    " comparable.",
}


def accuracy_tables(title: str, classes: int, both: bool = False) -> Callable[[Study], Sequence[PaperTable]]:
    """Return the paper rule of one such benchmark; `both` where papers use either convention."""

    def tables(study: Study) -> Sequence[PaperTable]:
        scoring = "subset" if study.run.scoring.startswith("subset") else "all"
        rule = _SUBSET.format(classes=classes) if scoring == "subset" else _ALL
        best, among = score_top1(study), score_top5(study)
        rows = []
        for model in study.files:
            accuracy = best.interval(model)
            rows.append(
                (model, accuracy.value, accuracy.ci_low, accuracy.ci_high, among.accuracy(model), float(accuracy.n))
            )
        return [
            PaperTable(
                title=title, rule=f"{rule} In percent, with Wilson's interval.",
                columns=("model", "top-1", "top-1, low", "top-1, high", "top-5", "pictures"), rows=tuple(rows),
                footnotes=collect_notes(study, _OTHER[scoring] if both else ""),
            )
        ]  # fmt: skip

    return tables
