"""Leases of pictures to annotators.

Exclusion of an annotator; quota of work per annotator; expected number of hidden controls; next tasks with hidden
controls.

The counter `taken` of a picture is raised only while it is below `wanted`, in the transaction that writes the lease;
the database itself refuses more. A transaction raises the counters in the order of the pictures' ids, so that two of
them never wait for one another.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, case, func, insert, select, update

from counterfoil.verification import database_tables
from counterfoil.verification.people import Person, lock
from counterfoil.verification.project import fraction
from counterfoil.verification.questionnaire import Questionnaire

_AT_A_TIME = 500  # leases given back in one transaction

_pictures = database_tables.pictures.c
_assignments = database_tables.assignments.c


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
        connection.execute(update(database_tables.pictures).where(here).values(taken=_pictures.taken - 1))
    connection.execute(update(database_tables.assignments).where(_assignments.id == row.id).values(state=state))
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
    done = connection.execute(update(database_tables.pictures).where(free).values(taken=_pictures.taken + 1))
    return bool(done.rowcount)


def give(connection: Connection, draw: Draw, picture_id: int, kind: str) -> None:
    """Write the lease of a picture; one that ran out in the same hands is taken up again."""
    again = and_(
        _assignments.person_id == draw.person.id, _assignments.picture_id == picture_id, _assignments.kind == kind
    )
    renewed = update(database_tables.assignments).where(again, _assignments.state == "expired")
    if connection.execute(renewed.values(state="open", expires_at=draw.expires_at)).rowcount:
        return
    row = {
        "person_id": draw.person.id, "picture_id": picture_id, "kind": kind, "state": "open",
        "expires_at": draw.expires_at, "task": secrets.token_urlsafe(16),
        "picture_handle": secrets.token_urlsafe(16), "original_handle": secrets.token_urlsafe(16),
    }  # fmt: skip
    connection.execute(insert(database_tables.assignments).values(row))


def _leases(connection: Connection, condition: ColumnElement[bool]) -> list[Lease]:
    beside = case((_pictures.original_id.is_not(None), _assignments.original_handle), else_=None)
    query = (
        select(
            _assignments.task, _pictures.label, _assignments.picture_handle,
            beside.label("original_handle"),
        )
        .join(database_tables.pictures, _pictures.id == _assignments.picture_id)
        .where(condition)
        .order_by(_assignments.id)
    )  # fmt: skip
    return [Lease(*row) for row in connection.execute(query)]


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
    here = database_tables.people.c.id == person_id
    connection.execute(update(database_tables.people).where(here).values(excluded=excluded, reason=reason))


_WORKING_SECONDS = 3600.0  # who was not seen for so long leaves their share to the others
_people = database_tables.people.c


class Allowance(NamedTuple):
    """How much more somebody may be given."""

    left: int  # of an equal share
    beyond: ColumnElement[bool]  # which pictures all the same, once it is used up: those nobody below theirs could take


def quota(connection: Connection, person_id: int, now: float) -> Allowance:
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


REPEAT_AFTER = 8  # other pictures between the first showing and the repeat


@lru_cache(maxsize=1 << 17)  # asked again after every answer
def is_control_place(seed: int, share: float, name: str, place: int) -> bool:
    """Whether chance asks for a hidden control at this place of somebody's sequence."""
    return fraction(seed, "control", name, place) < share


def expected_controls(connection: Connection, draw: Draw, work: int) -> int:
    """How many hidden controls will stand among this much more work."""
    settings = draw.questionnaire
    if not work or not settings.control_share:
        return 0
    mine = select(_assignments.kind, func.count().label("times")).where(_assignments.person_id == draw.person.id)
    had = {row.kind: int(row.times) for row in connection.execute(mine.group_by(_assignments.kind))}
    place, left, controls = sum(had.values()), work, 0
    while left:
        is_control = is_control_place(settings.seed, settings.control_share, draw.person.name, place)
        controls, left, place = controls + is_control, left - (not is_control), place + 1
    return min(controls, _there(connection, had, work))


def _there(connection: Connection, had: dict[str, int], work: int) -> int:
    """How many controls there are that this person has not had: known pictures, and work to repeat."""
    known = select(func.count()).select_from(database_tables.pictures).where(_pictures.role != "work")
    unseen = int(connection.execute(known).scalar_one()) - had.get("good", 0) - had.get("bad", 0)
    repeats = had.get("work", 0) + work - REPEAT_AFTER - had.get("repeat", 0)
    return max(0, unseen) + max(0, repeats)


MOST_AHEAD = 20  # tasks that one page may hold, so that nobody hoards the work
_PRIME = 2**31 - 1


