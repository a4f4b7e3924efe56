"""The verification service: one method per action, one transaction each; who asks."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import Depends, HTTPException, Request
from sqlalchemy import update

from counterfoil.statistics.agreement import collect_ratings, measure_agreement
from counterfoil.statistics.annotators import (
    AnnotatorQuality,
    DecisionRule,
    ExclusionRule,
    decide_pictures,
    exclude_annotators,
    rate_annotators,
)
from counterfoil.types import Decision, Verdict
from counterfoil.verification import database_tables
from counterfoil.verification.assignment import Draw, Lease, exclude, include, lease_up_to, release_expired
from counterfoil.verification.database import Database
from counterfoil.verification.people import (
    Person,
    PersonRole,
    begin_session,
    by_id,
    by_name,
    by_session,
    end_session,
    invite,
    lock,
    revoke,
)
from counterfoil.verification.project import held_variant
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.security import Address, Invitation, Signer
from counterfoil.verification.submissions import (
    Progress,
    Submission,
    all_verdicts,
    is_control,
    progress_of,
    submit,
    undo_submission,
)


@dataclass(frozen=True)
class Statistics:
    """The statistics over verdicts, as the page asks for them."""

    questionnaire: Questionnaire

    def agreement(self, verdicts: Sequence[Verdict]) -> Mapping[str, Mapping[str, float]]:
        """Question to measure to value, with the ends of the intervals."""
        rng = np.random.default_rng(self.questionnaire.seed)
        tables = {
            row.id: collect_ratings(verdicts, row.id, answers=row.answers) for row in self.questionnaire.questions
        }
        return {name: measure_agreement(table, rng).summary for name, table in tables.items()}

    def qualities(self, verdicts: Sequence[Verdict]) -> Sequence[AnnotatorQuality]:
        """Every annotator's record."""
        return rate_annotators(verdicts, self.questionnaire.keep_if)

    def excluded(self, verdicts: Sequence[Verdict]) -> Mapping[str, str]:
        """Who is to be left out by the questionnaire's rule, and why."""
        rule = self.questionnaire.exclude
        return {} if rule is None else exclude_annotators(self.qualities(verdicts), ExclusionRule(**rule.model_dump()))

    def decisions(self, verdicts: Sequence[Verdict]) -> Sequence[Decision]:
        """What the answers come to by majority."""
        rule = DecisionRule("majority", self.questionnaire.annotators)
        return decide_pictures(verdicts, self.questionnaire.keep_if, rule)


LINK_DAYS = 30.0


