"""All that is said before the tables: accuracies of a collection, drops where there are originals, and marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from counterfoil.analyse import Contrast
from counterfoil.analyse.accuracies import GroupAccuracy
from counterfoil.report.accuracy_headline import accuracy_headline, with_accuracies
from counterfoil.report.content import ReportInput, Row
from counterfoil.report.finding import Finding
from counterfoil.report.headline import headline
from counterfoil.report.surrogates import MEANING, surrogates_among
from counterfoil.types import Drop, Run


class Summarised(Protocol):
    """What findings are drawn from: a study, or the content of its page."""

    @property
    def run(self) -> Run:
        """The record of the run."""

    @property
    def drops(self) -> Sequence[Drop]:
        """What each edit costs each model."""

    @property
    def accuracies(self) -> Sequence[GroupAccuracy]:
        """How often each model is right on a collection's pictures."""

    @property
    def contrasts(self) -> Sequence[Contrast]:
        """How far every two models lie apart."""

    @property
    def unseen(self) -> Mapping[Row, float]:
        """How large a drop may be in each row without being noticed."""


def findings_of(content: ReportInput) -> tuple[Finding, ...]:
    """What the page and the summary say first."""
    return headline_of(content)


def headline_of(study: Summarised) -> tuple[Finding, ...]:
    """The findings of a study in sentences."""
    return findings(study.run, study.drops, study.accuracies, study.contrasts, study.unseen)


def findings(
    run: Run,
    drops: Sequence[Drop],
    accuracies: Sequence[GroupAccuracy] = (),
    contrasts: Sequence[Contrast] = (),
    unseen: Mapping[Row, float] | None = None,
) -> tuple[Finding, ...]:
    """The findings of each model, those that chose the pictures marked first, then what tells the models apart."""
    surrogates = surrogates_among(run)
    alone = bool(accuracies) and not any(row.n for row in drops)
    if alone:
        return tuple(_with_marks(accuracy_headline(accuracies, surrogates), surrogates))
    return tuple(_with_marks(with_accuracies(headline(drops, contrasts, unseen), accuracies), surrogates))


def _with_marks(found: Sequence[Finding], surrogates: Sequence[str]) -> Iterator[Finding]:
    """Every surrogate is marked before anything is said of it, or of all models."""
    waiting = list(surrogates)
    for finding in found:
        told = waiting if not finding.model else [model for model in waiting if model == finding.model]
        yield from map(_mark, told)
        waiting = [model for model in waiting if model not in told]
        yield finding
    yield from map(_mark, waiting)


def _mark(model: str) -> Finding:
    return Finding(model, "surrogate", f"{model} – {MEANING}.")
