"""Submissions, undo, progress; verdicts and adjudications."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from sqlalchemy import ColumnElement, Connection, case, func, insert, select, true, update

from counterfoil.types import Decision, Verdict
from counterfoil.verification import database_tables
from counterfoil.verification.assignment import Draw, Held, Lease, expected_controls, held, lease_of, put, quota
from counterfoil.verification.people import lock
from counterfoil.verification.questionnaire import Questionnaire

_assignments = database_tables.assignments.c
_submissions = database_tables.submissions.c
_pictures = database_tables.pictures.c


class Refused(Exception):
    """An answer that cannot be taken: what is wrong with it, for the one who gave it."""


@dataclass(frozen=True)
class Submission:
    """What the browser sends for one task."""

    task: str
    answers: Mapping[str, str]
    seconds: float
    key: str


@dataclass(frozen=True)
class Progress:
    """How far one person is; controls are counted like the work, so that they do not show."""

    done: int
    total: int


def check_answers(questionnaire: Questionnaire, answers: Mapping[str, str]) -> None:
    """Every question has one of its answers, and there are no others."""
    asked = [question.id for question in questionnaire.questions]
    if set(answers) != set(asked):
        raise Refused(f"expected answers to {', '.join(asked)}")
    for question, answer in answers.items():
        check_answer(questionnaire, question, answer)


def check_answer(questionnaire: Questionnaire, question: str, answer: str) -> None:
    """A question that is asked, and one of its answers."""
    known = {row.id: row.answers for row in questionnaire.questions}
    if answer not in known.get(question, ()):
        raise Refused(f"expected one of {', '.join(known.get(question, known))} as the answer to {question}")


def submit(connection: Connection, draw: Draw, submission: Submission) -> bool:
    """Append an answer to one of this person's tasks; False where this very submission was stored before."""
    check_answers(draw.questionnaire, submission.answers)
    if not lock(connection, draw.person.id):
        raise Refused("no more answers are needed, thank you")
    assignment = _mine(connection, draw.person.id, submission.task)
    if _stored(connection, draw.person.id, assignment.id, submission):
        return False
    if not put(connection, assignment, "done"):
        raise Refused("the time for this picture ran out, and others have answered it since")
    _append(connection, draw, assignment.id, submission)
    return True


def undo_submission(connection: Connection, draw: Draw) -> tuple[Lease, dict[str, str]] | None:
    """Reopen what this person answered last: the answer stays in the history and counts no more."""
    lock(connection, draw.person.id)
    first = select(func.min(_submissions.id)).where(_submissions.assignment_id == _assignments.id).scalar_subquery()
    mine = (_assignments.person_id == draw.person.id, _assignments.state == "done")
    found = connection.execute(select(_assignments.id).where(*mine).order_by(first.desc()).limit(1)).scalar()
    if found is None:
        return None
    before = latest_answers(connection, found)
    _append(connection, draw, found, Submission("", {}, 0.0, f"undo-{secrets.token_hex(16)}"))
    reopened = update(database_tables.assignments).where(_assignments.id == found)
    connection.execute(reopened.values(state="open", expires_at=draw.expires_at))
    return lease_of(connection, draw.person.id, found), before


def latest_answers(connection: Connection, assignment_id: int) -> dict[str, str]:
    """The answers of the last version."""
    last = select(func.max(_submissions.id)).where(_submissions.assignment_id == assignment_id).scalar_subquery()
    return _answers(connection, database_tables.answers.c.submission_id == last)


def version_answers(connection: Connection, assignment_id: int) -> list[dict[str, str]]:
    """The answers of every version, oldest first; versions that took an answer back are passed over."""
    query = (
        select(_submissions.version, database_tables.answers.c.question, database_tables.answers.c.answer)
        .join(database_tables.answers, database_tables.answers.c.submission_id == _submissions.id)
        .where(_submissions.assignment_id == assignment_id)
        .order_by(_submissions.version)
    )
    found: dict[int, dict[str, str]] = {}
    for version, question, answer in connection.execute(query):
        found.setdefault(version, {})[question] = answer
    return list(found.values())


def progress_of(connection: Connection, draw: Draw) -> Progress:
    """What this person has done, and what is left of their share."""
    counts = select(_assignments.state, func.count().label("times")).where(_assignments.person_id == draw.person.id)
    states = {row.state: row.times for row in connection.execute(counts.group_by(_assignments.state))}
    done, in_hand = states.get("done", 0) + states.get("withdrawn", 0), states.get("open", 0)
    left = 0 if draw.person.excluded else _left(connection, draw)
    return Progress(done, done + in_hand + left)


def _left(connection: Connection, draw: Draw) -> int:
    """The rest of this person's share as far as there are pictures for it, with the controls among them."""
    had = select(_assignments.picture_id).where(
        _assignments.person_id == draw.person.id, _assignments.state != "expired"
    )
    free = (_pictures.role == "work", _pictures.taken < _pictures.wanted, _pictures.id.not_in(had))
    there = connection.execute(select(func.count()).select_from(database_tables.pictures).where(*free)).scalar_one()
    work = min(there, quota(connection, draw.person.id, draw.now).left)
    return work + expected_controls(connection, draw, work)


def _answers(connection: Connection, condition: ColumnElement[bool]) -> dict[str, str]:
    query = select(database_tables.answers.c.question, database_tables.answers.c.answer).where(condition)
    return {row.question: row.answer for row in connection.execute(query)}


