"""An equal share of the work for everybody who is working; nobody waits for somebody who has left."""

from __future__ import annotations

import math
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from counterfoil.verify import tables

_WORKING_SECONDS = 3600.0  # who was not seen for so long leaves their share to the others

_pictures = tables.pictures.c
_people = tables.people.c
_assignments = tables.assignments.c


class Allowance(NamedTuple):
    """How much more somebody may be given."""

    left: int  # of an equal share
    beyond: ColumnElement[bool]  # which pictures all the same, once it is used up: those nobody below theirs could take


def allowance(connection: Connection, person_id: int, now: float) -> Allowance:
    """What an equal share leaves to this person."""
    loads, share = _shares(connection, now)
    below = [person for person, load in loads.items() if load < share and person != person_id]
    had = (
        select(func.count(func.distinct(_assignments.person_id)))
        .where(_assignments.picture_id == _pictures.id, _assignments.person_id.in_(below))
        .where(_assignments.kind == "work", _assignments.state != "expired")
    )
    return Allowance(max(0, share - loads.get(person_id, 0)), had.scalar_subquery() == len(below))


def _shares(connection: Connection, now: float) -> tuple[dict[int, int], int]:
    """What everybody who is working has of the work, and how much that may be."""
    slots = select(func.coalesce(func.sum(_pictures.wanted), 0)).where(_pictures.role == "work")
    working = (_people.role == "annotator", _people.excluded == 0, _people.revoked_at.is_(None))
    seen = select(_people.id).where(*working, _people.seen_at > now - _WORKING_SECONDS)
    everybody = _loads(connection)
    loads = {person: everybody.get(person, 0) for person in connection.execute(seen).scalars()}
    gone = sum(load for person, load in everybody.items() if person not in loads)
    left = int(connection.execute(slots).scalar_one()) - gone
    return loads, math.ceil(left / max(len(loads), 1))


def _loads(connection: Connection) -> dict[int, int]:
    query = (
        select(_assignments.person_id, func.count())
        .where(_assignments.kind == "work", _assignments.state.in_(("open", "done")))
        .group_by(_assignments.person_id)
    )
    return {person: int(count) for person, count in connection.execute(query)}
