"""The headline of a report: all findings of a study in sentences, models that chose the pictures marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from counterfoil.report.accuracy_findings import describe_accuracies, with_accuracies
from counterfoil.report.content import ReportContent
from counterfoil.report.drop_findings import Finding, describe_drops
from counterfoil.report.words import SURROGATE_MEANING
from counterfoil.study.runs import Study, find_surrogates


def write_headline(study: Study | ReportContent) -> tuple[Finding, ...]:
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
