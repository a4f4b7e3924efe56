"""The verification as the routes see it: each method is one thing that somebody does, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import update

from counterfoil.verify import tables
from counterfoil.verify.address import Address
from counterfoil.verify.answering import Progress, Submission, is_control, progress_of, submit, take_back
from counterfoil.verify.assigning import Draw, Lease, release_expired
from counterfoil.verify.database import Database
from counterfoil.verify.excluding import exclude, include
from counterfoil.verify.judging import Statistics
from counterfoil.verify.leasing import lease_up_to
from counterfoil.verify.people import (
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
from counterfoil.verify.questions import Questionnaire
from counterfoil.verify.showing import held_variant
from counterfoil.verify.signing import Invitation, Signer
from counterfoil.verify.verdicts import all_verdicts

LINK_DAYS = 30.0


@dataclass(frozen=True)
class Desk:
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
            connection.execute(update(tables.people).where(tables.people.c.id == person.id).values(seen_at=draw.now))
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
            found = take_back(connection, draw)
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
