"""Assignment of the next pictures to an annotator: those with the fewest answers, up to an equal share of the work.

Hidden controls are mixed in. The progress shown to the annotator counts the share and the expected controls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from counterfoil.verification.hidden_controls import choose_control, count_expected_controls, hash_fraction
from counterfoil.verification.leases import AnnotatorRequest, Lease, read_open_leases, take_place, write_lease
from counterfoil.verification.project import SHUFFLE_PRIME
from counterfoil.verification.schema import assignments, people, pictures

MOST_AHEAD = 20  # most tasks that one page may hold
_WORKING_SECONDS = 3600.0  # an annotator inactive for this long leaves their share to the others


@dataclass(frozen=True)
class Progress:
    """The progress of one annotator; controls are counted like the work, so that they cannot be recognised."""

    done: int
    total: int


def lease_up_to(connection: Connection, request: AnnotatorRequest, count: int) -> list[Lease]:
    """Return an annotator's tasks, leasing new ones up to `count`; the caller holds the person's lock."""
    held = and_(assignments.c.person_id == request.person.id, assignments.c.state == "open")
    sooner = and_(held, assignments.c.expires_at < request.expires_at)  # leases of an offline package last longer
    connection.execute(update(assignments).where(sooner).values(expires_at=request.expires_at))
    missing = count - len(read_open_leases(connection, request.person.id))
    if missing > 0:
        # others may have taken these pictures meanwhile; retry, since no lock is held until one is leased
        while (work := _find_work(connection, request, missing)) and not _lease_work(connection, request, work):
            pass
    return read_open_leases(connection, request.person.id)[:count]


def measure_progress(connection: Connection, request: AnnotatorRequest) -> Progress:
    """Return what an annotator has done, and what is left of their share."""
    counts = select(assignments.c.state, func.count().label("times")).group_by(assignments.c.state)
    rows = connection.execute(counts.where(assignments.c.person_id == request.person.id))
    states = {row.state: row.times for row in rows}
    done = states.get("done", 0) + states.get("withdrawn", 0)
    left = 0 if request.person.excluded else _count_left(connection, request)
    return Progress(done, done + states.get("open", 0) + left)


def _find_work(connection: Connection, request: AnnotatorRequest, count: int) -> list[int]:
    """Free pictures: those with the fewest annotators first, then in this annotator's own order."""
    # multiplication by a number below the prime permutes the shuffles: a different order for every annotator
    factor = 1 + int(hash_fraction(request.questionnaire.seed, "order", request.person.name) * (SHUFFLE_PRIME - 2))
    quota = _compute_quota(connection, request)
    query = select(pictures.c.id).where(_is_free_for(request))
    if not quota.left:
        query = query.where(quota.beyond)
    ordered = query.order_by(pictures.c.taken, (pictures.c.shuffle * factor) % SHUFFLE_PRIME)
    return list(connection.execute(ordered.limit(min(count, quota.left or count))).scalars())


def _is_free_for(request: AnnotatorRequest) -> ColumnElement[bool]:
    """The condition for a picture that this annotator may still get."""
    had = (
        select(assignments.c.id)
        .where(assignments.c.person_id == request.person.id, assignments.c.picture_id == pictures.c.id)
        .where(assignments.c.state != "expired")
    )
    return and_(pictures.c.role == "work", pictures.c.taken < pictures.c.wanted, ~had.exists())


def _lease_work(connection: Connection, request: AnnotatorRequest, work: Sequence[int]) -> bool:
    """Lease these pictures with controls in between; False where others took all of them first."""
    own = select(func.count()).select_from(assignments).where(assignments.c.person_id == request.person.id)
    place = connection.execute(own).scalar_one()
    used: set[int] = set()
    plan: list[tuple[int, str]] = []
    for offset, picture in enumerate(work):
        plan.append(choose_control(connection, request, place + offset, used) or (picture, "work"))
        used.add(plan[-1][0])
    planned = sorted({picture for picture, _ in plan} & set(work))
    missed = {picture for picture in planned if not take_place(connection, picture)}
    if planned and len(missed) == len(planned):
        return False
    for picture, kind in plan:
        if picture not in missed:
            write_lease(connection, request, picture, kind)
    return True


class _Quota(NamedTuple):
    left: int  # of an equal share
    beyond: ColumnElement[bool]  # pictures beyond the share: those that no annotator below their share could take


def _compute_quota(connection: Connection, request: AnnotatorRequest) -> _Quota:
    """What is left of this annotator's equal share of the work."""
    loads, share = _compute_share(connection, request.now)
    below = [person for person, load in loads.items() if load < share and person != request.person.id]
    had = (
        select(func.count(func.distinct(assignments.c.person_id)))
        .where(assignments.c.picture_id == pictures.c.id, assignments.c.person_id.in_(below))
        .where(assignments.c.kind == "work", assignments.c.state != "expired")
    )
    return _Quota(max(0, share - loads.get(request.person.id, 0)), had.scalar_subquery() == len(below))


def _compute_share(connection: Connection, now: float) -> tuple[dict[int, int], int]:
    """The number of pictures of each active annotator, and the equal share of each."""
    places = select(func.coalesce(func.sum(pictures.c.wanted), 0)).where(pictures.c.role == "work")
    working = select(people.c.id).where(
        people.c.role == "annotator", people.c.excluded == 0, people.c.revoked_at.is_(None),
        people.c.seen_at > now - _WORKING_SECONDS,
    )  # fmt: skip
    had = (
        select(assignments.c.person_id, func.count().label("times"))
        .where(assignments.c.kind == "work", assignments.c.state.in_(("open", "done")))
        .group_by(assignments.c.person_id)
    )
    all_loads = {row.person_id: int(row.times) for row in connection.execute(had)}
    loads = {person: all_loads.get(person, 0) for person in connection.execute(working).scalars()}
    gone = sum(load for person, load in all_loads.items() if person not in loads)
    left = int(connection.execute(places).scalar_one()) - gone
    return loads, math.ceil(left / max(len(loads), 1))


def _count_left(connection: Connection, request: AnnotatorRequest) -> int:
    """The rest of this annotator's share, as far as there are pictures for it, including the controls."""
    free = select(func.count()).select_from(pictures).where(_is_free_for(request))
    work = min(connection.execute(free).scalar_one(), _compute_quota(connection, request).left)
    return work + count_expected_controls(connection, request, work)
