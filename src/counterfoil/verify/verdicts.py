"""Everybody's answers as verdicts, and what an administrator decided between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone

from sqlalchemy import ColumnElement, Connection, case, insert, select, true

from counterfoil.types import Decision, Verdict
from counterfoil.verify import tables

_KEPT = ("done", "withdrawn")  # a withdrawn answer stays in the history; who reads it leaves its annotator out

_answers = tables.answers.c
_assignments = tables.assignments.c
_people = tables.people.c
_pictures = tables.pictures.c
_submissions = tables.submissions.c


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
        select(_pictures.variant_id, tables.adjudications.c.question, tables.adjudications.c.answer)
        .join(tables.pictures, _pictures.id == tables.adjudications.c.picture_id)
        .order_by(tables.adjudications.c.id)
    )
    return {(variant, question): answer for variant, question, answer in connection.execute(query)}


def with_last_words(
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
    connection.execute(insert(tables.adjudications), rows)


def _verdicts(connection: Connection, condition: ColumnElement[bool]) -> list[Verdict]:
    control = case((_assignments.kind == "work", ""), else_=_assignments.kind)
    query = (
        select(
            _pictures.variant_id, _people.name, _answers.question, _answers.answer, _submissions.seconds,
            _submissions.given_at, _submissions.version, control.label("control"),
        )
        .join(tables.submissions, _submissions.id == _answers.submission_id)
        .join(tables.assignments, _assignments.id == _submissions.assignment_id)
        .join(tables.people, _people.id == _assignments.person_id)
        .join(tables.pictures, _pictures.id == _assignments.picture_id)
        .where(condition)
        .order_by(_submissions.id, _answers.question)
    )  # fmt: skip
    return [
        Verdict(variant, name, question, answer, seconds, _iso(given_at), version, why)
        for variant, name, question, answer, seconds, given_at, version, why in connection.execute(query)
    ]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
