"""Who holds which picture: leases that run out, never twice to one person, never to more than n people.

The counter `taken` of a picture is raised only while it is below `wanted`, in the transaction that writes the lease;
the database itself refuses more. A transaction raises the counters in the order of the pictures' ids, so that two of
them never wait for one another.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, case, insert, select, update

from counterfoil.verify import tables
from counterfoil.verify.people import Person
from counterfoil.verify.questions import Questionnaire

_AT_A_TIME = 500  # leases given back in one transaction

_pictures = tables.pictures.c
_assignments = tables.assignments.c


@dataclass(frozen=True)
class Lease:
    """One task in somebody's hands."""

    task: str
    label: str
    picture_handle: str
    original_handle: str | None


class Held(NamedTuple):
    """An assignment as the counters see it."""

    id: int
    picture_id: int
    kind: str
    state: str

    @property
    def counts(self) -> bool:
        """Whether it takes one of its picture's places: controls do not."""
        return self.kind == "work"


@dataclass(frozen=True)
class Draw:
    """The circumstances of one drawing of tasks."""

    person: Person
    questionnaire: Questionnaire
    now: float
    minutes: float | None = None  # that leases last, where not as the questionnaire says

    @property
    def expires_at(self) -> float:
        """When what is leased now returns to the others."""
        return self.now + 60 * (self.questionnaire.lease_minutes if self.minutes is None else self.minutes)


def release_expired(connection: Connection, now: float) -> int:
    """Give leases that ran out back to everybody; gives back how many."""
    over = and_(_assignments.state == "open", _assignments.expires_at < now)
    rows = held(connection, over, limit=_AT_A_TIME)
    for row in rows:
        put(connection, row, "expired")
    return len(rows)


def held(connection: Connection, condition: ColumnElement[bool], limit: int | None = None) -> list[Held]:
    """Assignments, locked, in the order in which counters may be changed; those locked elsewhere are passed over
    where only some are wanted."""
    query = (
        select(_assignments.id, _assignments.picture_id, _assignments.kind, _assignments.state)
        .where(condition)
        .order_by(_assignments.picture_id)
        .limit(limit)
        .with_for_update(skip_locked=limit is not None)
    )
    return [Held(*row) for row in connection.execute(query)]


def put(connection: Connection, row: Held, state: str) -> bool:
    """Change an assignment's state and its picture's counter with it; False where the picture has no place left."""
    before, after = (name in ("open", "done") for name in (row.state, state))
    if row.counts and after and not before and not take(connection, row.picture_id):
        return False
    if row.counts and before and not after:
        here = _pictures.id == row.picture_id
        connection.execute(update(tables.pictures).where(here).values(taken=_pictures.taken - 1))
    connection.execute(update(tables.assignments).where(_assignments.id == row.id).values(state=state))
    return True


def open_leases(connection: Connection, person_id: int) -> list[Lease]:
    """What this person has in hand, in the order of the drawing."""
    return _leases(connection, and_(_assignments.person_id == person_id, _assignments.state == "open"))


def lease_of(connection: Connection, person_id: int, assignment_id: int) -> Lease:
    """One of this person's tasks."""
    mine = and_(_assignments.person_id == person_id, _assignments.id == assignment_id)
    return _leases(connection, mine)[0]


def take(connection: Connection, picture_id: int) -> bool:
    """Count one more person for a picture of the work; False where it has as many as it wants."""
    free = and_(_pictures.id == picture_id, _pictures.taken < _pictures.wanted)
    done = connection.execute(update(tables.pictures).where(free).values(taken=_pictures.taken + 1))
    return bool(done.rowcount)


def give(connection: Connection, draw: Draw, picture_id: int, kind: str) -> None:
    """Write the lease of a picture; one that ran out in the same hands is taken up again."""
    again = and_(
        _assignments.person_id == draw.person.id, _assignments.picture_id == picture_id, _assignments.kind == kind
    )
    renewed = update(tables.assignments).where(again, _assignments.state == "expired")
    if connection.execute(renewed.values(state="open", expires_at=draw.expires_at)).rowcount:
        return
    row = {
        "person_id": draw.person.id, "picture_id": picture_id, "kind": kind, "state": "open",
        "expires_at": draw.expires_at, "task": secrets.token_urlsafe(16),
        "picture_handle": secrets.token_urlsafe(16), "original_handle": secrets.token_urlsafe(16),
    }  # fmt: skip
    connection.execute(insert(tables.assignments).values(row))


def _leases(connection: Connection, condition: ColumnElement[bool]) -> list[Lease]:
    beside = case((_pictures.original_id.is_not(None), _assignments.original_handle), else_=None)
    query = (
        select(
            _assignments.task, _pictures.label, _assignments.picture_handle,
            beside.label("original_handle"),
        )
        .join(tables.pictures, _pictures.id == _assignments.picture_id)
        .where(condition)
        .order_by(_assignments.id)
    )  # fmt: skip
    return [Lease(*row) for row in connection.execute(query)]
