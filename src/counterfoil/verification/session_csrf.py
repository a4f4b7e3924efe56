"""The sender of a request: session, CSRF token and role are checked here, for every route."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fastapi import Depends, HTTPException, Request

from counterfoil.verification.accounts import Person
from counterfoil.verification.service import VerificationService


@dataclass(frozen=True)
class Visitor:
    """A person with a valid session."""

    person: Person
    session: str


def get_service(request: Request) -> VerificationService:
    """The verification that the app serves."""
    service: VerificationService = request.app.state.service
    return service


CurrentService: TypeAlias = Annotated[VerificationService, Depends(get_service)]


def cookie_name(service: VerificationService) -> str:
    """The cookie name: a prefix that other hosts cannot set with TLS, else the port, since ports share cookies."""
    return "__Host-session" if service.address.is_encrypted else f"session-{service.address.port}"


def identify_visitor(request: Request, service: CurrentService) -> Visitor:
    """Return the visitor; refuses requests without a session, and changes without the session's CSRF token."""
    session = request.cookies.get(cookie_name(service), "")
    person = service.find_person(session) if session else None
    if person is None:
        raise HTTPException(
            401, "open your invitation link first; if you just did, let your browser keep cookies for this page"
        )
    if request.method not in ("GET", "HEAD"):
        sent = request.headers.get("x-csrf-token", "")
        expected = service.verification.signer.csrf_token(session)
        if not hmac.compare_digest(sent.encode(), expected.encode()):
            raise HTTPException(403, "the page is out of date; load it again")
    return Visitor(person, session)


CurrentVisitor: TypeAlias = Annotated[Visitor, Depends(identify_visitor)]


def require_annotator(visitor: CurrentVisitor) -> Visitor:
    """Refuse everyone but annotators: an administrator has no tasks."""
    if visitor.person.role != "annotator":
        raise HTTPException(403, "this page is for annotators")
    return visitor


def require_administrator(visitor: CurrentVisitor) -> Visitor:
    """Refuse everyone but administrators."""
    if visitor.person.role != "admin":
        raise HTTPException(403, "this page is for administrators")
    return visitor


CurrentAnnotator: TypeAlias = Annotated[Visitor, Depends(require_annotator)]
CurrentAdministrator: TypeAlias = Annotated[Visitor, Depends(require_administrator)]
