"""Accounts, invitations, sessions."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlalchemy import Connection, insert, select, update

from counterfoil.errors import UserError
from counterfoil.verification import database_tables

PersonRole: TypeAlias = Literal["annotator", "admin"]

SESSION_SECONDS = 30 * 24 * 3600.0
_LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody with an account."""

    id: int
    name: str
    role: PersonRole
    nonce: str
    link_expires_at: float
    revoked: bool
    excluded: bool
    reason: str


def invite(connection: Connection, name: str, role: PersonRole, now: float, expires_at: float) -> Person:
    """An account for a name, new or known; a known one gets a new link, and the older ones stop working."""
    name = _tidy(name)
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserError(f"expected a name of 1 to {_LONGEST_NAME} printable characters, got {name[:100]!r}")
    known = by_name(connection, name)
    if known is not None and known.role != role:
        raise UserError(f"expected a new name for an {role}, but '{name}' is an {known.role} already; choose another")
    fresh = {"nonce": secrets.token_hex(16), "link_expires_at": expires_at, "revoked_at": None}
    if known is None:
        row = {"name": name, "role": role, "invited_at": now, "excluded": 0, "reason": "", **fresh}
        connection.execute(insert(database_tables.people).values(row))
    else:
        connection.execute(update(database_tables.people).where(database_tables.people.c.id == known.id).values(fresh))
        _end_sessions(connection, known.id, now)  # whoever came by the older link may not be whom it was for
    found = by_name(connection, name)
    assert found is not None  # it was written in this transaction
    return found


def everybody(connection: Connection, role: PersonRole) -> list[Person]:
    """All accounts of a role, by name."""
    query = (
        select(database_tables.people)
        .where(database_tables.people.c.role == role)
        .order_by(database_tables.people.c.name)
    )
    return [_person(row) for row in connection.execute(query)]


def by_name(connection: Connection, name: str) -> Person | None:
    """The account of a name, however it is written."""
    name = _tidy(name)
    if not name.isprintable():
        return None  # nobody can have it, and a database may not take it
    row = connection.execute(select(database_tables.people).where(database_tables.people.c.name == name)).first()
    return None if row is None else _person(row)


def by_id(connection: Connection, person_id: int) -> Person | None:
    """The account of an id."""
    row = connection.execute(select(database_tables.people).where(database_tables.people.c.id == person_id)).first()
    return None if row is None else _person(row)


def lock(connection: Connection, person_id: int) -> bool:
    """One transaction at a time per person: two tabs of one browser do not race. True where the answers count."""
    query = select(database_tables.people.c.excluded).where(database_tables.people.c.id == person_id).with_for_update()
    return not connection.execute(query).scalar_one()


def revoke(connection: Connection, person_id: int, now: float) -> None:
    """The link and every session of an account stop working; the answers stay."""
    connection.execute(
        update(database_tables.people).where(database_tables.people.c.id == person_id).values(revoked_at=now)
    )
    _end_sessions(connection, person_id, now)


def _end_sessions(connection: Connection, person_id: int, now: float) -> None:
    session = database_tables.sessions.c
    ended = update(database_tables.sessions).where(session.person_id == person_id, session.ended_at.is_(None))
    connection.execute(ended.values(ended_at=now))


def begin_session(connection: Connection, person_id: int, now: float, earlier: str | None) -> str:
    """A fresh token for the browser; the session that it brought along ends, so none can be planted on it."""
    if earlier:
        end_session(connection, earlier, now)
    token = secrets.token_urlsafe(32)
    row = {
        "token_hash": _hashed(token), "person_id": person_id, "began_at": now, "expires_at": now + SESSION_SECONDS,
    }  # fmt: skip
    connection.execute(insert(database_tables.sessions).values(row))
    connection.execute(
        update(database_tables.people).where(database_tables.people.c.id == person_id).values(seen_at=now)
    )
    return token


def end_session(connection: Connection, token: str, now: float) -> None:
    """The session of this token lets nobody in any more."""
    session = database_tables.sessions.c
    query = update(database_tables.sessions).where(session.token_hash == _hashed(token), session.ended_at.is_(None))
    connection.execute(query.values(ended_at=now))


def by_session(connection: Connection, token: str, now: float) -> Person | None:
    """Whose session it is; None where it is unknown, over, or its account revoked."""
    session, person = database_tables.sessions.c, database_tables.people.c
    query = (
        select(database_tables.people)
        .join(database_tables.sessions, session.person_id == person.id)
        .where(session.token_hash == _hashed(token), session.ended_at.is_(None), session.expires_at > now)
        .where(person.revoked_at.is_(None))
    )
    row = connection.execute(query).first()
    return None if row is None else _person(row)


def _tidy(name: str) -> str:
    """One spelling for one person: spaces and composed letters come differently from keyboards, files and systems."""
    return unicodedata.normalize("NFC", " ".join(name.split()))


def _hashed(token: str) -> str:
    """What is stored: a stolen database lets nobody in."""
    return hashlib.sha256(token.encode()).hexdigest()


def _person(row: object) -> Person:
    found = row._mapping  # type: ignore[attr-defined]
    return Person(
        id=found["id"],
        name=found["name"],
        role=found["role"],
        nonce=found["nonce"],
        link_expires_at=found["link_expires_at"],
        revoked=found["revoked_at"] is not None,
        excluded=bool(found["excluded"]),
        reason=found["reason"],
    )
