"""Decisions on pictures: `verify decide` computes them from the answers and writes verified.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from counterfoil.errors import UserError
from counterfoil.statistics.annotators import DecisionRule, ExclusionRule, decide_pictures, exclude_annotators
from counterfoil.types import VerificationResult
from counterfoil.verification.adjudication import apply_adjudications, has_enough_answers, read_adjudications
from counterfoil.verification.answer_quality import anonymize_qualities, find_quality_warnings
from counterfoil.verification.project import Verification
from counterfoil.verification.submissions import read_all_verdicts, read_counted_verdicts


class DecisionOutcome(NamedTuple):
    """The decisions, with the number of pictures and the excluded annotators."""

    verified: VerificationResult
    pictures: int  # to verify
    excluded: Mapping[str, str]  # annotators left out by the bounds given now, with the reasons
    adjudicated: int  # questions about pictures that an administrator answered


def decide(verification: Verification, rule: DecisionRule, exclusion: ExclusionRule) -> DecisionOutcome:
    """Decide every picture that has enough answers, and write the decisions to the workspace."""
    with verification.database.reading() as connection:
        verdicts, every = read_counted_verdicts(connection), read_all_verdicts(connection)
        adjudicated = read_adjudications(connection)
    if all(verdict.control for verdict in verdicts):
        raise UserError(
            "expected answers of annotators, got none yet; invite them with"
            f" `counterfoil verify invite {verification.workspace.folder} NAME`"
        )
    statistics, keep_if = verification.statistics, verification.questionnaire.keep_if
    excluded = exclude_annotators(statistics.qualities(verdicts), exclusion)
    counted = [verdict for verdict in verdicts if verdict.annotator not in excluded]
    if all(verdict.control for verdict in counted):
        raise UserError(
            "expected annotators whose answers count, but the bounds leave everybody out"
            f" ({'; '.join(excluded.values())}); give lower ones"
        )
    names = {verdict.annotator for verdict in counted}
    records = anonymize_qualities(statistics.qualities(every), names)
    agreement = statistics.agreement(counted)
    decided = apply_adjudications(decide_pictures(counted, keep_if, rule), adjudicated, keep_if)
    decided = [row for row in decided if has_enough_answers(row, rule.fewest, adjudicated)]
    verification.check_pictures([row.variant_id for row in decided])
    verified = VerificationResult(
        rule=rule.words,
        questions={question.id: question.text for question in verification.questionnaire.questions},
        annotators=len(names),
        agreement=agreement,
        decisions=tuple(decided),
        workspace_digest=verification.workspace.digest,
        records=records,
        doubts=find_quality_warnings(records, agreement),
    )
    verification.workspace.keep_verified(verified)
    return DecisionOutcome(verified, verification.count_roles()["work"], excluded, len(adjudicated))
