"""Answers to verified.json; doubts about careless answers.

Nothing is refused for it: whoever decides may know better, but nobody shall overlook it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from counterfoil.errors import UserError
from counterfoil.report.words import number
from counterfoil.statistics.annotators import (
    UNDECIDED,
    AnnotatorQuality,
    DecisionRule,
    ExclusionRule,
    decide_pictures,
    exclude_annotators,
)
from counterfoil.types import AnnotatorRecord, Decision, Verdict, VerificationResult
from counterfoil.verification.project_setup import Verification
from counterfoil.verification.submissions import adjudicated, all_verdicts, apply_adjudications, counted_verdicts

LEAST_CONTROL_ACCURACY = 0.7
LEAST_SECONDS = 0.5  # to see a picture and answer: faster than anybody can
LEAST_AGREEMENT = 0.2  # of Krippendorff's alpha; 0 is chance
_NAMED = 5  # figures in a sentence
FEWEST = 5  # controls or answers below which nothing can be told


def records_of(qualities: Sequence[AnnotatorQuality], counted: set[str]) -> tuple[AnnotatorRecord, ...]:
    """Everybody's record without the names, in an order that does not tell them."""
    found = [
        AnnotatorRecord(
            answers=row.answers,
            controls=row.controls,
            controls_right=row.controls_right,
            repeats=row.repeats,
            repeats_same=row.repeats_same,
            median_seconds=row.median_seconds,
            counted=row.annotator in counted,
        )
        for row in qualities
    ]
    return tuple(
        sorted(found, key=lambda row: (not row.counted, -row.answers, -row.controls_right, row.median_seconds))
    )


def quality_warnings(
    records: Sequence[AnnotatorRecord], agreement: Mapping[str, Mapping[str, float]]
) -> tuple[str, ...]:
    """Why the answers that count may be worth little."""
    counted = [row for row in records if row.counted]
    return (*_wrong_on_controls(counted), *_no_better_than_chance(agreement), *_too_fast(counted))


def _wrong_on_controls(counted: Sequence[AnnotatorRecord]) -> Iterator[str]:
    below = [row for row in counted if row.controls_right < LEAST_CONTROL_ACCURACY * row.controls]
    poor = [row for row in below if row.controls >= FEWEST]
    shown, right = sum(row.controls for row in counted), sum(row.controls_right for row in counted)
    if not poor and shown >= FEWEST and right < LEAST_CONTROL_ACCURACY * shown:
        poor = below  # each had too few to tell, all together have not
    if poor:
        told = _first([f"{row.controls_right} of {row.controls}" for row in poor])
        yield (
            f"{len(poor)} of {len(counted)} annotators judged less than {100 * LEAST_CONTROL_ACCURACY:.0f} % of the"
            f" hidden controls rightly ({told}): `verify decide --least-control-accuracy {LEAST_CONTROL_ACCURACY:g}`"
            " leaves them out"
        )


def _no_better_than_chance(agreement: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    for question, values in agreement.items():
        alpha, low, high = (values.get(f"krippendorff_alpha{end}", math.nan) for end in ("", "_low", "_high"))
        if low <= LEAST_AGREEMENT:  # never where it is NaN: nothing to agree about, or too few pictures
            yield (
                f"agreement on '{question}' may be no better than chance (Krippendorff's alpha {number(alpha, 2)}"
                f" [{number(low, 2)}, {number(high, 2)}], where 0 is chance): see `verify status` for who to leave out,"
                " by `verify decide --least-control-accuracy` or on the administrator's page"
            )


def _too_fast(counted: Sequence[AnnotatorRecord]) -> Iterator[str]:
    # imported answers may have no time: theirs is 0
    hasty = [row for row in counted if row.answers >= FEWEST and 0 < row.median_seconds < LEAST_SECONDS]
    if hasty:
        told = _first([f"{row.median_seconds:.2f} s" for row in hasty])
        yield (
            f"{len(hasty)} of {len(counted)} annotators answered faster than anybody can look (median {told} per"
            f" picture): `verify decide --least-seconds {LEAST_SECONDS:g}` leaves them out"
        )


def _first(figures: Sequence[str]) -> str:
    return ", ".join([*figures[:_NAMED], *(["..."] if len(figures) > _NAMED else [])])


class Decided(NamedTuple):
    """What was decided, and over how much."""

    verified: VerificationResult
    asked: int  # pictures of the work
    excluded: Mapping[str, str]  # by the rule given now, with the reasons
    adjudicated: int  # questions about pictures with an administrator's last word


def decide(verification: Verification, rule: DecisionRule, exclusion: ExclusionRule) -> Decided:
    """Decide every picture that has enough answers, and keep that in the workspace."""
    with verification.database.reading() as connection:
        verdicts, words = counted_verdicts(connection), adjudicated(connection)
        every = all_verdicts(connection)
    if not any(not verdict.control for verdict in verdicts):
        raise UserError(
            "expected answers of annotators, got none yet; invite them with"
            f" `counterfoil verify invite {verification.workspace.folder} NAME`"
        )
    out = exclude_annotators(verification.statistics.qualities(verdicts), exclusion)
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
    verified = VerificationResult(
        rule=rule.words,
        questions={question.id: question.text for question in verification.questionnaire.questions},
        annotators=len(names),
        agreement=agreement,
        decisions=decided,
        workspace_digest=verification.workspace.digest,
        records=records,
        doubts=quality_warnings(records, agreement),
    )
    verification.workspace.keep_verified(verified)
    return Decided(verified, len(verification.asked), out, len(words))


def _decisions(
    verification: Verification, counted: Sequence[Verdict], rule: DecisionRule, words: Mapping[tuple[str, str], str]
) -> tuple[Decision, ...]:
    """The rule's decisions where there are enough answers, the administrator's word before people's."""
    keep_if = verification.questionnaire.keep_if
    found = apply_adjudications(decide_pictures(counted, keep_if, rule), words, keep_if)
    return tuple(row for row in found if _has_enough(row, rule, words))


def _has_enough(row: Decision, rule: DecisionRule, words: Mapping[tuple[str, str], str]) -> bool:
    return all(
        sum(answers.values()) >= rule.fewest or (row.variant_id, question) in words
        for question, answers in row.answers.items()
    )


def undecided(verified: VerificationResult) -> int:
    """How many pictures have enough answers that come to nothing."""
    return sum(UNDECIDED in decision.decided.values() for decision in verified.decisions)
