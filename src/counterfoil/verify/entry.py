"""Who is asking: the session behind a request, and the token that proves that a change comes from our own page."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from counterfoil.verify.desk import Desk
from counterfoil.verify.people import Person


@dataclass(frozen=True)
class Visitor:
    """Somebody who is let in, with the session they came by."""

    person: Person
    session: str


def desk_of(request: Request) -> Desk:
    """The verification that the app serves."""
    desk: Desk = request.app.state.desk
    return desk


def cookie_name(desk: Desk) -> str:
    """By TLS the browser itself refuses to let another host set this cookie; without, ports of a host share cookies."""
    return "__Host-session" if desk.address.is_encrypted else f"session-{desk.address.port}"


def visitor(request: Request) -> Visitor:
    """Whoever has a session; nobody else gets further."""
    desk = desk_of(request)
    session = request.cookies.get(cookie_name(desk), "")
    person = desk.person_of(session) if session else None
    if person is None:
        raise HTTPException(
            401, "open your invitation link first; if you just did, let your browser keep cookies for this page"
        )
    if request.method not in ("GET", "HEAD"):
        sent = request.headers.get("x-csrf-token", "")
        if not hmac.compare_digest(sent.encode(), desk.signer.csrf(session).encode()):
            raise HTTPException(403, "the page is out of date; load it again")
    return Visitor(person, session)


def annotator(found: Annotated[Visitor, Depends(visitor)]) -> Visitor:
    """An annotator; an administrator has no tasks."""
    if found.person.role != "annotator":
        raise HTTPException(403, "this page is for annotators")
    return found


def administrator(found: Annotated[Visitor, Depends(visitor)]) -> Visitor:
    """An administrator, and nobody else."""
    if found.person.role != "admin":
        raise HTTPException(403, "this page is for administrators")
    return found


TheDesk = Annotated[Desk, Depends(desk_of)]
AnyVisitor = Annotated[Visitor, Depends(visitor)]
AnAnnotator = Annotated[Visitor, Depends(annotator)]
AnAdministrator = Annotated[Visitor, Depends(administrator)]
