"""Answers of annotators: checked, stored, taken back (undo).

Submissions are append-only: a correction is a new version, and undo appends a version without answers.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from sqlalchemy import ColumnElement, Connection, case, func, insert, select, true, update

from counterfoil.types import Verdict
from counterfoil.verification.accounts import lock_person
from counterfoil.verification.leases import (
    AnnotatorRequest,
    Assignment,
    Lease,
    lock_assignments,
    read_lease,
    set_state,
)
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.schema import answers, assignments, people, pictures, submissions


class Refused(Exception):
    """An answer that cannot be accepted; the message tells the annotator why."""


@dataclass(frozen=True)
class Submission:
    """The data that the browser sends for one task."""

    task: str
    answers: Mapping[str, str]
    seconds: float
    key: str


def check_answers(questionnaire: Questionnaire, given: Mapping[str, str]) -> None:
    """Raise `Refused` unless every question has one of its answers."""
    questions = [question.id for question in questionnaire.questions]
    if set(given) != set(questions):
        raise Refused(f"expected answers to {', '.join(questions)}")
    for question, answer in given.items():
        check_answer(questionnaire, question, answer)


def check_answer(questionnaire: Questionnaire, question: str, answer: str) -> None:
    """Raise `Refused` for an unknown question, or an answer that the question does not have."""
    known = {row.id: row.answers for row in questionnaire.questions}
    if answer not in known.get(question, ()):
        raise Refused(f"expected one of {', '.join(known.get(question, known))} as the answer to {question}")


def submit(connection: Connection, request: AnnotatorRequest, submission: Submission) -> bool:
    """Append the answers to one of this annotator's tasks; False where this submission is already stored."""
    check_answers(request.questionnaire, submission.answers)
    if not lock_person(connection, request.person.id):
        raise Refused("no more answers are needed, thank you")
    assignment = _lock_task(connection, request.person.id, submission.task)
    if _is_stored(connection, request.person.id, assignment.id, submission):
        return False
    if not set_state(connection, assignment, "done"):
        raise Refused("the time for this picture ran out, and others have answered it since")
    _append(connection, request, assignment.id, submission)
    return True


def undo_last_submission(connection: Connection, request: AnnotatorRequest) -> tuple[Lease, dict[str, str]] | None:
    """Reopen the task answered last, with its answers; they stay in the history but no longer count."""
    lock_person(connection, request.person.id)
    first = select(func.min(submissions.c.id)).where(submissions.c.assignment_id == assignments.c.id).scalar_subquery()
    done = (assignments.c.person_id == request.person.id, assignments.c.state == "done")
    assignment_id = connection.execute(select(assignments.c.id).where(*done).order_by(first.desc()).limit(1)).scalar()
    if assignment_id is None:
        return None
    last = select(func.max(submissions.c.id)).where(submissions.c.assignment_id == assignment_id).scalar_subquery()
    before = _read_answers(connection, last)
    _append(connection, request, assignment_id, Submission("", {}, 0.0, f"undo-{secrets.token_hex(16)}"))
    reopened = update(assignments).where(assignments.c.id == assignment_id)
    connection.execute(reopened.values(state="open", expires_at=request.expires_at))
    return read_lease(connection, assignment_id), before


def read_version_answers(connection: Connection, assignment_id: int) -> list[dict[str, str]]:
    """Return the answers of every version, oldest first; versions that took an answer back are skipped."""
    query = (
        select(submissions.c.version, answers.c.question, answers.c.answer)
        .join(answers, answers.c.submission_id == submissions.c.id)
        .where(submissions.c.assignment_id == assignment_id)
        .order_by(submissions.c.version)
    )
    versions: dict[int, dict[str, str]] = {}
    for version, question, answer in connection.execute(query):
        versions.setdefault(version, {})[question] = answer
    return list(versions.values())


def is_control_task(connection: Connection, person_id: int, task: str) -> bool:
    """Whether a task is a hidden control."""
    kind = select(assignments.c.kind).where(assignments.c.person_id == person_id, assignments.c.task == task)
    return bool(connection.execute(kind).scalar_one() != "work")


def _lock_task(connection: Connection, person_id: int, task: str) -> Assignment:
    rows = lock_assignments(connection, (assignments.c.person_id == person_id) & (assignments.c.task == task))
    if not rows or rows[0].state == "withdrawn":
        raise Refused("this task is not yours, or not any more")
    return rows[0]


def _is_stored(connection: Connection, person_id: int, assignment_id: int, submission: Submission) -> bool:
    """Whether a submission with this key is stored; raises `Refused` where the key was used for other answers."""
    same = (submissions.c.person_id == person_id, submissions.c.key == submission.key)
    stored = connection.execute(select(submissions.c.id, submissions.c.assignment_id).where(*same)).first()
    if stored is None:
        return False
    if stored.assignment_id != assignment_id:
        raise Refused("this key belongs to the answer to another task")
    if _read_answers(connection, stored.id) != dict(submission.answers):
        raise Refused("this key belongs to another answer; a correction needs a key of its own")
    return True


def _read_answers(connection: Connection, submission_id: object) -> dict[str, str]:
    query = select(answers.c.question, answers.c.answer).where(answers.c.submission_id == submission_id)
    return {row.question: row.answer for row in connection.execute(query)}


def _append(connection: Connection, request: AnnotatorRequest, assignment_id: int, submission: Submission) -> None:
    version = select(func.coalesce(func.max(submissions.c.version), 0))
    latest = connection.execute(version.where(submissions.c.assignment_id == assignment_id)).scalar_one()
    row = {
        "assignment_id": assignment_id, "person_id": request.person.id, "version": latest + 1, "key": submission.key,
        "seconds": submission.seconds, "given_at": request.now,
    }  # fmt: skip
    new_id = connection.execute(insert(submissions).values(row).returning(submissions.c.id)).scalar_one()
    rows = [{"submission_id": new_id, "question": name, "answer": text} for name, text in submission.answers.items()]
    if rows:
        connection.execute(insert(answers), rows)


def read_all_verdicts(connection: Connection, person_id: int | None = None) -> list[Verdict]:
    """Return every version of every answer in order, of one person where an id is given.

    Answers taken back and not given again are left out. Answers of excluded people are included: callers that count
    verdicts leave them out.
    """
    own = true() if person_id is None else assignments.c.person_id == person_id
    return _read_verdicts(connection, assignments.c.state.in_(("done", "withdrawn")) & own)


def read_counted_verdicts(connection: Connection) -> list[Verdict]:
    """Return every version of the answers of people who are not excluded."""
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