def _mine(connection: Connection, person_id: int, task: str) -> Held:
    found = held(connection, (_assignments.person_id == person_id) & (_assignments.task == task))
    if not found or found[0].state == "withdrawn":
        raise Refused("this task is not yours, or not any more")
    return found[0]


def _stored(connection: Connection, person_id: int, assignment_id: int, submission: Submission) -> bool:
    mine = (_submissions.person_id == person_id, _submissions.key == submission.key)
    found = connection.execute(select(_submissions.id, _submissions.assignment_id).where(*mine)).first()
    if found is None:
        return False
    if found.assignment_id != assignment_id:
        raise Refused("this key belongs to the answer to another task")
    if _answers(connection, database_tables.answers.c.submission_id == found.id) != dict(submission.answers):
        raise Refused("this key belongs to another answer; a correction needs a key of its own")
    return True


def _append(connection: Connection, draw: Draw, assignment_id: int, submission: Submission) -> None:
    here = _submissions.assignment_id == assignment_id
    version = connection.execute(select(func.coalesce(func.max(_submissions.version), 0)).where(here)).scalar_one()
    row = {
        "assignment_id": assignment_id, "person_id": draw.person.id, "version": version + 1, "key": submission.key,
        "seconds": submission.seconds, "given_at": draw.now,
    }  # fmt: skip
    made = connection.execute(insert(database_tables.submissions).values(row).returning(_submissions.id)).scalar_one()
    rows = [{"submission_id": made, "question": name, "answer": text} for name, text in submission.answers.items()]
    if rows:
        connection.execute(insert(database_tables.answers), rows)


def is_control(connection: Connection, person_id: int, task: str) -> bool:
    """Whether a task measures its annotator rather than its picture."""
    mine = (_assignments.person_id == person_id, _assignments.task == task)
    return bool(connection.execute(select(_assignments.kind).where(*mine)).scalar_one() != "work")


_KEPT = ("done", "withdrawn")  # a withdrawn answer stays in the history; who reads it leaves its annotator out

_answer_rows = database_tables.answers.c
_people = database_tables.people.c


def all_verdicts(connection: Connection, person_id: int | None = None) -> list[Verdict]:
    """Every version of every answer in the order of giving, controls among them; of one person where an id is given.

    An answer that was taken back and not given again is left out.
    """
    mine = true() if person_id is None else _assignments.person_id == person_id
    return _verdicts(connection, _assignments.state.in_(_KEPT) & mine)


def counted_verdicts(connection: Connection) -> list[Verdict]:
    """What counts: every version of the answers of people who are not left out."""
    return _verdicts(connection, _assignments.state == "done")


def adjudicated(connection: Connection) -> dict[tuple[str, str], str]:
    """The administrator's last word on a picture and a question."""
    query = (
        select(_pictures.variant_id, database_tables.adjudications.c.question, database_tables.adjudications.c.answer)
        .join(database_tables.pictures, _pictures.id == database_tables.adjudications.c.picture_id)
        .order_by(database_tables.adjudications.c.id)
    )
    return {(variant, question): answer for variant, question, answer in connection.execute(query)}


def apply_adjudications(
    rows: Iterable[Decision], words: Mapping[tuple[str, str], str], keep_if: Mapping[str, str]
) -> list[Decision]:
    """Decisions in which the administrator's word stands before people's; it needs none of theirs to decide."""
    found = list(rows)
    known = {row.variant_id for row in found}
    alone = dict.fromkeys(variant for variant, _ in words if variant not in known)
    found += [Decision(name, False, {question: {} for question in keep_if}, dict.fromkeys(keep_if, "undecided"))
              for name in alone]  # fmt: skip
    return [_with_last_word(row, words, keep_if) for row in found]


def _with_last_word(row: Decision, words: Mapping[tuple[str, str], str], keep_if: Mapping[str, str]) -> Decision:
    decided = {question: words.get((row.variant_id, question), answer) for question, answer in row.decided.items()}
    kept = all(decided[question] == wanted for question, wanted in keep_if.items())
    return replace(row, decided=decided, kept=kept)


def adjudicate(
    connection: Connection, picture_id: int, person_id: int, answers: Iterable[tuple[str, str]], now: float
) -> None:
    """Append an administrator's word."""
    rows = [
        {"picture_id": picture_id, "person_id": person_id, "question": question, "answer": answer, "given_at": now}
        for question, answer in answers
    ]
    connection.execute(insert(database_tables.adjudications), rows)


def _verdicts(connection: Connection, condition: ColumnElement[bool]) -> list[Verdict]:
    control = case((_assignments.kind == "work", ""), else_=_assignments.kind)
    query = (
        select(
            _pictures.variant_id, _people.name, _answer_rows.question, _answer_rows.answer, _submissions.seconds,
            _submissions.given_at, _submissions.version, control.label("control"),
        )
        .join(database_tables.submissions, _submissions.id == _answer_rows.submission_id)
        .join(database_tables.assignments, _assignments.id == _submissions.assignment_id)
        .join(database_tables.people, _people.id == _assignments.person_id)
        .join(database_tables.pictures, _pictures.id == _assignments.picture_id)
        .where(condition)
        .order_by(_submissions.id, _answer_rows.question)
    )  # fmt: skip
    return [
        Verdict(
            variant_id=variant,
            annotator=name,
            question=question,
            answer=answer,
            seconds=seconds,
            time=_iso(given_at),
            version=version,
            control=why,
        )
        for variant, name, question, answer, seconds, given_at, version, why in connection.execute(query)
    ]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
