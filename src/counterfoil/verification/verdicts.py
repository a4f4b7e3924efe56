"""Verdicts: answers read back from the database, every version of them, hidden controls included."""

from __future__ import annotations

from datetime import datetime, timezone

from sqlalchemy import ColumnElement, Connection, case, select, true

from counterfoil.types import Verdict
from counterfoil.verification.schema import answers, assignments, people, pictures, submissions


def read_all_verdicts(connection: Connection, person_id: int | None = None) -> list[Verdict]:
    """Every version of every answer in the order of giving, of one person where an id is given.

    An answer that was taken back and not given again is left out. Answers of people who are left out are in: who
    counts verdicts leaves those people out.
    """
    own = true() if person_id is None else assignments.c.person_id == person_id
    return _read_verdicts(connection, assignments.c.state.in_(("done", "withdrawn")) & own)


def read_counted_verdicts(connection: Connection) -> list[Verdict]:
    """Every version of the answers of people who are not left out."""
    return _read_verdicts(connection, assignments.c.state == "done")


def _read_verdicts(connection: Connection, condition: ColumnElement[bool]) -> list[Verdict]:
    query = (
        select(
            pictures.c.variant_id, people.c.name, answers.c.question, answers.c.answer, submissions.c.seconds,
            submissions.c.given_at, submissions.c.version,
            case((assignments.c.kind == "work", ""), else_=assignments.c.kind).label("control"),
        )
        .join(submissions, submissions.c.id == answers.c.submission_id)
        .join(assignments, assignments.c.id == submissions.c.assignment_id)
        .join(people, people.c.id == assignments.c.person_id)
        .join(pictures, pictures.c.id == assignments.c.picture_id)
        .where(condition)
        .order_by(submissions.c.id, answers.c.question)
    )  # fmt: skip
    return [
        Verdict(
            variant_id=row.variant_id,
            annotator=row.name,
            question=row.question,
            answer=row.answer,
            seconds=row.seconds,
            time=datetime.fromtimestamp(row.given_at, timezone.utc).isoformat(timespec="milliseconds"),
            version=row.version,
            control=row.control,
        )
        for row in connection.execute(query)
    ]
