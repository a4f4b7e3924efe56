"""What people's verdicts change, and how far annotators agree."""

from __future__ import annotations

import math

from counterfoil.analysis.evidence import (
    Evidence,
    MeasuredNumber,
    NotJudged,
    Reply,
    measured,
)
from counterfoil.errors import UserError
from counterfoil.types import VerificationResult
from counterfoil.verification.accuracy_change import measure_effect

_ADD = "`counterfoil verify` asks people, `counterfoil verify decide` combines their answers; say --workspace FOLDER"


def _verified(evidence: Evidence) -> VerificationResult:
    workspace = evidence.workspace
    verified = None if workspace is None else workspace.verified
    if verified is None or not verified.decisions:
        raise NotJudged("a workspace whose pictures people verified", _ADD)
    return verified


def ask_verification(evidence: Evidence) -> Reply:
    """How many pictures people keep, and how the models' accuracies change."""
    _verified(evidence)
    workspace = evidence.workspace
    assert workspace is not None  # its verdicts were read
    try:
        effect = measure_effect(workspace, evidence.study.folders)
    except UserError as error:
        raise NotJudged("a run over the pictures that people verified", str(error)) from error
    numbers: list[MeasuredNumber] = [
        measured(f"kept by people, {row.attribute}", "", row.share, "percent", of="pictures") for row in effect.kept
    ]
    for change in effect.changes:
        numbers += [
            measured(
                f"accuracy without verification, {change.attribute}",
                change.model,
                change.accuracy_without,
                "percent",
                of="pictures",
            ),
            measured(
                f"accuracy with verification, {change.attribute}",
                change.model,
                change.accuracy_with,
                "percent",
                of="pictures",
            ),
            measured(f"change, {change.attribute}", change.model, change.accuracy_change, "points", of="pictures"),
        ]
    return Reply(
        answer=" ".join(effect.lines),
        numbers=tuple(numbers),
        notes=("Accuracies over the pictures that people decided on, and over those that they kept.",),
    )


def ask_agreement(evidence: Evidence) -> Reply:
    """Agreement of the annotators on every question."""
    verified = _verified(evidence)
    numbers, words = [], []
    for question, measures in verified.agreement.items():
        pictures = int(measures.get("pictures", 0))
        for name, unit in (
            ("percent_agreement", "percent"),
            ("krippendorff_alpha", ""),
            ("fleiss_kappa", ""),
            ("cohen_kappa", ""),
        ):
            if name in measures and not math.isnan(measures[name]):
                low, high = (measures.get(f"{name}_{end}", math.nan) for end in ("low", "high"))
                numbers.append(
                    MeasuredNumber(
                        f"{name.replace('_', ' ')}, {question}",
                        "",
                        measures[name],
                        low,
                        high,
                        pictures,
                        "pictures",
                        unit,
                        1 if unit else 2,
                    )
                )
        own = [row for row in numbers if row.measure.endswith(f", {question}")]
        words += [f"{question}: {own[0].text} of pairs of answers agree"] if own else []
    if not words:
        raise NotJudged("two answers to a picture", "let two people answer the same pictures")
    return Reply(
        answer=f"{verified.annotators} annotators; {'; '.join(words)}.",
        numbers=tuple(numbers),
        notes=(f"Alpha and kappa: 1 is full agreement, 0 is what chance gives. Rule of decision: {verified.rule}.",),
    )