def lease_up_to(connection: Connection, draw: Draw, count: int) -> list[Lease]:
    """The tasks in this person's hands, new ones added until there are `count`; the caller holds the person's lock."""
    mine = and_(_assignments.person_id == draw.person.id, _assignments.state == "open")
    sooner = and_(mine, _assignments.expires_at < draw.expires_at)  # a package's leases last longer
    connection.execute(update(database_tables.assignments).where(sooner).values(expires_at=draw.expires_at))
    missing = count - len(open_leases(connection, draw.person.id))
    if missing > 0:
        # others may have taken what was just seen as free; while nothing is ours, nothing is locked either
        while (work := _some_work(connection, draw, missing)) and not _add(connection, draw, work):
            pass
    return open_leases(connection, draw.person.id)[:count]


def _add(connection: Connection, draw: Draw, work: Sequence[int]) -> bool:
    """Lease this work with controls in between; False where others were quicker with all of it."""
    all_mine = (
        select(func.count()).select_from(database_tables.assignments).where(_assignments.person_id == draw.person.id)
    )
    drawn = connection.execute(all_mine).scalar_one()
    used: set[int] = set()
    plan: list[tuple[int, str]] = []
    for place in range(drawn, drawn + len(work)):
        control = _control(connection, draw, place, used)
        plan.append(control or (work[len(plan)], "work"))
        used.add(plan[-1][0])
    planned = sorted({picture for picture, _ in plan} & set(work))
    missed = {picture for picture in planned if not take(connection, picture)}
    if planned and len(missed) == len(planned):
        return False
    for picture, kind in plan:
        if picture not in missed:
            give(connection, draw, picture, kind)
    return True


def _some_work(connection: Connection, draw: Draw, count: int) -> list[int]:
    """Free work: what the fewest have first, and else in this person's own order."""
    # multiplication by a number below the prime permutes the shuffles: every person walks another way
    factor = 1 + int(fraction(draw.questionnaire.seed, "order", draw.person.name) * (_PRIME - 2))
    left, beyond = quota(connection, draw.person.id, draw.now)
    query = select(_pictures.id).where(_work_for(draw) if left else and_(_work_for(draw), beyond))
    ordered = query.order_by(_pictures.taken, (_pictures.shuffle * factor) % _PRIME).limit(min(count, left or count))
    return list(connection.execute(ordered).scalars())


def _work_for(draw: Draw) -> ColumnElement[bool]:
    """The condition of a picture that this person may still be given."""
    seen = (
        select(_assignments.id)
        .where(_assignments.person_id == draw.person.id, _assignments.picture_id == _pictures.id)
        .where(_assignments.state != "expired")
    )
    return and_(_pictures.role == "work", _pictures.taken < _pictures.wanted, ~seen.exists())


def _control(connection: Connection, draw: Draw, place: int, used: set[int]) -> tuple[int, str] | None:
    """A hidden control for this place of this person's sequence, where chance asks for one and one is left."""
    person, settings = draw.person, draw.questionnaire
    if not is_control_place(settings.seed, settings.control_share, person.name, place):
        return None
    kinds = sorted(("good", "bad", "repeat"), key=lambda kind: fraction(settings.seed, kind, person.name, place))
    for kind in kinds:
        found = _repeat(connection, person.id) if kind == "repeat" else _known(connection, draw, kind)
        left = [picture for picture in found if picture not in used]
        if left:
            chosen = left[int(fraction(settings.seed, "which", person.name, place) * len(left))]
            return chosen, kind
    return None


def _known(connection: Connection, draw: Draw, role: str) -> Sequence[int]:
    """Controls of a role that this person has not had."""
    had = select(_assignments.picture_id).where(
        _assignments.person_id == draw.person.id, _assignments.state != "expired"
    )
    query = select(_pictures.id).where(_pictures.role == role, _pictures.id.not_in(had)).order_by(_pictures.id)
    return connection.execute(query).scalars().all()


def _repeat(connection: Connection, person_id: int) -> Sequence[int]:
    """Pictures of the work that this person answered a while ago and has not been shown again."""
    mine = select(_assignments.id, _assignments.picture_id, _assignments.kind, _assignments.state).where(
        _assignments.person_id == person_id
    )
    rows = connection.execute(mine.order_by(_assignments.id)).all()
    again = {row.picture_id for row in rows if row.kind == "repeat"}
    old = [row.picture_id for row in rows[:-REPEAT_AFTER] if row.kind == "work" and row.state == "done"]
    return [picture for picture in old if picture not in again]
