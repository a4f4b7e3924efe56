"""Statistics over verdicts; administrator's summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from counterfoil.types import Decision, Verdict
from counterfoil.verification import database_tables
from counterfoil.verification.people import everybody
from counterfoil.verification.service import VerificationService
from counterfoil.verification.submissions import adjudicated, all_verdicts, apply_adjudications, counted_verdicts

_MOST_DISAGREEMENTS = 200
_ANSWERED = ("done", "withdrawn")

_pictures = database_tables.pictures.c
_assignments = database_tables.assignments.c


def summary(desk: VerificationService) -> dict[str, Any]:
    """One JSON document; a number that does not exist is null."""
    with desk.database.reading() as connection:
        counted, every = counted_verdicts(connection), all_verdicts(connection)
        words = adjudicated(connection)
        told: dict[str, Any] = {
            "progress": _progress(connection),
            "annotators": _people(connection, desk, every),
        }
        disagreements = _disagreements(connection, desk, counted, words)
    told["disagreements"] = disagreements[:_MOST_DISAGREEMENTS]
    told["disagreement_count"] = len(disagreements)
    decisions = apply_adjudications(desk.statistics.decisions(counted), words, desk.questionnaire.keep_if)
    told["decisions"] = _decided(decisions, desk.questionnaire.annotators, words, told["progress"]["pictures"])
    told["agreement"] = desk.statistics.agreement(counted)
    return dict(_without_nan(told))


def _progress(connection: Connection) -> dict[str, int]:
    work = _pictures.role == "work"
    row = connection.execute(
        select(func.count(), func.coalesce(func.sum(_pictures.wanted), 0))
        .select_from(database_tables.pictures)
        .where(work)
    ).one()
    done = (
        select(_assignments.picture_id, func.count().label("times"))
        .where(_assignments.kind == "work", _assignments.state == "done")
        .group_by(_assignments.picture_id)
        .subquery()
    )
    answers = connection.execute(select(func.coalesce(func.sum(done.c.times), 0))).scalar_one()
    whole = select(func.count()).select_from(done.join(database_tables.pictures, _pictures.id == done.c.picture_id))
    finished = connection.execute(whole.where(done.c.times >= _pictures.wanted)).scalar_one()
    return {"pictures": row[0], "finished": finished, "done": int(answers), "total": int(row[1])}


def _decided(
    decisions: Sequence[Decision], fewest: int, words: Mapping[tuple[str, str], str], pictures: int
) -> dict[str, int]:
    """How many pictures are kept, dropped, undecided between people, or wait for answers, as `decide` counts them."""
    enough = [
        row
        for row in decisions
        if all(sum(given.values()) >= fewest or (row.variant_id, name) in words for name, given in row.answers.items())
    ]
    kept = sum(row.kept for row in enough)
    undecided = sum("undecided" in row.decided.values() for row in enough)
    dropped = len(enough) - kept - undecided
    return {"kept": kept, "dropped": dropped, "undecided": undecided, "too_few": pictures - len(enough)}


def _people(connection: Connection, desk: VerificationService, every: Sequence[Verdict]) -> list[dict[str, Any]]:
    qualities = {quality.annotator: quality for quality in desk.statistics.qualities(every)}
    query = select(_assignments.person_id, func.count().label("times")).where(_assignments.state.in_(_ANSWERED))
    done = {row.person_id: row.times for row in connection.execute(query.group_by(_assignments.person_id))}
    told = []
    for person in everybody(connection, "annotator"):
        quality = qualities.get(person.name)
        told.append(
            {
                "name": person.name, "done": done.get(person.id, 0), "excluded": person.excluded,
                "reason": person.reason, "revoked": person.revoked,
                "median_seconds": quality and quality.median_seconds,
                "controls": quality.controls if quality else 0, "repeats": quality.repeats if quality else 0,
                "control_accuracy": quality and quality.control_accuracy,
                "repeat_consistency": quality and quality.repeat_consistency,
            }
        )  # fmt: skip
    return told


def _disagreements(
    connection: Connection, desk: VerificationService, counted: Sequence[Verdict], words: Mapping[tuple[str, str], str]
) -> list[dict[str, Any]]:
    """Pictures of the work on which people differ, those without a last word first."""
    given = _by_picture(counted)
    split = {variant: questions for variant, people in given.items() if (questions := _split(people))}
    last: dict[str, dict[str, str]] = {}
    for (variant, question), answer in words.items():
        last.setdefault(variant, {})[question] = answer
    rows = connection.execute(select(_pictures.id, _pictures.variant_id, _pictures.label)).all()
    told = [
        {
            "id": row.id, "variant": row.variant_id, "class_name": desk.class_name(row.label),
            "picture": f"/admin/picture/{row.id}", "answers": given[row.variant_id],
            "questions": split[row.variant_id], "adjudicated": last.get(row.variant_id, {}),
        }
        for row in rows
        if row.variant_id in split
    ]  # fmt: skip
    return sorted(told, key=lambda row: len(row["adjudicated"]))


def _by_picture(counted: Sequence[Verdict]) -> dict[str, dict[str, dict[str, str]]]:
    """Variant to annotator to question to answer; of several versions the last, since they come in order."""
    given: dict[str, dict[str, dict[str, str]]] = {}
    for verdict in counted:
        if not verdict.control:
            people = given.setdefault(verdict.variant_id, {})
            people.setdefault(verdict.annotator, {})[verdict.question] = verdict.answer
    return given


def _split(people: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The questions that these people answered differently."""
    questions = sorted({question for answers in people.values() for question in answers})
    return [name for name in questions if len({answers.get(name) for answers in people.values()} - {None}) > 1]


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: what does not exist is null."""
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
