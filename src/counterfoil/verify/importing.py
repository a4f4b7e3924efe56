"""Answers that were given elsewhere: files of verdicts, and what offline packages saved."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from counterfoil.errors import UserError
from counterfoil.types import Verdict
from counterfoil.verify import tables
from counterfoil.verify.answering import Refused, Submission, check_answers, submit, version_answers
from counterfoil.verify.assigning import Draw, give, take
from counterfoil.verify.database import Database
from counterfoil.verify.offline import OfflineAnswer
from counterfoil.verify.people import Person, by_name, invite
from counterfoil.verify.questions import Questionnaire

_YEAR_10000 = 253402300800.0

_assignments = tables.assignments.c
_pictures = tables.pictures.c


@dataclass(frozen=True)
class Imported:
    """How many answers came in, and why others did not."""

    taken: int
    left_out: Mapping[str, int]


@dataclass(frozen=True)
class _Given:
    """One version of one person's answers to one picture."""

    answers: Mapping[str, str]
    seconds: float
    time: str


def import_verdicts(
    connection: Connection, questionnaire: Questionnaire, verdicts: Sequence[Verdict], now: float
) -> Imported:
    """Append what is not there yet: a file that is taken in twice counts once, and nothing goes beyond n."""
    results: Counter[str] = Counter()
    for (name, variant, kind), versions in _grouped(verdicts).items():
        person = by_name(connection, name) or invite(connection, name, "annotator", now, now)
        if person.role != "annotator":
            raise UserError(f"expected answers of annotators, but '{name}' is an administrator; give another name")
        results += _take_in(connection, Draw(person, questionnaire, now), (variant, kind), versions)
    return Imported(results.pop("", 0), dict(results))


def import_offline(
    database: Database, questionnaire: Questionnaire, name: str, rows: Iterable[OfflineAnswer], now: float
) -> Imported:
    """Append what a package saved under its own tasks."""
    results: Counter[str] = Counter()
    with database.writing() as connection:
        person = by_name(connection, name)
        if person is None:
            raise UserError(f"expected an annotator of this verification, but nobody is called '{name}'")
        for row in rows:
            draw = Draw(person, questionnaire, _seconds(row.time, now))
            try:
                new = submit(connection, draw, Submission(row.task, row.answers, row.seconds, row.key))
            except Refused as error:
                results[f"cannot be taken: {error}"] += 1
            else:
                results["" if new else "were there already"] += 1
    return Imported(results.pop("", 0), dict(results))


def _grouped(verdicts: Sequence[Verdict]) -> dict[tuple[str, str, str], list[_Given]]:
    """The versions of every person's answers to every picture, oldest first."""
    found: dict[tuple[str, str, str], dict[int, list[Verdict]]] = {}
    for verdict in verdicts:
        versions = found.setdefault((verdict.annotator, verdict.variant_id, verdict.control or "work"), {})
        versions.setdefault(verdict.version, []).append(verdict)
    return {
        key: [
            _Given({row.question: row.answer for row in rows}, rows[0].seconds, rows[0].time)
            for _, rows in sorted(versions.items())
        ]
        for key, versions in found.items()
    }


def _take_in(connection: Connection, draw: Draw, what: tuple[str, str], versions: Sequence[_Given]) -> Counter[str]:
    """Append the versions that are new; "" counts those, every other key is a reason against them."""
    assignment = _assignment(connection, draw.person, what)
    stored = version_answers(connection, assignment.id) if assignment else []
    given = [dict(version.answers) for version in versions]
    if given in (stored[: len(given)], stored[-len(given) :]):  # some forms carry the last version alone
        return Counter({"were there already": len(given)})
    if stored != given[: len(stored)]:
        return Counter({"differ from what the same person answered here": len(given)})
    new = versions[len(stored) :]
    if reason := _against(draw, new):  # asked before a place is taken for them
        return Counter({f"cannot be taken: {reason}": len(new)})
    task = assignment.task if assignment else _assigned(connection, draw, what)
    if task is None:
        return Counter({"are about pictures that have enough annotators, or were never to be verified": len(given)})
    return _append(connection, draw, task, new)


def _against(draw: Draw, versions: Iterable[_Given]) -> str:
    """What speaks against these answers, whatever they are about."""
    if draw.person.excluded:
        return f"{draw.person.name} is left out"
    try:
        for version in versions:
            check_answers(draw.questionnaire, version.answers)
    except Refused as error:
        return str(error)
    return ""


def _append(connection: Connection, draw: Draw, task: str, versions: Sequence[_Given]) -> Counter[str]:
    results: Counter[str] = Counter()
    for version in versions:
        when = Draw(draw.person, draw.questionnaire, _seconds(version.time, draw.now))
        key = f"import-{secrets.token_hex(16)}"
        try:
            submit(connection, when, Submission(task, version.answers, version.seconds, key))
        except Refused as error:
            results[f"cannot be taken: {error}"] += 1
        else:
            results[""] += 1
    return results


@dataclass(frozen=True)
class _Assignment:
    id: int
    task: str


def _assignment(connection: Connection, person: Person, what: tuple[str, str]) -> _Assignment | None:
    variant, kind = what
    query = (
        select(_assignments.id, _assignments.task)
        .join(tables.pictures, _pictures.id == _assignments.picture_id)
        .where(_assignments.person_id == person.id, _assignments.kind == kind, _pictures.variant_id == variant)
    )
    found = connection.execute(query).first()
    return None if found is None else _Assignment(*found)


def _assigned(connection: Connection, draw: Draw, what: tuple[str, str]) -> str | None:
    """Give the picture to the person, where it is one of the project's and has a place left."""
    variant, kind = what
    query = select(_pictures.id, _pictures.role).where(_pictures.variant_id == variant)
    found = connection.execute(query).first()
    if found is None or found.role != ("work" if kind == "repeat" else kind):
        return None
    if kind == "work" and not take(connection, found.id):
        return None
    give(connection, draw, found.id, kind)
    made = _assignment(connection, draw.person, what)
    return None if made is None else made.task


def _seconds(time: str, otherwise: float) -> float:
    """A time in ISO 8601 as seconds since 1970; one that no calendar could give back is none."""
    try:
        found = datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return otherwise
    return found if 0 <= found < _YEAR_10000 else otherwise