@dataclass(frozen=True, kw_only=True)
class VerificationService:
    """One verification, open for work."""

    database: Database
    questionnaire: Questionnaire
    signer: Signer
    address: Address
    picture: Callable[[str], bytes]  # variant id to PNG
    class_name: Callable[[str], str]  # label to what people call it
    place: Callable[[str], str]  # variant id to where Label Studio finds it
    clock: Callable[[], float]

    @property
    def statistics(self) -> Statistics:
        """The statistics over this verification's answers."""
        return Statistics(self.questionnaire)

    def draw(self, person: Person) -> Draw:
        """The circumstances of this moment for somebody."""
        return Draw(person, self.questionnaire, self.clock())

    def invite(self, name: str, role: PersonRole, days: float = LINK_DAYS) -> str:
        """The link that lets somebody in; it replaces an earlier one."""
        now = self.clock()
        with self.database.writing() as connection:
            person = invite(connection, name, role, now, now + days * 24 * 3600)
        return self.link(person)

    def link(self, person: Person) -> str:
        """The link of an account as it stands."""
        return f"{self.address.url}/join/{self.signer.token(Invitation(person.id, person.nonce))}"

    def join(self, token: str, earlier_session: str | None) -> tuple[Person, str] | None:
        """The person of a link and a fresh session; None for a link that is forged, replaced, over or revoked."""
        invitation = self.signer.invitation(token)
        if invitation is None:
            return None
        now = self.clock()
        with self.database.writing() as connection:
            person = by_id(connection, invitation.person_id)
            if person is None or person.revoked or person.nonce != invitation.nonce or person.link_expires_at < now:
                return None
            return person, begin_session(connection, person.id, now, earlier_session)

    def person_of(self, session: str) -> Person | None:
        """Whose session it is."""
        with self.database.reading() as connection:
            return by_session(connection, session, self.clock())

    def leave(self, session: str) -> None:
        """End a session."""
        with self.database.writing() as connection:
            end_session(connection, session, self.clock())

    def next_tasks(self, person: Person, count: int) -> tuple[list[Lease], Progress]:
        """Tasks in this person's hands, new ones added until there are `count`."""
        draw = self.draw(person)
        with self.database.writing() as connection:
            release_expired(connection, draw.now)
        with self.database.writing() as connection:
            counts = lock(connection, person.id)
            connection.execute(
                update(database_tables.people).where(database_tables.people.c.id == person.id).values(seen_at=draw.now)
            )
            leases = lease_up_to(connection, draw, count if counts else 0)
        return leases, self.progress(person)

    def answer(self, person: Person, submission: Submission) -> Progress:
        """Keep an answer; it is on the disk when this returns."""
        draw = self.draw(person)
        with self.database.writing() as connection:
            submit(connection, draw, submission)
        if self.questionnaire.exclude is not None:
            self._hold_to_rule(person, submission.task)
        return self.progress(person)

    def undo(self, person: Person) -> tuple[Lease, dict[str, str], Progress] | None:
        """Take the last answer back."""
        draw = self.draw(person)
        with self.database.writing() as connection:
            found = undo_submission(connection, draw)
        return None if found is None else (*found, self.progress(person))

    def progress(self, person: Person) -> Progress:
        """How far somebody is."""
        with self.database.reading() as connection:
            return progress_of(connection, self.draw(person))

    def picture_of(self, person: Person, handle: str) -> bytes | None:
        """The PNG behind a handle that this person holds; None for everybody else."""
        with self.database.reading() as connection:
            variant = held_variant(connection, person.id, handle)
        return None if variant is None else self.picture(variant)

    def revoke(self, name: str) -> bool:
        """Stop somebody's link and sessions; False where the name is unknown."""
        with self.database.writing() as connection:
            person = by_name(connection, name)
            if person is not None:
                revoke(connection, person.id, self.clock())
            return person is not None

    def set_excluded(self, name: str, excluded: bool, reason: str) -> bool:
        """Leave somebody's answers out, or let them count again; False where no annotator has this name."""
        with self.database.writing() as connection:
            person = by_name(connection, name)
            if person is None or person.role != "annotator":
                return False
            if excluded:
                exclude(connection, person.id, reason)
            elif person.excluded:
                include(connection, person.id)
            return True

    def _hold_to_rule(self, person: Person, task: str) -> None:
        """Leave somebody out whom an answer to a control shows to fall short of the questionnaire's rule."""
        with self.database.reading() as connection:
            if self.questionnaire.control_share and not is_control(connection, person.id, task):
                return  # without controls every answer may show that somebody is too quick
            reason = self.statistics.excluded(all_verdicts(connection, person.id)).get(person.name)
        if reason:
            self.set_excluded(person.name, True, reason)


@dataclass(frozen=True)
class Visitor:
    """Somebody who is let in, with the session they came by."""

    person: Person
    session: str


def service_of(request: Request) -> VerificationService:
    """The verification that the app serves."""
    desk: VerificationService = request.app.state.desk
    return desk


def cookie_name(desk: VerificationService) -> str:
    """By TLS the browser itself refuses to let another host set this cookie; without, ports of a host share cookies."""
    return "__Host-session" if desk.address.is_encrypted else f"session-{desk.address.port}"


def visitor(request: Request) -> Visitor:
    """Whoever has a session; nobody else gets further."""
    desk = service_of(request)
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


TheDesk = Annotated[VerificationService, Depends(service_of)]
AnyVisitor = Annotated[Visitor, Depends(visitor)]
AnAnnotator = Annotated[Visitor, Depends(annotator)]
AnAdministrator = Annotated[Visitor, Depends(administrator)]
