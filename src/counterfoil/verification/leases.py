"""Leases of pictures to annotators: taking and releasing places, and the leases that an annotator holds.

The counter `taken` of a picture is raised only while it is below `wanted`, in the transaction that writes the lease,
and a check constraint of the database enforces the limit. A transaction raises the counters in the order of the
pictures' ids, so that two transactions never deadlock.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, case, insert, select, update

from counterfoil.verification.accounts import Person, lock_person, update_person
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.schema import assignments, pictures

_MOST_EXPIRED = 500  # leases released in one transaction


@dataclass(frozen=True)
class Lease:
    """One task that an annotator holds."""

    task: str
    label: str
    picture_handle: str
    original_handle: str | None
    variant_id: str  # for the server alone


class Assignment(NamedTuple):
    """The columns of an assignment that the counters need."""

    id: int
    picture_id: int
    kind: str
    state: str


@dataclass(frozen=True)
class AnnotatorRequest:
    """Who asks for tasks or sends answers, under which questionnaire, and when."""

    person: Person
    questionnaire: Questionnaire
    now: float
    minutes: float | None = None  # duration of leases, where it differs from the questionnaire's

    @property
    def expires_at(self) -> float:
        """When a picture leased now is released."""
        return self.now + 60 * (self.questionnaire.lease_minutes if self.minutes is None else self.minutes)


def take_place(connection: Connection, picture_id: int) -> bool:
    """Count one more annotator for a picture; False where it already has as many as wanted."""
    free = and_(pictures.c.id == picture_id, pictures.c.taken < pictures.c.wanted)
    raised = connection.execute(update(pictures).where(free).values(taken=pictures.c.taken + 1))
    return bool(raised.rowcount)


def write_lease(connection: Connection, request: AnnotatorRequest, picture_id: int, kind: str) -> None:
    """Write the lease of a picture whose place was taken; renews this annotator's expired lease of it."""
    same = (
        assignments.c.person_id == request.person.id,
        assignments.c.picture_id == picture_id,
        assignments.c.kind == kind,
    )
    renewed = update(assignments).where(*same, assignments.c.state == "expired")
    if connection.execute(renewed.values(state="open", expires_at=request.expires_at)).rowcount:
        return
    row = {
        "person_id": request.person.id, "picture_id": picture_id, "kind": kind, "state": "open",
        "expires_at": request.expires_at, "task": secrets.token_urlsafe(16),
        "picture_handle": secrets.token_urlsafe(16), "original_handle": secrets.token_urlsafe(16),
    }  # fmt: skip
    connection.execute(insert(assignments).values(row))


def read_open_leases(connection: Connection, person_id: int) -> list[Lease]:
    """Return the tasks that an annotator holds, oldest first."""
    return _read_leases(connection, and_(assignments.c.person_id == person_id, assignments.c.state == "open"))


def read_lease(connection: Connection, assignment_id: int) -> Lease:
    """Return the task of one assignment."""
    return _read_leases(connection, assignments.c.id == assignment_id)[0]


def release_expired(connection: Connection, now: float) -> int:
    """Release expired leases; returns how many."""
    expired = and_(assignments.c.state == "open", assignments.c.expires_at < now)
    rows = lock_assignments(connection, expired, limit=_MOST_EXPIRED)
    for row in rows:
        set_state(connection, row, "expired")
    return len(rows)


def exclude_annotator(connection: Connection, person_id: int, reason: str) -> None:
    """Withdraw an annotator's answers, and release the pictures that they hold."""
    lock_person(connection, person_id)
    update_person(connection, person_id, excluded=1, reason=reason)
    active = and_(assignments.c.person_id == person_id, assignments.c.state.in_(("open", "done")))
    for row in lock_assignments(connection, active):
        set_state(connection, row, "withdrawn" if row.state == "done" else "expired")


def include_annotator(connection: Connection, person_id: int) -> int:
    """Count an annotator's answers again where the place is still free; returns how many."""
    lock_person(connection, person_id)
    update_person(connection, person_id, excluded=0, reason="")
    withdrawn = and_(assignments.c.person_id == person_id, assignments.c.state == "withdrawn")
    return sum(set_state(connection, row, "done") for row in lock_assignments(connection, withdrawn))


def lock_assignments(
    connection: Connection, condition: ColumnElement[bool], limit: int | None = None
) -> list[Assignment]:
    """Lock assignments in the order of their pictures; with a limit, those locked elsewhere are skipped."""
    query = (
        select(assignments.c.id, assignments.c.picture_id, assignments.c.kind, assignments.c.state)
        .where(condition)
        .order_by(assignments.c.picture_id)
        .limit(limit)
        .with_for_update(skip_locked=limit is not None)
    )
    return [Assignment(*row) for row in connection.execute(query)]


def set_state(connection: Connection, row: Assignment, state: str) -> bool:
    """Change an assignment's state and its picture's counter; False where the picture has no place left."""
    before, after = (name in ("open", "done") for name in (row.state, state))
    if row.kind == "work" and before != after:  # controls take no place
        if after and not take_place(connection, row.picture_id):
            return False
        if before:
            here = pictures.c.id == row.picture_id
            connection.execute(update(pictures).where(here).values(taken=pictures.c.taken - 1))
    connection.execute(update(assignments).where(assignments.c.id == row.id).values(state=state))
    return True


def read_task_variants(connection: Connection, person_id: int) -> dict[str, tuple[str, str | None]]:
    """Return the variant of every task of an annotator, and the original shown beside it if any."""
    query = (
        select(assignments.c.task, pictures.c.variant_id, pictures.c.original_id)
        .join(pictures, pictures.c.id == assignments.c.picture_id)
        .where(assignments.c.person_id == person_id)
    )
    return {task: (variant, original) for task, variant, original in connection.execute(query)}


def find_variant(connection: Connection, person_id: int, handle: str) -> str | None:
    """Return the variant of a handle that this annotator holds; None otherwise."""
    query = (
        select(pictures.c.variant_id, pictures.c.original_id, assignments.c.original_handle)
        .join(pictures, pictures.c.id == assignments.c.picture_id)
        .where(assignments.c.person_id == person_id, assignments.c.state.in_(("open", "done")))
        .where((assignments.c.picture_handle == handle) | (assignments.c.original_handle == handle))
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    variant: str | None = row.original_id if row.original_handle == handle else row.variant_id
    return variant


def _read_leases(connection: Connection, condition: ColumnElement[bool]) -> list[Lease]:
    original = case((pictures.c.original_id.is_not(None), assignments.c.original_handle), else_=None)
    query = (
        select(assignments.c.task, pictures.c.label, assignments.c.picture_handle, original, pictures.c.variant_id)
        .join(pictures, pictures.c.id == assignments.c.picture_id)
        .where(condition)
        .order_by(assignments.c.id)
    )
    return [Lease(*row) for row in connection.execute(query)]
