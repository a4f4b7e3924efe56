"""How many hidden controls will come: chance places them by content, so a total can be told before they are drawn."""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import Connection, func, select

from counterfoil.verify import tables
from counterfoil.verify.assigning import Draw
from counterfoil.verify.drawing import fraction

REPEAT_AFTER = 8  # other pictures between the first showing and the repeat

_pictures = tables.pictures.c
_assignments = tables.assignments.c


@lru_cache(maxsize=1 << 17)  # asked again after every answer
def is_control_place(seed: int, share: float, name: str, place: int) -> bool:
    """Whether chance asks for a hidden control at this place of somebody's sequence."""
    return fraction(seed, "control", name, place) < share


def controls_ahead(connection: Connection, draw: Draw, work: int) -> int:
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
    known = select(func.count()).select_from(tables.pictures).where(_pictures.role != "work")
    unseen = int(connection.execute(known).scalar_one()) - had.get("good", 0) - had.get("bad", 0)
    repeats = had.get("work", 0) + work - REPEAT_AFTER - had.get("repeat", 0)
    return max(0, unseen) + max(0, repeats)
