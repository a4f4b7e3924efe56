"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.paired import Contrast
from counterfoil.study.confidence import Confidences, ModelPositionMap
from counterfoil.study.examples import Example
from counterfoil.study.failure_modes import FailureModes
from counterfoil.study.runs import Row
from counterfoil.types import Drop, Run, Skipped


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table by a paper's own rule, or of published numbers, as the page, summary.json and Markdown show it.

    `kind` "scored" stands under "Scored as the paper does", "published" under "Published numbers beside yours".
    Every row has one cell per column: a text, a number (shown with `decimals`), or None where there is none.
    `own` names the rows, by their place, that are of this run: they are set off from published ones.
    """

    title: str
    rule: str  # in words: how the numbers were scored, or where they were published
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]
    footnotes: tuple[str, ...] = ()
    kind: Literal["scored", "published"] = "scored"
    own: frozenset[int] = frozenset()
    decimals: int = 1

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"expected {len(self.columns)} cells in every row of '{self.title}', got {wrong[0]}")


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """Everything that the page, the tables and the summary say."""

    title: str
    run: Run  # of several runs: all of their models in one record
    drops: Sequence[Drop]
    photos: int  # that could be used
    variants: int  # pictures that every model saw, originals included
    examples: Sequence[Example] = ()
    skipped: Sequence[Skipped] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # label to what people call it
    unscored: Mapping[str, int] = field(default_factory=dict)  # model to answers that count nowhere
    attribute_drops: Sequence[Drop] = ()  # all edits and levels of an attribute together
    letters: Mapping[tuple[str, str], str] = field(default_factory=dict)  # attribute and model to the tied group
    means: Mapping[str, Estimate] = field(default_factory=dict)  # model to the mean of its drops, control left out
    outcomes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # model to how its answers ended
    unseen: Mapping[Row, float] = field(default_factory=dict)  # to the smallest drop that it likely had shown, points
    contrasts: Sequence[Contrast] = ()  # every two models, every edit and level
    runs: Sequence[Run] = ()  # where the report compares several
    failures: FailureModes = field(default_factory=FailureModes)
    top5_drops: Sequence[Drop] = ()  # right where the true label is among the five best; only exports need it
    papers: Sequence[PaperTable] = ()  # by a paper's own rule, and published numbers
    accuracies: Sequence[GroupAccuracy] = ()  # of a collection's pictures, originals beside them or not

    confidences: Confidences = field(default_factory=Confidences)  # empty where the models give none
    places: Sequence[ModelPositionMap] = ()  # accuracy by where the object stands

    @property
    def chosen(self) -> bool:
        """Whether models chose the pictures by failing on them: accuracy is then the question, and drops are high."""
        return bool(self.accuracies and self.run.surrogates)

    @property
    def has_drops(self) -> bool:
        """Whether any picture could be compared with its original."""
        return any(row.n for row in self.drops)
