"""From people's answers to `verified.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from counterfoil.analyse.annotators import Exclusion, excluded_annotators
from counterfoil.analyse.deciding import UNDECIDED, DecisionRule, decisions
from counterfoil.errors import UserError
from counterfoil.pipeline.verifying.doubting import doubts_about, records_of
from counterfoil.pipeline.verifying.opening import Verification
from counterfoil.types import Decision, Verdict, Verified
from counterfoil.verify.verdicts import adjudicated, all_verdicts, counted_verdicts, with_last_words


class Decided(NamedTuple):
    """What was decided, and over how much."""

    verified: Verified
    asked: int  # pictures of the work
    excluded: Mapping[str, str]  # by the rule given now, with the reasons
    adjudicated: int  # questions about pictures with an administrator's last word


def decide(verification: Verification, rule: DecisionRule, exclusion: Exclusion) -> Decided:
    """Decide every picture that has enough answers, and keep that in the workspace."""
    with verification.database.reading() as connection:
        verdicts, words = counted_verdicts(connection), adjudicated(connection)
        every = all_verdicts(connection)
    if not any(not verdict.control for verdict in verdicts):
        raise UserError(
            "expected answers of annotators, got none yet; invite them with"
            f" `counterfoil verify invite {verification.workspace.folder} NAME`"
        )
    out = excluded_annotators(verification.statistics.qualities(verdicts), exclusion)
    counted = [verdict for verdict in verdicts if verdict.annotator not in out]
    if not any(not verdict.control for verdict in counted):
        raise UserError(
            f"expected annotators whose answers count, but the bounds leave everybody out ({'; '.join(out.values())});"
            " give lower ones"
        )
    names = {verdict.annotator for verdict in counted}
    agreement = verification.statistics.agreement(counted)
    records = records_of(verification.statistics.qualities(every), names)
    decided = _decisions(verification, counted, rule, words)
    verification.check_pictures([row.variant_id for row in decided])
    verified = Verified(
        rule.words,
        {question.id: question.text for question in verification.questionnaire.questions},
        len(names), agreement, decided, verification.workspace.digest, records, doubts_about(records, agreement),
    )  # fmt: skip
    verification.workspace.keep_verified(verified)
    return Decided(verified, len(verification.asked), out, len(words))


def _decisions(
    verification: Verification, counted: Sequence[Verdict], rule: DecisionRule, words: Mapping[tuple[str, str], str]
) -> tuple[Decision, ...]:
    """The rule's decisions where there are enough answers, the administrator's word before people's."""
    keep_if = verification.questionnaire.keep_if
    found = with_last_words(decisions(counted, keep_if, rule), words, keep_if)
    return tuple(row for row in found if _has_enough(row, rule, words))


def _has_enough(row: Decision, rule: DecisionRule, words: Mapping[tuple[str, str], str]) -> bool:
    return all(
        sum(answers.values()) >= rule.fewest or (row.variant_id, question) in words
        for question, answers in row.answers.items()
    )


def undecided(verified: Verified) -> int:
    """How many pictures have enough answers that come to nothing."""
    return sum(UNDECIDED in decision.decided.values() for decision in verified.decisions)
