"""Which pictures stand behind somebody's tasks."""

from __future__ import annotations

from sqlalchemy import Connection, select

from counterfoil.verify import tables

_assignments = tables.assignments.c
_pictures = tables.pictures.c


def shown_variants(connection: Connection, person_id: int) -> dict[str, tuple[str, str | None]]:
    """Of every task of a person the variant that it shows, and the one beside it where there is one."""
    query = (
        select(_assignments.task, _pictures.variant_id, _pictures.original_id)
        .join(tables.pictures, _pictures.id == _assignments.picture_id)
        .where(_assignments.person_id == person_id)
    )
    return {task: (variant, original) for task, variant, original in connection.execute(query)}


def held_variant(connection: Connection, person_id: int, handle: str) -> str | None:
    """The variant behind a handle that this person holds; None for everybody else."""
    query = (
        select(_pictures.variant_id, _pictures.original_id, _assignments.original_handle)
        .join(tables.pictures, _pictures.id == _assignments.picture_id)
        .where(_assignments.person_id == person_id, _assignments.state.in_(("open", "done")))
        .where((_assignments.picture_handle == handle) | (_assignments.original_handle == handle))
    )
    found = connection.execute(query).first()
    if found is None:
        return None
    shown: str | None = found.original_id if found.original_handle == handle else found.variant_id
    return shown
