"""The headline of a report: all findings of a study in sentences, models that chose the pictures marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from counterfoil.report.accuracy_findings import describe_accuracies, with_accuracies
from counterfoil.report.drop_findings import Finding, describe_drops
from counterfoil.report.words import SURROGATE_MEANING
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.contrasts import Contrast
from counterfoil.study.runs import DropKey, find_surrogates
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
    def detectable_drops(self) -> Mapping[DropKey, float]:
        """How large a drop may be in each row without being noticed."""


def write_headline(study: Summarised) -> tuple[Finding, ...]:
    """The findings of each model, surrogates marked before theirs, then what tells the models apart."""
    surrogates = find_surrogates(study.run)
    if study.accuracies and not any(row.n for row in study.drops):
        findings = describe_accuracies(study.accuracies, surrogates)
    else:
        findings = with_accuracies(
            describe_drops(study.drops, study.contrasts, study.detectable_drops), study.accuracies
        )
    return tuple(_with_surrogates(findings, surrogates))


def _with_surrogates(findings: Sequence[Finding], surrogates: Sequence[str]) -> Iterator[Finding]:
    """Every surrogate is marked before anything is said of it, or of all models."""
    unmarked = list(surrogates)
    for finding in findings:
        due = [model for model in unmarked if finding.model in ("", model)]
        yield from map(_surrogate_finding, due)
        unmarked = [model for model in unmarked if model not in due]
        yield finding
    yield from map(_surrogate_finding, unmarked)


def _surrogate_finding(model: str) -> Finding:
    return Finding(model=model, kind="surrogate", text=f"{model} – {SURROGATE_MEANING}.")
