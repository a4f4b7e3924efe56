"""Which tasks somebody is given next: free work in an order of their own, with hidden controls in between."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from counterfoil.verify import tables
from counterfoil.verify.assigning import Draw, Lease, give, open_leases, take
from counterfoil.verify.drawing import fraction
from counterfoil.verify.fairness import allowance
from counterfoil.verify.foreseeing import REPEAT_AFTER, is_control_place

MOST_AHEAD = 20  # tasks that one page may hold, so that nobody hoards the work
_PRIME = 2**31 - 1

_pictures = tables.pictures.c
_assignments = tables.assignments.c


def lease_up_to(connection: Connection, draw: Draw, count: int) -> list[Lease]:
    """The tasks in this person's hands, new ones added until there are `count`; the caller holds the person's lock."""
    mine = and_(_assignments.person_id == draw.person.id, _assignments.state == "open")
    sooner = and_(mine, _assignments.expires_at < draw.expires_at)  # a package's leases last longer
    connection.execute(update(tables.assignments).where(sooner).values(expires_at=draw.expires_at))
    missing = count - len(open_leases(connection, draw.person.id))
    if missing > 0:
        # others may have taken what was just seen as free; while nothing is ours, nothing is locked either
        while (work := _some_work(connection, draw, missing)) and not _add(connection, draw, work):
            pass
    return open_leases(connection, draw.person.id)[:count]


def _add(connection: Connection, draw: Draw, work: Sequence[int]) -> bool:
    """Lease this work with controls in between; False where others were quicker with all of it."""
    all_mine = select(func.count()).select_from(tables.assignments).where(_assignments.person_id == draw.person.id)
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
    left, beyond = allowance(connection, draw.person.id, draw.now)
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
