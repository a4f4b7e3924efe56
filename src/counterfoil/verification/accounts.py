"""Accounts of annotators and administrators: invitations, revocation, sessions."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, insert, select, update

from counterfoil.errors import UserError
from counterfoil.verification.schema import people, sessions

PersonRole: TypeAlias = Literal["annotator", "admin"]

SESSION_SECONDS = 30 * 24 * 3600.0
_LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person with an account."""

    id: int
    name: str
    role: PersonRole
    nonce: str
    link_expires_at: float
    revoked: bool
    excluded: bool
    reason: str


def invite_person(connection: Connection, name: str, role: PersonRole, now: float, expires_at: float) -> Person:
    """Create an account, or renew the link of an existing one; older links stop working."""
    name = _normalize_name(name)
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserError(f"expected a name of 1 to {_LONGEST_NAME} printable characters, got {name[:100]!r}")
    known = find_by_name(connection, name)
    if known is not None and known.role != role:
        raise UserError(f"expected a new name for an {role}, but '{name}' is an {known.role} already; choose another")
    link = {"nonce": secrets.token_hex(16), "link_expires_at": expires_at, "revoked_at": None}
    if known is None:
        row = {"name": name, "role": role, "invited_at": now, "excluded": 0, "reason": "", **link}
        connection.execute(insert(people).values(row))
    else:
        update_person(connection, known.id, **link)
        _end_sessions(
            connection, sessions.c.person_id == known.id, now
        )  # the older link may have reached somebody else
    person = find_by_name(connection, name)
    assert person is not None  # written in this transaction
    return person


def list_people(connection: Connection, role: PersonRole) -> list[Person]:
    """List all accounts of a role, by name."""
    rows = connection.execute(select(people).where(people.c.role == role).order_by(people.c.name))
    return [_read_person(row) for row in rows]


def find_by_name(connection: Connection, name: str) -> Person | None:
    """Return the account of a name; spaces and composed letters are normalised."""
    name = _normalize_name(name)
    # a name that is not printable has no account, and PostgreSQL may refuse the text
    return _find(connection, people.c.name == name) if name.isprintable() else None


def find_by_id(connection: Connection, person_id: int) -> Person | None:
    """Return the account of an id."""
    return _find(connection, people.c.id == person_id)


def lock_person(connection: Connection, person_id: int) -> bool:
    """Block other transactions of this person, such as a second tab's; True where the person's answers count."""
    query = select(people.c.excluded).where(people.c.id == person_id).with_for_update()
    return not connection.execute(query).scalar_one()


def update_person(connection: Connection, person_id: int, **values: object) -> None:
    """Change columns of an account."""
    connection.execute(update(people).where(people.c.id == person_id).values(values))


def revoke_access(connection: Connection, person_id: int, now: float) -> None:
    """Disable the link and every session of an account; the answers stay."""
    update_person(connection, person_id, revoked_at=now)
    _end_sessions(connection, sessions.c.person_id == person_id, now)


def begin_session(connection: Connection, person_id: int, now: float, earlier: str | None) -> str:
    """Return a new session token and end the browser's previous session, which prevents session fixation."""
    if earlier:
        end_session(connection, earlier, now)
    token = secrets.token_urlsafe(32)
    row = {
        "token_hash": _hash_token(token), "person_id": person_id, "began_at": now, "expires_at": now + SESSION_SECONDS,
    }  # fmt: skip
    connection.execute(insert(sessions).values(row))
    update_person(connection, person_id, seen_at=now)
    return token


def end_session(connection: Connection, token: str, now: float) -> None:
    """End the session of a token."""
    _end_sessions(connection, sessions.c.token_hash == _hash_token(token), now)


def find_by_session(connection: Connection, token: str, now: float) -> Person | None:
    """Return the account of a session; None where the session is unknown or expired, or the account revoked."""
    query = (
        select(people)
        .join(sessions, sessions.c.person_id == people.c.id)
        .where(sessions.c.token_hash == _hash_token(token), sessions.c.ended_at.is_(None))
        .where(sessions.c.expires_at > now, people.c.revoked_at.is_(None))
    )
    row = connection.execute(query).first()
    return None if row is None else _read_person(row)


def _find(connection: Connection, condition: ColumnElement[bool]) -> Person | None:
    row = connection.execute(select(people).where(condition)).first()
    return None if row is None else _read_person(row)


def _end_sessions(connection: Connection, condition: ColumnElement[bool], now: float) -> None:
    connection.execute(update(sessions).where(condition, sessions.c.ended_at.is_(None)).values(ended_at=now))


def _normalize_name(name: str) -> str:
    """One spelling per person: keyboards, files and systems differ in spaces and composed letters."""
    return unicodedata.normalize("NFC", " ".join(name.split()))


def _hash_token(token: str) -> str:
    """The hash of a token; only the hash is stored, so a stolen database gives no session."""
    return hashlib.sha256(token.encode()).hexdigest()


def _read_person(row: Row[Any]) -> Person:
    return Person(
        id=row.id,
        name=row.name,
        role=row.role,
        nonce=row.nonce,
        link_expires_at=row.link_expires_at,
        revoked=row.revoked_at is not None,
        excluded=bool(row.excluded),
        reason=row.reason,
    )
