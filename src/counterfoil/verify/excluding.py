"""Leaving somebody out: their answers stay in the history and count no more, their pictures go to others."""

from __future__ import annotations

from sqlalchemy import Connection, update

from counterfoil.verify import tables
from counterfoil.verify.assigning import held, put
from counterfoil.verify.people import lock

_assignments = tables.assignments.c


def exclude(connection: Connection, person_id: int, reason: str) -> None:
    """Withdraw what this person answered, and give what they hold back to the others."""
    lock(connection, person_id)
    _mark(connection, person_id, 1, reason)
    mine = _assignments.person_id == person_id
    for row in held(connection, mine & _assignments.state.in_(("open", "done"))):
        put(connection, row, "withdrawn" if row.state == "done" else "expired")


def include(connection: Connection, person_id: int) -> int:
    """Let the answers count again where nobody has taken the place; gives back how many do."""
    lock(connection, person_id)
    _mark(connection, person_id, 0, "")
    mine = _assignments.person_id == person_id
    rows = held(connection, mine & (_assignments.state == "withdrawn"))
    return sum(put(connection, row, "done") for row in rows)


def _mark(connection: Connection, person_id: int, excluded: int, reason: str) -> None:
    here = tables.people.c.id == person_id
    connection.execute(update(tables.people).where(here).values(excluded=excluded, reason=reason))
