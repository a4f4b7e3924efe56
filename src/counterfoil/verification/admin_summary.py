"""The administrator's summary: progress, decisions so far, agreement, annotators, disagreements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from counterfoil.statistics.annotators import UNDECIDED
from counterfoil.types import Decision, Verdict
from counterfoil.verification.accounts import list_people
from counterfoil.verification.adjudication import (
    Adjudications,
    apply_adjudications,
    has_enough_answers,
    read_adjudications,
)
from counterfoil.verification.project import Verification
from counterfoil.verification.schema import assignments, pictures
from counterfoil.verification.submissions import read_all_verdicts, read_counted_verdicts

_MOST_DISAGREEMENTS = 200


def summarize(verification: Verification) -> dict[str, Any]:
    """Return one JSON document; missing numbers are null."""
    questionnaire, statistics = verification.questionnaire, verification.statistics
    with verification.database.reading() as connection:
        counted, every = read_counted_verdicts(connection), read_all_verdicts(connection)
        adjudicated = read_adjudications(connection)
        progress = _count_progress(connection)
        annotators = _describe_annotators(connection, verification, every)
        disagreements = _find_disagreements(connection, verification, counted, adjudicated)
    decisions = apply_adjudications(statistics.decisions(counted), adjudicated, questionnaire.keep_if)
    enough = [row for row in decisions if has_enough_answers(row, questionnaire.annotators, adjudicated)]
    summary = {
        "progress": progress,
        "annotators": annotators,
        "disagreements": disagreements[:_MOST_DISAGREEMENTS],
        "disagreement_count": len(disagreements),
        "decisions": _count_decisions(enough, progress["pictures"]),
        "agreement": statistics.agreement(counted),
    }
    return dict(_replace_nan(summary))


def _count_progress(connection: Connection) -> dict[str, int]:
    work = select(func.count(), func.coalesce(func.sum(pictures.c.wanted), 0)).where(pictures.c.role == "work")
    count, total = connection.execute(work.select_from(pictures)).one()
    done = (
        select(assignments.c.picture_id, func.count().label("times"))
        .where(assignments.c.kind == "work", assignments.c.state == "done")
        .group_by(assignments.c.picture_id)
        .subquery()
    )
    answers = connection.execute(select(func.coalesce(func.sum(done.c.times), 0))).scalar_one()
    answered = select(func.count()).select_from(done.join(pictures, pictures.c.id == done.c.picture_id))
    finished = connection.execute(answered.where(done.c.times >= pictures.c.wanted)).scalar_one()
    return {"pictures": count, "finished": finished, "done": int(answers), "total": int(total)}


def _count_decisions(decisions: Sequence[Decision], work: int) -> dict[str, int]:
    """Count the pictures that are kept, dropped, undecided, or wait for answers."""
    kept = sum(row.kept for row in decisions)
    undecided = sum(UNDECIDED in row.decided.values() for row in decisions)
    dropped = len(decisions) - kept - undecided
    return {"kept": kept, "dropped": dropped, "undecided": undecided, "too_few": work - len(decisions)}


def _describe_annotators(
    connection: Connection, verification: Verification, verdicts: Sequence[Verdict]
) -> list[dict[str, Any]]:
    qualities = {quality.annotator: quality for quality in verification.statistics.qualities(verdicts)}
    query = select(assignments.c.person_id, func.count().label("times")).group_by(assignments.c.person_id)
    rows = connection.execute(query.where(assignments.c.state.in_(("done", "withdrawn"))))
    done = {row.person_id: row.times for row in rows}
    annotators = []
    for person in list_people(connection, "annotator"):
        quality = qualities.get(person.name)
        annotators.append(
            {
                "name": person.name, "done": done.get(person.id, 0), "excluded": person.excluded,
                "reason": person.reason, "revoked": person.revoked,
                "median_seconds": quality and quality.median_seconds,
                "controls": quality.controls if quality else 0, "repeats": quality.repeats if quality else 0,
                "control_accuracy": quality and quality.control_accuracy,
                "repeat_consistency": quality and quality.repeat_consistency,
            }
        )  # fmt: skip
    return annotators


def _find_disagreements(
    connection: Connection, verification: Verification, counted: Sequence[Verdict], adjudicated: Adjudications
) -> list[dict[str, Any]]:
    """The pictures with different answers, those without an administrator's answer first."""
    given = _group_by_picture(counted)
    decided: dict[str, dict[str, str]] = {}
    for (variant, question), answer in adjudicated.items():
        decided.setdefault(variant, {})[question] = answer
    disagreements = []
    for row in connection.execute(select(pictures.c.id, pictures.c.variant_id, pictures.c.label)):
        answers = given.get(row.variant_id, {})
        questions = _find_split_questions(answers, list(verification.questionnaire.keep_if))
        if questions:
            disagreements.append(
                {
                    "id": row.id, "variant": row.variant_id, "class_name": verification.class_name(row.label),
                    "picture": f"/admin/picture/{row.id}", "answers": answers, "questions": questions,
                    "adjudicated": decided.get(row.variant_id, {}),
                }
            )  # fmt: skip
    return sorted(disagreements, key=lambda row: len(row["adjudicated"]))


def _group_by_picture(verdicts: Sequence[Verdict]) -> dict[str, dict[str, dict[str, str]]]:
    """Answers by variant, annotator and question; of several versions the last, since they come in order."""
    given: dict[str, dict[str, dict[str, str]]] = {}
    for verdict in verdicts:
        if not verdict.control:
            people = given.setdefault(verdict.variant_id, {})
            people.setdefault(verdict.annotator, {})[verdict.question] = verdict.answer
    return given


def _find_split_questions(people: Mapping[str, Mapping[str, str]], questions: Sequence[str]) -> list[str]:
    """The questions that these people answered differently, in the order in which they are asked."""
    return [name for name in questions if len({answers.get(name) for answers in people.values()} - {None}) > 1]


def _replace_nan(value: Any) -> Any:
    """Replace NaN by null, since JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: _replace_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
